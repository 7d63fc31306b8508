// TCP connections that never block, and messages on them. Test: tests/unit/launch_test.cpp.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace stepcast::real {

/// An owned file descriptor; none is there after a move.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

/// Waits for connections at a port of all of this machine's addresses. Throws std::system_error.
Descriptor listen_at(const std::string& port);
/// One that has come; none: nothing yet.
Descriptor accept_at(const Descriptor& listener);
/// A name of a host that nobody knows; not one that can't be looked up for the moment.
struct UnknownHost final : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// None: nobody answers there yet, or the name can't be looked up for the moment; `why` says so. Throws UnknownHost.
Descriptor connect_to(const std::string& host, const std::string& port, std::string& why);

/// Messages of any length, each behind its length. Nothing waits.
class Connection {
 public:
  /// A longer message than `most` is not read: whoever sends it belongs to something else.
  explicit Connection(Descriptor descriptor, std::size_t most) : descriptor_(std::move(descriptor)), most_(most) {}
  void send(std::string_view message);
  /// The next message that is whole.
  std::optional<std::string> receive();
  /// Nothing more can come or go: the other side has closed, the network has failed, or it has sent what is no message.
  [[nodiscard]] bool lost() const { return lost_; }
  void read_on(std::size_t most) { most_ = most; }
  /// Sends what the network takes; true if that is all.
  bool flush();

 private:
  void read();

  Descriptor descriptor_;
  std::size_t most_;
  std::string in_, out_;
  bool lost_ = false;
};

}  // namespace stepcast::real
