// Sizes agree within 1 %: padding to the ranks, and alignment, are less. Test: tests/unit/inference_test.cpp.
#include "cli/diagnose/units.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "program/model.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;

constexpr double kAlike = 0.01;

bool alike(double a, std::int64_t b) { return std::fabs(a - static_cast<double>(b)) <= kAlike * static_cast<double>(b); }

bool any(const std::vector<GatheredUnit>& units, std::int64_t elements) {
  return std::any_of(units.begin(), units.end(), [elements](const GatheredUnit& unit) { return alike(unit.elements, elements); });
}

/// Units of either size, of which there must be two.
bool both(const std::vector<GatheredUnit>& units, std::int64_t a, std::int64_t b) {
  double count = 0;
  for (const GatheredUnit& unit : units) count += alike(unit.elements, a) || alike(unit.elements, b) ? unit.count : 0;
  return any(units, a) && any(units, b) && count > 1.5;
}

/// Parameters outside of the blocks: with the head, and with the embedding alone.
struct Ends {
  std::int64_t all = 0, embedding = 0, head = 0;
};
Ends ends_of(program::ModelShape model, bool tied) {
  model.tied_embeddings = tied;
  Ends ends;
  for (const program::ParameterTensor& tensor : program::root_tensors(model)) {
    ends.all += tensor.elements;
    (tensor.name.starts_with("embedding.") || tensor.name.starts_with("positions.") ? ends.embedding : ends.head) += tensor.elements;
  }
  return ends;
}

}  // namespace

std::vector<GatheredUnit> gathered_units(const profile::Workload& work, double forwards) {
  std::map<std::uint32_t, double> counts;
  for (const profile::Issued& issued : work.order) {
    if (issued.message && issued.pass == profile::Pass::forward && work.messages[*issued.message].type == "allgather") counts[*issued.message] += 1;
  }
  std::vector<GatheredUnit> units;
  for (const auto& [index, count] : counts) {
    const profile::SentMessage& message = work.messages[index];
    if (message.bytes > 0 && message.dtype) units.push_back({message.bytes / static_cast<double>(hw::bytes_per_element(*message.dtype)), count / forwards});
  }
  return units;
}

std::optional<UnitsSeen> units_seen(const std::vector<GatheredUnit>& gathered, program::ModelShape model) {
  const std::int64_t block = program::parameters_per_block(model), most = std::max<std::int64_t>(1, model.layers);
  UnitsSeen seen;
  for (const bool tied : {false, true}) {
    const Ends ends = ends_of(model, tied);
    seen.tied = tied;
    if (gathered.size() == 1 && any(gathered, ends.all + most * block)) {
      seen.wrap = program::Wrap::model;
      seen.ends_known = true;
      return seen;
    }
    for (std::int64_t blocks = 1; blocks <= most; ++blocks) {
      if (!any(gathered, blocks * block)) continue;
      seen.blocks_per_unit = blocks;
      const bool root = any(gathered, ends.all), apart = both(gathered, ends.embedding, ends.head);
      seen.wrap = !root && apart ? program::Wrap::embedding_and_head : program::Wrap::blocks;
      seen.ends_known = root || apart;
      if (seen.ends_known) return seen;
      break;
    }
  }
  seen.tied = false;
  return any(gathered, seen.blocks_per_unit * block) ? std::optional(seen) : std::nullopt;
}

}  // namespace stepcast::cli
