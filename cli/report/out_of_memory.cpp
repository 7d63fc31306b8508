// See out_of_memory.hpp. PyTorch's message: c10/cuda/CUDACachingAllocator.cpp, DeviceCachingAllocator::malloc (as of 2.4).
#include "cli/report/out_of_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/report/table.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {
namespace {

/// c10::CachingAllocator::format_size.
std::string pytorch_size(std::int64_t bytes) {
  constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
  const auto value = static_cast<double>(bytes);
  if (value <= kKiB) return fmt::format("{} bytes", bytes);
  if (value <= kMiB) return fmt::format("{:.2f} KiB", value / kKiB);
  return value <= kGiB ? fmt::format("{:.2f} MiB", value / kMiB) : fmt::format("{:.2f} GiB", value / kGiB);
}

std::string holders(const OutOfMemoryRow& o) {
  if (o.by_owner.empty()) return "";
  std::vector<OwnerRow> rows = o.by_owner;
  std::stable_sort(rows.begin(), rows.end(), [](const OwnerRow& a, const OwnerRow& b) { return a.bytes > b.bytes; });
  if (o.active_bytes > o.allocated_bytes) rows.push_back({"(freed, other streams still use it)", o.active_bytes - o.allocated_bytes});
  if (o.reserved_bytes > o.active_bytes) rows.push_back({"(cached, in pieces that don't serve)", o.reserved_bytes - o.active_bytes});
  Table table({"", "size", "of the limit", ""}, {0, 3});
  for (const OwnerRow& row : rows) {
    const double share = o.limit_bytes > 0 ? static_cast<double>(row.bytes) / static_cast<double>(o.limit_bytes) : 0;
    table.add({row.owner, bytes_text(row.bytes), percent_text(share), bar(share)});
  }
  return "\nWhat held the memory when the request failed\n" + table.render();
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::string remedies(const OutOfMemoryRow& o) {
  if (o.remedies.empty()) return "";
  Table table({"", "step time", "tokens/s/GPU", "peak reserved", "headroom", "retries/step", "--set"}, {0, 6});
  std::vector<std::string> fail;
  bool fits = false;
  for (const Remedy& r : o.remedies) {
    if (r.outcome != "ok") {
      fail.push_back(r.what);  // combinations are kept only where they fit
      continue;
    }
    fits = true;
    table.add({r.what, time_text(r.step_time_s), count_text(r.tokens_per_s_per_gpu), bytes_text(r.peak_reserved_bytes), bytes_text(r.headroom_bytes),
               count_text(static_cast<double>(r.retries_per_step)), joined(r.sets, " ")});
  }
  std::string text = fits ? "\nWhat would fit (each simulated; the nearest first)\n" + table.render()
                          : "\nNone of the changes that were simulated fits: not alone, not in pairs, not together\n";
  if (!fail.empty()) text += wrapped("not enough by itself: " + joined(fail, "; "), 2);
  return text;
}

}  // namespace

std::string pytorch_message(const OutOfMemoryRow& o) {
  const std::int64_t in_use = o.reserved_bytes + o.outside_pool_bytes;
  std::string text = fmt::format("CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is free. ",
                                 pytorch_size(o.segment_bytes), pytorch_size(o.device_bytes), pytorch_size(std::max<std::int64_t>(0, o.device_bytes - in_use)));
  text += fmt::format("Including non-PyTorch memory, this process has {} memory in use. ", pytorch_size(in_use));
  if (o.fraction) text += fmt::format("{} allowed; ", pytorch_size(o.limit_bytes));
  return text + fmt::format("Of the allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated.",
                            pytorch_size(o.allocated_bytes), pytorch_size(o.reserved_bytes - o.allocated_bytes));
}

std::string out_of_memory_text(const OutOfMemoryRow& o) {
  return fmt::format("OUT OF MEMORY in step {} at {}: {} asks for {}, which takes a segment of {}; {} of {} are reserved\n", o.step, time_text(o.time_s),
                     o.buffer, bytes_text(o.requested_bytes), bytes_text(o.segment_bytes), bytes_text(o.reserved_bytes), bytes_text(o.limit_bytes)) +
         fmt::format("  allocated {}, active {}, reserved {}, limit {} (device {}, outside the pool {})\n", bytes_text(o.allocated_bytes),
                     bytes_text(o.active_bytes), bytes_text(o.reserved_bytes), bytes_text(o.limit_bytes), bytes_text(o.device_bytes),
                     bytes_text(o.outside_pool_bytes)) +
         "  PyTorch would say:\n" + wrapped(pytorch_message(o), 4) + holders(o) + remedies(o);
}

OrderedJson out_of_memory_json(const OutOfMemoryRow& o) {
  OrderedJson owners = OrderedJson::object(), remedies = OrderedJson::array();
  for (const OwnerRow& owner : o.by_owner) owners[owner.owner] = owner.bytes;
  for (const Remedy& r : o.remedies) {
    const auto known = [&](auto value) { return r.outcome == "ok" ? OrderedJson(value) : OrderedJson(nullptr); };
    remedies.push_back({{"what", r.what},
                        {"set", r.sets},
                        {"outcome", r.outcome},
                        {"step_time_s", known(r.step_time_s)},
                        {"tokens_per_s_per_gpu", known(r.tokens_per_s_per_gpu)},
                        {"peak_reserved_bytes", known(r.peak_reserved_bytes)},
                        {"headroom_bytes", known(r.headroom_bytes)},
                        {"retries_per_step", known(r.retries_per_step)}});
  }
  return {{"buffer", o.buffer},
          {"requested_bytes", o.requested_bytes},
          {"segment_bytes", o.segment_bytes},
          {"allocated_bytes", o.allocated_bytes},
          {"active_bytes", o.active_bytes},
          {"reserved_bytes", o.reserved_bytes},
          {"limit_bytes", o.limit_bytes},
          {"device_bytes", o.device_bytes},
          {"outside_pool_bytes", o.outside_pool_bytes},
          {"step", o.step},
          {"time_s", o.time_s},
          {"by_owner", owners},
          {"message", pytorch_message(o)},
          {"remedies", remedies}};
}

}  // namespace stepcast::cli
