// Any bytes as a profile, plain or gzipped: import_profile gives a profile whose numbers can be taken, or throws InputError of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hw_models/input_error.hpp"
#include "trace/profile/across_ranks.hpp"
#include "trace/profile/diagnosis.hpp"
#include "trace/profile/import.hpp"
#include "trace/profile/workload.hpp"
#include "trace/profile/zip.hpp"

namespace {

using namespace stepcast;
namespace profile = trace::profile;

template <class Try>
void expect_one_line(Try attempt) {
  try {
    attempt();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  expect_one_line([&] {
    const auto source = profile::inflated_if_gzip(std::make_unique<profile::MemorySource>(bytes));
    const profile::RankDiagnosis rank = profile::diagnose(profile::import_profile(*source, "fuzz"));
    for (const profile::DeviceMetrics& m : rank.devices) {
      const profile::DeviceTimes& t = m.whole_window;
      const profile::Workload work = profile::workload_of(rank.profile, m.device, profile::Passes(rank.profile));
      if (work.order.size() > rank.profile.host_ops.size() + rank.profile.device_ops.size()) std::abort();
      if (t.compute + t.exposed_comm + t.exposed_memory + t.idle != t.span) std::abort();
      profile::Time parts{};
      for (const auto& [cause, sum] : m.finer.by_cause) parts += sum.total;
      if (m.gaps && parts != m.gaps->total) std::abort();
      for (const profile::CriticalPath& path : m.paths) {
        parts = {};
        for (const auto& [kind, time] : path.by_kind) parts += time;
        if (parts != path.time.end - path.time.begin) std::abort();
      }
    }
    profile::compare_ranks({profile::summaries_of(rank.profile, 0).at(0), profile::summaries_of(rank.profile, 1).at(0)});
  });
  expect_one_line([&] { profile::parse_zip_directory(bytes, 3, "fuzz"); });
  return 0;
}
