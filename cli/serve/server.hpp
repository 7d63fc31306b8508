// An HTTP/1.1 server of bounded size: header, body, connections, threads and waiting all have a limit. docs/serve.md, "Limits"; test: tests/golden/serve_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/serve/routes.hpp"

namespace stepcast::cli {

/// Throws InputError in a build without the server.
void require_server();

class Server {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&, std::uint16_t port)>;

  /// Binds; port 0: any that is free. The handler is called by several threads. Throws InputError where the address is none of this machine's, std::system_error where the
  /// port is taken.
  Server(const std::string& address, std::uint16_t port, Handler handler);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] std::uint16_t port() const;
  /// "http://127.0.0.1:8642/"
  [[nodiscard]] std::string url() const;
  /// Serves until SIGINT, SIGTERM or `stop`; requests that are being answered are answered first.
  void run();
  /// From any thread.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stepcast::cli
