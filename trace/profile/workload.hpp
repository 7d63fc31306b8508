// What a step computes and sends, as far as the file says: products and attention by shape, collectives by size, and the order in which the host issued them.
// From this a scenario is inferred (cli/diagnose/) and a machine calibrated. Test: tests/unit/profile_passes_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/profile/operands.hpp"
#include "trace/profile/passes.hpp"

namespace stepcast::trace::profile {

struct CountedProduct {
  Product product;
  std::optional<hw::Dtype> dtype;
  Pass pass = Pass::forward;
  bool biased = false;
  std::int64_t count = 0;
};
struct CountedAttention {
  AttentionCall call;
  std::optional<hw::Dtype> dtype;
  Pass pass = Pass::forward;
  std::int64_t count = 0;
};
struct CountedLookup {
  Lookup lookup;
  std::int64_t count = 0;
};

/// A collective as its kernel tells of it.
struct SentMessage {
  std::string type;
  double bytes = 0;        // 0: not recorded
  std::int64_t ranks = 0;  // 0: not recorded
  std::optional<hw::Dtype> dtype;
  auto operator<=>(const SentMessage&) const = default;
};

/// One thing that the host issued.
struct Issued {
  Time at{};
  Pass pass = Pass::forward;
  std::optional<std::uint32_t> message;  // index into Workload::messages; nothing: a kernel that computes (a product, attention)
};

/// Of all marked steps together, or of the whole file if none are marked.
struct Workload {
  std::int64_t steps = 1;
  bool steps_marked = false;
  std::vector<CountedProduct> products;
  std::vector<CountedAttention> attention;
  std::vector<CountedLookup> lookups;
  std::vector<SentMessage> messages;  // each kind once
  std::vector<Issued> order;          // of all steps, by time
};
Workload workload_of(const Profile& profile, std::uint32_t device, const Passes& passes);

/// Whether a name of the file (of an operator, a kernel, a range) contains the text.
bool mentions(const Profile& profile, std::string_view text);

/// Bytes of what a collective's kernel says of its message: what an all-gather gives, a reduce-scatter takes, an all-reduce has; 0: not recorded.
double message_bytes(const CollectiveArguments& arguments, std::string_view type);

}  // namespace stepcast::trace::profile
