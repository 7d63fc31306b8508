// See space.hpp.
#include "planner/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/ordered_json.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/names.hpp"

namespace stepcast::planner {
namespace {

std::string set(const std::string& pointer, const std::string& value) { return pointer + "=" + value; }

Option option(std::string words, std::vector<std::string> sets) { return {std::move(words), std::move(sets)}; }

Dimension flags(const std::string& name, const std::string& pointer, const char* off, const char* on, bool first) {
  Dimension dimension{name, {option(off, {set(pointer, "false")}), option(on, {set(pointer, "true")})}};
  if (first) std::swap(dimension.options[0], dimension.options[1]);
  return dimension;
}

/// Micro-batches that divide what each rank has to do, the largest first.
Dimension batches(const scenarios::Scenario& base, std::int64_t global) {
  const std::int64_t ranks = scenarios::ranks(base);
  if (global == 0) global = base.batch.micro_batch * base.batch.grad_accum * ranks;
  if (global % ranks != 0)
    throw InputError("--global-batch", "", fmt::format("{} sequences can't be divided among {} ranks", global, ranks), "give a multiple of the ranks");
  const std::int64_t each = global / ranks;
  Dimension dimension{"batch", {}};
  for (std::int64_t micro = each; micro >= 1; --micro) {
    if (each % micro != 0) continue;
    dimension.options.push_back(option(fmt::format("micro-batch of {}, accumulated {} times", micro, each / micro),
                                       {set("/batch/micro_batch", std::to_string(micro)), set("/batch/grad_accum", std::to_string(each / micro))}));
  }
  return dimension;
}

Dimension recomputation(const scenarios::Scenario& base) {
  const auto mode = [](const char* value) { return set("/recompute/mode", value); };
  Dimension dimension{"recompute",
                      {option("no recomputation", {"/recompute=null", mode("none")}), option("recompute all blocks", {"/recompute=null", mode("full")})}};
  for (const char* every : {"2", "3", "4"}) {
    if (base.model.layers < std::stoi(every)) continue;
    dimension.options.push_back(
        option(std::string("recompute every block out of ") + every, {"/recompute=null", mode("every_k"), set("/recompute/every", every)}));
  }
  if (base.model.layers >= 4)
    dimension.options.push_back(option("recompute three of four blocks", {"/recompute=null", mode("share"), set("/recompute/share", "0.75")}));
  for (const char* ops : {"all_but_attention", "all_but_matmul", "all_but_every_second_matmul"}) {
    dimension.options.push_back(option(std::string("recompute ") + ops, {"/recompute=null", mode("per_op"), set("/recompute/ops", ops)}));
  }
  return dimension;
}

Dimension kernels(const scenarios::Scenario& base) {
  Dimension dimension{"kernels", {option("compiled kernels", {set("/kernels/set", "pytorch-compile")})}};
  dimension.options.push_back(option("eager kernels", {set("/kernels/set", "pytorch-eager"), set("/kernels/fused_norm", "false")}));
  if (base.model.norm == program::NormKind::rms_norm && base.model.style == program::BlockStyle::llama)
    dimension.options.push_back(option("eager kernels, fused norm", {set("/kernels/set", "pytorch-eager"), set("/kernels/fused_norm", "true")}));
  return dimension;
}

Dimension attention(const scenarios::Scenario& base, bool flash3) {
  std::vector<std::string> names = {"flash2", "efficient"};
  if (flash3) names.insert(names.begin(), "flash3");
  const std::string own = spelled(scenarios::kAttentions, base.kernels.attention);
  if (std::find(names.begin(), names.end(), own) == names.end()) names.push_back(own);
  Dimension dimension{"attention", {}};
  for (const std::string& name : names) dimension.options.push_back(option(name + " attention", {set("/kernels/attention", name)}));
  return dimension;
}

Dimension losses(const scenarios::Scenario& base) {
  Dimension dimension{
      "loss",
      {option("fused loss", {set("/kernels/loss", "fused")}), option("chunked loss", {set("/kernels/keep_logits", "false"), set("/kernels/loss", "chunked")})}};
  const std::string own = spelled(scenarios::kLosses, base.kernels.loss);
  if (own != "fused" && own != "chunked") dimension.options.push_back(option(own + " loss", {set("/kernels/loss", own)}));
  return dimension;
}

Dimension wrapping(const scenarios::Scenario& base) {
  const auto wrap = [](const char* value, const char* blocks) {
    return std::vector<std::string>{set("/policy/wrap", value), set("/policy/blocks_per_unit", blocks)};
  };
  Dimension dimension{"wrap", {option("units of one block", wrap("blocks", "1"))}};
  for (const char* blocks : {"2", "4"}) {
    if (base.model.layers >= std::stoi(blocks)) dimension.options.push_back(option(std::string("units of ") + blocks + " blocks", wrap("blocks", blocks)));
  }
  if (!base.model.tied_embeddings) dimension.options.push_back(option("units of one block, embedding and head on their own", wrap("embedding_and_head", "1")));
  return dimension;
}

Dimension optimizers() {
  Dimension dimension{"optimizer", {}};
  for (const char* name : {"fused", "foreach"}) dimension.options.push_back(option(std::string(name) + " optimizer", {set("/optimizer/implementation", name)}));
  return dimension;
}

/// Whether gradients are reduced in every micro-batch; without accumulation the same.
Dimension reduction() { return flags("reduction", "/policy/no_sync", "reduce in every micro-batch", "reduce in the last micro-batch only", false); }

std::vector<Option> shardings(const std::vector<const char*>& names, bool hybrid_too) {
  std::vector<Option> options;
  for (const char* name : names) {
    const bool hybrid = std::string(name).find("HYBRID") != std::string::npos;
    if (!hybrid || hybrid_too) options.push_back(option(name, {set("/policy/sharding", name)}));
  }
  return options;
}

Product work_of(const scenarios::Scenario& base, const SpaceSettings& settings) {
  return Product({batches(base, settings.global_batch), recomputation(base), kernels(base), attention(base, settings.flash3), losses(base)});
}

Family fsdp1(const scenarios::Scenario& base, const SpaceSettings& settings) {
  const bool nodes = base.cluster.nodes > 1 && base.cluster.gpus_per_node > 1;
  Dimension sharding{"sharding", shardings({"FULL_SHARD", "SHARD_GRAD_OP", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2", "NO_SHARD"}, nodes)};
  Dimension backward{"backward prefetch", {}};
  for (const char* name : {"NONE", "BACKWARD_PRE", "BACKWARD_POST"}) backward.options.push_back(option(name, {set("/policy/backward_prefetch", name)}));
  Product order({backward, flags("forward prefetch", "/policy/forward_prefetch", "no forward prefetch", "forward prefetch", false),
                 flags("limiter", "/policy/limit_all_gathers", "limiter off", "limiter on", true)});
  return {"fsdp1", work_of(base, settings), Product({wrapping(base), optimizers(), reduction(), sharding}), std::move(order), 4};
}

Family fsdp2(const scenarios::Scenario& base, const SpaceSettings& settings) {
  const bool nodes = base.cluster.nodes > 1 && base.cluster.gpus_per_node > 1;
  Dimension sharding{"sharding", shardings({"FULL_SHARD", "HYBRID_SHARD"}, nodes)};
  const auto reshard_to = [](std::string words, const std::string& value) { return option(std::move(words), {set("/policy/reshard_after_forward", value)}); };
  Dimension reshard{"reshard", {reshard_to("reshard after the forward", "true"), reshard_to("keep after the forward", "false")}};
  if (nodes) reshard.options.push_back(reshard_to("reshard within the node", std::to_string(base.cluster.gpus_per_node)));
  Dimension forward{"forward prefetch", {}}, backward{"backward prefetch", {}};
  for (const char* depth : {"0", "1", "2"})
    forward.options.push_back(option(std::string("forward prefetch depth ") + depth, {set("/policy/forward_prefetch_depth", depth)}));
  for (const char* depth : {"1", "2"})
    backward.options.push_back(option(std::string("backward prefetch depth ") + depth, {set("/policy/backward_prefetch_depth", depth)}));
  return {"fsdp2", work_of(base, settings), Product({wrapping(base), optimizers(), reduction(), sharding, reshard}), Product({forward, backward}), 0};
}

Product allocator_settings() {
  return Product({{"allocator",
                   {option("allocator's defaults", {set("/allocator/expandable_segments", "false"), set("/allocator/max_split_size", "none")}),
                    option("expandable segments", {set("/allocator/expandable_segments", "true"), set("/allocator/max_split_size", "none")}),
                    option("max_split_size 512 MiB", {set("/allocator/expandable_segments", "false"), set("/allocator/max_split_size", "512 MiB")}),
                    option("max_split_size 128 MiB", {set("/allocator/expandable_segments", "false"), set("/allocator/max_split_size", "128 MiB")})}}});
}

/// The value of a set as JSON: as --set reads it.
OrderedJson value_of(const std::string& set) {
  const std::string text = set.substr(set.find('=') + 1);
  OrderedJson value = OrderedJson::parse(text, nullptr, false);
  return value.is_discarded() ? OrderedJson(text) : value;
}

/// Of each dimension only what leaves the fixed settings as they are; a dimension without such a choice is left at the fixed values.
Product kept(const Product& product, const OrderedJson& resolved, const std::vector<std::string>& fixed) {
  std::vector<Dimension> dimensions = product.dimensions();
  for (Dimension& dimension : dimensions) {
    std::vector<std::string> own;
    std::erase_if(dimension.options, [&](const Option& one) {
      return std::any_of(one.sets.begin(), one.sets.end(), [&](const std::string& text) {
        const std::string pointer = text.substr(0, text.find('='));
        if (std::find(fixed.begin(), fixed.end(), pointer) == fixed.end()) return false;
        const OrderedJson& value = resolved.at(OrderedJson::json_pointer(pointer));
        own.push_back(set(pointer, value.dump()));
        return value != value_of(text);
      });
    });
    if (dimension.options.empty()) dimension.options.push_back(option("as it is", {own.front()}));
  }
  return Product(std::move(dimensions));
}

}  // namespace

Product::Product(std::vector<Dimension> dimensions) : dimensions_(std::move(dimensions)) {
  for (const Dimension& dimension : dimensions_) size_ *= dimension.options.size();
}

std::vector<const Option*> Product::choices(std::size_t i) const {
  std::vector<const Option*> choices(dimensions_.size());
  for (std::size_t d = dimensions_.size(); d-- > 0;) {
    choices[d] = &dimensions_[d].options[i % dimensions_[d].options.size()];
    i /= dimensions_[d].options.size();
  }
  return choices;
}

std::size_t Space::points() const {
  std::size_t points = 0;
  for (const Family& family : families) points += family.work.size() * family.policy.size() * family.order.size() * allocators.size();
  return points;
}

Space space_of(const scenarios::Scenario& base, const SpaceSettings& settings) {
  const OrderedJson resolved = scenarios::to_json(base);
  for (const std::string& pointer : settings.fixed) {
    if (pointer.empty() || pointer[0] != '/' || pointer.find('~') != std::string::npos || !resolved.contains(OrderedJson::json_pointer(pointer)))
      throw InputError("--fix", "", "\"" + printable(pointer) + "\" is not a setting of the scenario", "for example /policy/framework");
  }
  const bool one = std::find(settings.fixed.begin(), settings.fixed.end(), "/policy/framework") != settings.fixed.end();
  const std::string own = spelled(scenarios::kFrameworks, base.policy.framework);
  Space space{{}, kept(allocator_settings(), resolved, settings.fixed)};
  for (Family family : {fsdp1(base, settings), fsdp2(base, settings)}) {
    if (one && family.framework != own) continue;
    const std::size_t orders = family.order.size();
    for (Product* product : {&family.work, &family.policy, &family.order}) *product = kept(*product, resolved, settings.fixed);
    if (family.order.size() != orders) family.typical = 0;
    space.families.push_back(std::move(family));
  }
  if (space.families.empty()) throw InputError("--fix", "/policy/framework", "\"" + own + "\" is not searched", "tune searches fsdp1 and fsdp2");
  return space;
}

}  // namespace stepcast::planner
