// See interrupts.hpp.
#include "real_backend/launch/interrupts.hpp"

#include <ctime>

namespace stepcast::real {

Interrupts::Interrupts() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

std::string Interrupts::cause() {
  const timespec at_once{};
  switch (sigtimedwait(&signals_, nullptr, &at_once)) {
    case SIGTERM: return "ended by SIGTERM: a process of the job is gone, or its time is up";
    case SIGINT: return "ended by SIGINT";
    default: return "";
  }
}

}  // namespace stepcast::real
