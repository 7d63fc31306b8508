// See socket.hpp.
#include "real_backend/launch/socket.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace stepcast::real {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr int kPatience = 1000;  // milliseconds for one attempt to connect

std::string error_text(int error) { return std::generic_category().message(error); }

/// None if the name can't be looked up for the moment, which may be so for long while a cluster's machines come up.
Addresses addresses_of(const char* host, const std::string& port, int family, int flags, std::string& why) {
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int result = getaddrinfo(host, port.c_str(), &hints, &found);
  if (result == 0) return {found, freeaddrinfo};
  if (host == nullptr || result == EAI_MEMORY || result == EAI_SYSTEM)
    throw std::runtime_error(std::string(host == nullptr ? "port " + port : host) + ": " + gai_strerror(result));
  if (result != EAI_AGAIN) throw UnknownHost(gai_strerror(result));
  why = gai_strerror(result);
  return {nullptr, freeaddrinfo};
}

Descriptor open_socket(const addrinfo& address) {
  Descriptor made(socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
  if (!made) throw std::system_error(errno, std::generic_category(), "socket");
  return made;
}

void set(const Descriptor& socket, int level, int name, int value) { setsockopt(socket.number(), level, name, &value, sizeof value); }

/// Letters go at once; a machine that is gone without a word is noticed.
Descriptor prepared(Descriptor socket) {
  if (!socket) return socket;
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  return socket;
}

/// 0, or the error of a connection that was begun.
int outcome_of(const Descriptor& socket) {
  pollfd ready{socket.number(), POLLOUT, 0};
  if (poll(&ready, 1, kPatience) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

/// IPv6 takes IPv4 as well, where the machine has it.
Descriptor listen_at(const std::string& port) {
  int error = 0;
  for (const int family : {AF_INET6, AF_INET}) {
    std::string why;
    const Addresses address = addresses_of(nullptr, port, family, AI_PASSIVE | AI_NUMERICSERV, why);
    Descriptor listener(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener) continue;
    set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
    if (family == AF_INET6) set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind(listener.number(), address->ai_addr, address->ai_addrlen) == 0 && listen(listener.number(), SOMAXCONN) == 0) return listener;
    error = errno;
  }
  throw std::system_error(error, std::generic_category(), "port " + port + " of this machine");
}

Descriptor accept_at(const Descriptor& listener) { return prepared(Descriptor(accept4(listener.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC))); }

Descriptor connect_to(const std::string& host, const std::string& port, std::string& why) {
  const Addresses addresses = addresses_of(host.c_str(), port, AF_UNSPEC, AI_NUMERICSERV, why);
  for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
    Descriptor made = open_socket(*a);
    const int error = connect(made.number(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno == EINPROGRESS ? outcome_of(made) : errno;
    if (error == 0) return prepared(std::move(made));
    why = error_text(error);
  }
  return Descriptor();
}

void Connection::send(std::string_view message) {
  const std::uint64_t length = message.size();
  out_.append(reinterpret_cast<const char*>(&length), sizeof length).append(message);
  flush();
}

bool Connection::flush() {
  while (!lost_ && !out_.empty()) {
    const ssize_t sent = ::send(descriptor_.number(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent > 0) out_.erase(0, static_cast<std::size_t>(sent));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    else if (errno != EINTR) lost_ = true;
  }
  return out_.empty();
}

void Connection::read() {
  char bytes[1 << 16];
  while (!lost_) {
    const ssize_t got = recv(descriptor_.number(), bytes, sizeof bytes, 0);
    if (got > 0) in_.append(bytes, static_cast<std::size_t>(got));
    else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    else if (got == 0 || errno != EINTR) lost_ = true;
    if (in_.size() > most_ + sizeof(std::uint64_t)) return;  // enough for now
  }
}

std::optional<std::string> Connection::receive() {
  flush();
  std::uint64_t length = 0;
  const auto whole = [&] {
    if (in_.size() < sizeof length) return false;
    std::memcpy(&length, in_.data(), sizeof length);
    if (length > most_) lost_ = true, in_.clear(), length = 0;
    return in_.size() >= sizeof length + length;
  };
  if (!whole()) read();
  if (!whole()) return std::nullopt;
  std::string message = in_.substr(sizeof length, length);
  in_.erase(0, sizeof length + length);
  return message;
}

}  // namespace stepcast::real
