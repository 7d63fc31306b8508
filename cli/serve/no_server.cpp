// A build without Boost.Beast. See server.hpp.
#include "cli/serve/server.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {

class Server::Impl {};

void require_server() {
  throw InputError("serve", "", "this build has no HTTP server", "it is built where Boost's headers are (Debian's libboost-dev): cmake says what is missing");
}

Server::Server(const std::string&, std::uint16_t, Handler) { require_server(); }
Server::~Server() = default;
std::uint16_t Server::port() const { return 0; }
std::string Server::url() const { return {}; }
void Server::run() {}
void Server::stop() {}

}  // namespace stepcast::cli
