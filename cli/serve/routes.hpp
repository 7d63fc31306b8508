// The HTTP requests that `stepcast serve` answers, apart from sockets: which paths there are, who may ask, and what is refused. docs/serve.md, "Who may ask"; test:
// tests/unit/serve_test.cpp; fuzzed by tests/fuzz/serve_request.cpp.
#pragma once

#include <string>
#include <string_view>

#include "cli/serve/answer.hpp"

namespace stepcast::cli {

struct HttpRequest {
  std::string method, target, host, origin, content_type, body;  // headers that are absent are empty
};

struct HttpAnswer {
  int status = 200;
  std::string content_type, body;
};

/// {"error": what} with a line of text, which may hold anything.
HttpAnswer http_error(int status, const std::string& what);

/// Whether a Host header names this server by an address, or by "localhost" or `own_name`. Other names may have been pointed here by a page of somebody else (DNS rebinding).
bool is_own_host(std::string_view header, std::uint16_t port, std::string_view own_name);

class Routes {
 public:
  Routes(Served served, std::string own_name) : served_(std::move(served)), own_name_(std::move(own_name)) {}
  /// Never throws but for want of memory. `port`: that the server listens on.
  [[nodiscard]] HttpAnswer operator()(const HttpRequest& request, std::uint16_t port) const;

 private:
  [[nodiscard]] HttpAnswer forecast(const HttpRequest& request) const;

  Served served_;
  std::string own_name_;
};

}  // namespace stepcast::cli
