// See routes.hpp.
#include "cli/serve/routes.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <exception>

#include "cli/page/page.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

std::string as_line(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

/// An address of IPv4, or one of IPv6 in brackets: what can't be a name.
bool is_address(std::string_view host) {
  in6_addr bytes{};
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string text(bracketed ? host.substr(1, host.size() - 2) : host);
  return inet_pton(bracketed ? AF_INET6 : AF_INET, text.c_str(), &bytes) == 1;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

bool is_json(std::string_view content_type) { return same_name(content_type.substr(0, content_type.find(';')), "application/json"); }

}  // namespace

HttpAnswer http_error(int status, const std::string& what) { return {status, "application/json", as_line({{"error", what}})}; }

bool is_own_host(std::string_view header, std::uint16_t port, std::string_view own_name) {
  const std::size_t colon = header.find_last_of(':');
  const bool has_port = colon != std::string_view::npos && header.find(']', colon) == std::string_view::npos;
  const std::string_view host = has_port ? header.substr(0, colon) : header, digits = has_port ? header.substr(colon + 1) : "80";
  std::uint16_t asked = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), asked);
  if (error != std::errc() || end != digits.data() + digits.size() || asked != port) return false;
  return is_address(host) || same_name(host, "localhost") || (!own_name.empty() && same_name(host, own_name));
}

HttpAnswer Routes::forecast(const HttpRequest& request) const {
  const bool posted = request.method == "POST";
  if (posted && !is_json(request.content_type)) return http_error(415, "the request's Content-Type must be application/json");
  if (request.body.size() > kMaxRequestBytes) return http_error(413, "the request is longer than " + std::to_string(kMaxRequestBytes) + " bytes");
  try {
    return {200, "application/json", as_line(answer(served_, posted ? read_request(request.body) : ForecastRequest{}))};
  } catch (const InputError& error) { return http_error(400, error.what()); } catch (const std::bad_alloc&) {
    return http_error(503, "this machine has not enough memory for the forecast");
  } catch (const std::exception& error) { return http_error(500, error.what()); }
}

HttpAnswer Routes::operator()(const HttpRequest& request, std::uint16_t port) const {
  if (!is_own_host(request.host, port, own_name_)) return http_error(403, "the request names another host; open the address that stepcast serve printed");
  if (!request.origin.empty() && !same_name(request.origin, "http://" + request.host)) return http_error(403, "the request comes from another page");
  const bool page = request.target == "/", api = request.target == "/api/forecast";
  if (!page && !api) return http_error(404, "there are / and /api/forecast");
  if (request.method != "GET" && !(api && request.method == "POST")) return http_error(405, page ? "/ can be got" : "/api/forecast can be got and posted to");
  HttpAnswer forecast_now = forecast(request);
  if (api || forecast_now.status != 200) return forecast_now;
  return {200, "text/html; charset=utf-8", filled(kServeTemplate, OrderedJson::parse(forecast_now.body))};
}

}  // namespace stepcast::cli
