// See server.hpp. Boost.Beast (docs/adr/0011-serve-by-boost-beast.md).
#include "cli/serve/server.hpp"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using net::ip::tcp;

constexpr int kThreads = 2;  // a forecast and, beside it, the search for what would fit
constexpr int kConnections = 32;
constexpr std::uint32_t kHeaderBytes = 8192;
constexpr std::chrono::seconds kPatience{30};

using Handler = Server::Handler;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

std::string text(boost::beast::string_view view) { return {view.data(), view.size()}; }

/// The page may not stand in somebody else's frame; what is answered holds for this moment only.
Response response_of(HttpAnswer answer, unsigned version, bool keep_alive) {
  Response response{static_cast<http::status>(answer.status), version};
  response.set(http::field::content_type, answer.content_type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  response.set("Content-Security-Policy", "frame-ancestors 'none'");
  response.set("Cross-Origin-Resource-Policy", "same-origin");
  response.keep_alive(keep_alive);
  response.body() = std::move(answer.body);
  response.prepare_payload();
  return response;
}

/// Counts a connection while it lives.
class Counted {
 public:
  explicit Counted(std::atomic<int>& count) : count_(&count) { ++count; }
  Counted(Counted&& other) noexcept : count_(std::exchange(other.count_, nullptr)) {}
  Counted& operator=(Counted&&) = delete;
  ~Counted() {
    if (count_) --*count_;
  }

 private:
  std::atomic<int>* count_;
};

/// One client: reads a request, answers it, reads the next. Lives as long as it waits for something.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, const Handler& handler, std::uint16_t port, Counted counted)
      : stream_(std::move(socket)), handler_(handler), port_(port), counted_(std::move(counted)) {}

  void read() {
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(kMaxRequestBytes);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) { self->was_read(error); });
  }

 private:
  void was_read(error_code error) {
    if (error == http::error::body_limit) return write(http_error(413, "the request is longer than " + std::to_string(kMaxRequestBytes) + " bytes"), 11, false);
    if (error == http::error::header_limit) return write(http_error(431, "the request's header is too long"), 11, false);
    if (error && error.category() == http::make_error_code(http::error::bad_method).category() && error != http::error::end_of_stream)
      return write(http_error(400, "this is no HTTP request"), 11, false);
    if (error) return close();
    const Request& request = parser_->get();
    const HttpRequest asked{text(request.method_string()),
                            text(request.target()),
                            text(request[http::field::host]),
                            text(request[http::field::origin]),
                            text(request[http::field::content_type]),
                            request.body()};
    write(handler_(asked, port_), request.version(), request.keep_alive());
  }

  void write(HttpAnswer answer, unsigned version, bool keep_alive) {
    response_ = response_of(std::move(answer), version, keep_alive);
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = shared_from_this(), keep_alive](error_code error, std::size_t) {
      if (error || !keep_alive) self->close();
      else self->read();
    });
  }

  void close() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_{kHeaderBytes + kMaxRequestBytes};
  std::optional<http::request_parser<http::string_body>> parser_;
  Response response_;
  const Handler& handler_;
  std::uint16_t port_;
  Counted counted_;
};

tcp::endpoint endpoint_of(const std::string& address, std::uint16_t port) {
  net::io_context context;
  tcp::resolver resolver(context);
  error_code error;
  const auto found = resolver.resolve(address, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) throw InputError("--host", "", "\"" + address + "\" is no address of this machine", "127.0.0.1 is the default");
  return found.begin()->endpoint();
}

}  // namespace

class Server::Impl {
 public:
  Impl(const std::string& address, std::uint16_t port, Handler handler) : handler_(std::move(handler)), acceptor_(io_) {
    const tcp::endpoint endpoint = endpoint_of(address, port);
    error_code error;
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint, error);
    if (error == boost::system::errc::address_not_available || error == boost::system::errc::invalid_argument)
      throw InputError("--host", "", "\"" + address + "\" is no address of this machine", "127.0.0.1 is the default");
    if (!error) acceptor_.listen(kConnections, error);
    if (error) throw std::system_error(error.value(), std::generic_category(), "can't listen on port " + std::to_string(port));
  }

  [[nodiscard]] tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

  void run() {
    net::signal_set signals(control_, SIGINT, SIGTERM);
    signals.async_wait([&](error_code, int) { control_.stop(); });
    accept();
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([this] { io_.run(); });
    const auto work = net::make_work_guard(control_);
    control_.run();
    io_.stop();
  }

  void stop() { control_.stop(); }

 private:
  void accept() {
    acceptor_.async_accept(net::make_strand(io_), [this](error_code error, tcp::socket socket) {
      if (!error && count_.load() < kConnections) {
        error_code ignored;
        socket.set_option(tcp::no_delay(true), ignored);
        std::make_shared<Connection>(std::move(socket), handler_, endpoint().port(), Counted(count_))->read();
      }
      if (error != net::error::operation_aborted) accept();
    });
  }

  Handler handler_;
  std::atomic<int> count_{0};
  net::io_context io_, control_;
  tcp::acceptor acceptor_;
};

void require_server() {}

Server::Server(const std::string& address, std::uint16_t port, Handler handler) : impl_(std::make_unique<Impl>(address, port, std::move(handler))) {}
Server::~Server() = default;

std::uint16_t Server::port() const { return impl_->endpoint().port(); }

std::string Server::url() const {
  const tcp::endpoint endpoint = impl_->endpoint();
  const std::string address = endpoint.address().to_string();
  return "http://" + (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" + std::to_string(endpoint.port()) + "/";
}

void Server::run() { impl_->run(); }
void Server::stop() { impl_->stop(); }

}  // namespace stepcast::cli
