// Any bytes as an allocator history: parse_histories accepts or throws InputError of one line, and what it accepts replays under several settings without a fault.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hw_models/input_error.hpp"
#include "memory/history.hpp"
#include "memory/sizes.hpp"

namespace {

using namespace stepcast;

void replay_all(std::string_view content, bool limit_given) {
  for (const memory::History& history : memory::parse_histories(content, "fuzz", limit_given)) {
    for (const std::int64_t limit : {memory::kMaxBytes, history.device_bytes.value_or(100 * memory::kMiB)}) {
      const memory::Replay replayed = memory::replay(history, history.settings, limit, "fuzz");
      if (replayed.after.size() != history.ops.size()) std::abort();
      memory::first_difference(history, replayed);
      memory::Settings other;
      other.expandable_segments = true;
      memory::replay(history, other, limit, "fuzz");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  for (const bool limit_given : {false, true}) {
    try {
      replay_all(content, limit_given);
    } catch (const InputError& error) {
      if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
    }
  }
  return 0;
}
