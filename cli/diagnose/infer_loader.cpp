// The data loader from the ranges in which the host waits for it. Test: tests/unit/inference_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/diagnose/infer.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;

constexpr double kKeepsUp = 0.01;  // share of the time between two batches up to which the host is not held up

/// As a loader that delivers one batch in this time.
std::string batch_time_text(double microseconds) { return fmt::format("{:.6g} ms", microseconds / 1000); }

/// Mean time between the ends of ranges.
double interval_us(const std::vector<profile::Time>& ends) {
  const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
  return ends.size() < 2 ? 0 : profile::microseconds(*last - *first) / static_cast<double>(ends.size() - 1);
}

}  // namespace

void infer_loader(const TraceView& trace, ScenarioDraft& draft) {
  const profile::Profile& file = trace.rank.profile;
  std::vector<profile::Time> ends;
  for (const profile::HostOp& op : file.host_ops) {
    if (profile::is_data_loader(file.names[op.name])) ends.push_back(op.end);
  }
  if (trace.mentions("Memcpy HtoD (Pageable")) draft.guess("/loader/pin_memory", false, "copies from pageable memory");
  if (ends.empty()) return draft.guess("/loader/batch_time", "0 s", "no range of a data loader is in the file");
  const profile::CallTotal& waits = trace.rank.host.data_loader;
  const double wait = profile::microseconds(waits.total) / static_cast<double>(waits.count), interval = interval_us(ends);
  if (trace.mentions("_SingleProcessDataLoaderIter")) {
    draft.seen("/loader/workers", 0, "_SingleProcessDataLoaderIter");
    return draft.seen("/loader/batch_time", batch_time_text(wait), "mean time of the loader's ranges");
  }
  if (wait <= kKeepsUp * interval || interval == 0)
    return draft.guess("/loader/batch_time", "0 s", fmt::format("batches were there when they were asked for ({:.3g} us each)", wait));
  draft.guess("/loader/workers", 1, "no trace says how many workers prepare batches; as many times the batch time is the same");
  draft.seen("/loader/batch_time", batch_time_text(interval), fmt::format("the host waits {:.3g} ms for each batch: one comes so often", wait / 1000));
}

}  // namespace stepcast::cli
