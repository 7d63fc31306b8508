// See machine.hpp.
#include "tests/fakes/machine.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/fakes/gpu.hpp"

namespace stepcast::fakes {
namespace {

std::unique_ptr<State> the_state;

}  // namespace

State& state() {
  if (!the_state) throw std::logic_error("there is no fake machine");
  return *the_state;
}

void State::fault(const std::string& text) {
  const std::lock_guard lock(mutex);
  if (std::find(faults.begin(), faults.end(), text) == faults.end()) faults.push_back(text);
}

Machine::Machine(int gpus, std::size_t bytes_of_gpu) {
  if (the_state) throw std::logic_error("one fake machine at a time");
  the_state = std::make_unique<State>();
  for (int i = 0; i < gpus; ++i) the_state->gpus.push_back(std::make_unique<Gpu>(i, bytes_of_gpu));
  the_state->nvml.gpus.resize(static_cast<std::size_t>(gpus));
}

Machine::~Machine() {
  the_state->streams.clear();
  nccl::reset();
  the_state.reset();
}

std::vector<std::string> Machine::faults() const {
  const std::lock_guard lock(the_state->mutex);
  return the_state->faults;
}

std::vector<std::string> Machine::leaks() const {
  std::vector<std::string> result = nccl::leaks();
  const std::lock_guard lock(the_state->mutex);
  result.insert(result.end(), the_state->streams.size(), "a stream");
  result.insert(result.end(), the_state->events.size(), "an event");
  result.insert(result.end(), the_state->blas.size(), "a handle of cuBLAS");
  result.insert(result.end(), static_cast<std::size_t>(the_state->nvml.openings), "NVML, which is open");
  for (const auto& [place, what] : the_state->others) result.push_back(what);
  return result;
}

void Machine::fail_network(int gpu) { nccl::fail(gpu); }

}  // namespace stepcast::fakes
