// See monitor.hpp.
#include "real_backend/bench/monitor.hpp"

namespace stepcast::real::bench {

void MonitorLog::look() {
  for (std::size_t gpu = 0; gpu < states_.size(); ++gpu) states_[gpu].push_back(monitor_.state(gpu));
  looked_ = std::chrono::steady_clock::now();
}

void MonitorLog::look_after(std::chrono::steady_clock::duration pause) {
  if (!looked_ || std::chrono::steady_clock::now() - *looked_ >= pause) look();
}

}  // namespace stepcast::real::bench
