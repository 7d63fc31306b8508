// Signals that ask a process to end, in time for it to keep what it has. Test: tests/golden/train_mpi_test.cpp.
#pragma once

#include <csignal>
#include <string>

namespace stepcast::real {

/// From now on SIGTERM and SIGINT wait to be asked about, in this thread and those that it starts.
class Interrupts {
 public:
  Interrupts();
  /// Why the process is to end; empty: it is not.
  [[nodiscard]] std::string cause();

 private:
  sigset_t signals_{};
};

}  // namespace stepcast::real
