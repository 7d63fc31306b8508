// The processes of a job, as each of them sees the others: letters between the first one and the rest. By MPI (real_backend/mpi) or TCP (tcp_peers.hpp).
// docs/real_backend.md, "Several processes"; test: tests/unit/launch_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace stepcast::real {

/// `lost`: the sender's process is gone; nothing more comes from it.
struct Letter {
  std::int32_t from = 0;
  std::string text;
  bool lost = false;
};

/// Each process has one rank. Letters go to the first process and from it, and arrive in the order in which they were sent. Calls come from one thread at a time; none of them waits.
class Peers {
 public:
  virtual ~Peers() = default;
  Peers() = default;
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;
  [[nodiscard]] virtual std::int32_t rank() const = 0;
  [[nodiscard]] virtual std::int32_t size() const = 0;
  /// To a process that is gone: nothing happens.
  virtual void send(std::int32_t to, std::string text) = 0;
  virtual std::optional<Letter> arrived() = 0;
  /// The job has failed and this process is about to end: whatever still runs on the others ends too.
  virtual void abort(int exit_code) = 0;
};

}  // namespace stepcast::real
