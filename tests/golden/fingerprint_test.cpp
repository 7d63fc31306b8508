// One number for the behaviour of the simulator: a hash over the step ends, peaks, retries and device mallocs of every built-in scenario and of a few settings.
// A change that moves it must say so: put the new value into fingerprint.txt (CONTRIBUTING.md says when).
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "support/paths.hpp"
#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

/// FNV-1a over 64-bit values.
class Hash {
 public:
  void add(std::int64_t value) {
    for (int byte = 0; byte < 8; ++byte) state_ = (state_ ^ (static_cast<std::uint64_t>(value >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  }
  [[nodiscard]] std::string hex() const {
    std::ostringstream out;
    out << std::hex << state_;
    return out.str();
  }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325u;
};

void add(Hash& hash, const sim::Result& result) {
  for (const SimTime end : result.step_end) hash.add(end.count());
  for (const std::int64_t value : {result.peak_allocated, result.peak_active, result.peak_reserved, result.memory.retries, result.memory.device_mallocs})
    hash.add(value);
}

}  // namespace

TEST_CASE("the fingerprint of all built-in scenarios is the recorded one") {
  Hash hash;
  for (const std::string& name : scenarios::scenario_names()) add(hash, test::forecast(name).result);
  for (const char* set : {"/policy/sharding=SHARD_GRAD_OP", "/policy/backward_prefetch=NONE", "/policy/forward_prefetch=true", "/kernels/attention=unfused",
                          "/recompute/mode=full", "/precision/reduce=fp32", "/model/preset=mpt-7b", "/allocator/expandable_segments=true"})
    add(hash, test::forecast("7b-32xa100", {"/batch/micro_batch=1", "/batch/seq_len=1024", set}).result);
  std::ifstream file(test::source_dir() + "/tests/golden/fingerprint.txt");
  std::string recorded;
  file >> recorded;
  CHECK_MESSAGE(hash.hex() == recorded, "new fingerprint: " << hash.hex());
}
