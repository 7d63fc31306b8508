// Framework, sharding and prefetching, and the types of the step. Test: tests/unit/inference_test.cpp.
#include <fmt/format.h>

#include <algorithm>

#include "cli/diagnose/infer.hpp"
#include "cli/diagnose/issue_order.hpp"
#include "cli/diagnose/units.hpp"
#include "hw_models/input_error.hpp"
#include "scenarios/names.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

struct NamedFramework {
  const char *part, *framework;
};
// Ranges and operators that the frameworks record.
constexpr NamedFramework kFrameworkNames[] = {{"FullyShardedDataParallel", "fsdp1"},
                                              {"FSDP::", "fsdp2"},
                                              {"DistributedDataParallel", "ddp"},
                                              {"PartitionedParameterCoordinator", "zero3"},
                                              {"fetch_sub_module", "zero3"}};

class PolicyInference {
 public:
  PolicyInference(const TraceView& trace, ScenarioDraft& draft)
      : trace_(trace),
        draft_(draft),
        forwards_(std::max(1.0, micro_batches(trace.work)) * static_cast<double>(trace.work.steps)),
        order_(issue_order(trace.work, forwards_)) {}

  void all() {
    framework();
    const std::string name = draft_.text("/policy/framework");
    if (name == "fsdp1") fsdp1();
    if (name == "fsdp2") fsdp2();
    if (name == "fsdp1" || name == "fsdp2") units();
    accumulation();
    precision();
    tensor_parallel();
    other_parallelism();
  }

 private:
  void framework() {
    for (const NamedFramework& known : kFrameworkNames) {
      if (trace_.mentions(known.part)) return draft_.seen("/policy/framework", known.framework, fmt::format("names with {}", known.part));
    }
    if (trace_.mentions("DeepSpeed")) return draft_.guess("/policy/framework", "zero2", "names with DeepSpeed");
    if (order_.forward_gathers > 0) return draft_.guess("/policy/framework", "fsdp1", "all-gathers in the forward; no name tells which framework");
    draft_.guess("/policy/framework", "ddp", order_.all_reduces > 0 ? "all-reduces of gradients, and no all-gathers in the forward" : "nothing is gathered");
  }

  void fsdp1() {
    const bool replicas = order_.forward_gathers > 0 && order_.all_reduces > 0;
    if (order_.forward_gathers == 0) {
      draft_.seen("/policy/sharding", "NO_SHARD", "nothing is gathered");
    } else if (order_.backward_gathers > 0) {
      draft_.seen("/policy/sharding", replicas ? "HYBRID_SHARD" : "FULL_SHARD", "all-gathers in the backward, too");
    } else {
      draft_.seen("/policy/sharding", replicas ? "_HYBRID_SHARD_ZERO2" : "SHARD_GRAD_OP", "all-gathers in the forward alone");
    }
    if (replicas && order_.forward_ranks > 1 && order_.forward_ranks != draft_.number("/cluster/gpus_per_node"))
      draft_.seen("/policy/shard_group_size", order_.forward_ranks, "ranks of the all-gathers");
    if (draft_.number("/model/lora_rank") > 0) draft_.guess("/policy/use_orig_params", true, "what is trained and what is not lie in one unit, which needs it");
    if (order_.backward_gathers > 0) backward_prefetch();
    if (order_.forward_gathers > 2) draft_.seen("/policy/forward_prefetch", order_.before_first > 2, before_first());
    if (trace_.mentions("rate_limiter")) draft_.seen("/policy/limit_all_gathers", true, "ranges of the rate limiter");
  }

  [[nodiscard]] std::string before_first() const { return fmt::format("{} all-gathers are issued before the first product of a forward", order_.before_first); }

  void backward_prefetch() {
    if (order_.reductions == 0) return draft_.guess("/policy/backward_prefetch", "BACKWARD_PRE", "the default; nothing is reduced in the file");
    if (order_.lead == 0) return draft_.seen("/policy/backward_prefetch", "NONE", "each all-gather of a backward is issued behind the reduction before it");
    draft_.seen("/policy/backward_prefetch", order_.before_computation ? "BACKWARD_PRE" : "BACKWARD_POST",
                order_.before_computation ? "an all-gather of a backward is issued before the computation of the unit before it"
                                          : "an all-gather of a backward is issued between the computation of the unit before it and its reduction");
  }

  void fsdp2() {
    draft_.seen("/policy/sharding", order_.forward_gathers > 0 && order_.all_reduces > 0 ? "HYBRID_SHARD" : "FULL_SHARD", "groups that gather and reduce");
    if (order_.forward_gathers > 2 && order_.backward_gathers == 0) draft_.seen("/policy/reshard_after_forward", false, "all-gathers in the forward alone");
    else if (order_.backward_ranks > 1 && order_.backward_ranks < order_.forward_ranks)
      draft_.seen("/policy/reshard_after_forward", order_.backward_ranks, "ranks of the all-gathers in the backward");
    else if (order_.backward_gathers > 0) draft_.seen("/policy/reshard_after_forward", true, "all-gathers in the backward, too");
    if (order_.forward_gathers > 2) draft_.seen("/policy/forward_prefetch_depth", std::max<std::int64_t>(0, order_.before_first - 2), before_first());
    if (order_.backward_gathers > 0 && order_.lead > 0) draft_.seen("/policy/backward_prefetch_depth", order_.lead, "all-gathers that a backward issues ahead");
  }

  void units() {
    const InferredKey* layers = draft_.find("/model/layers");
    const bool known =
        draft_.find("/model") || (layers && layers->certainty != Certainty::missing && draft_.number("/model/vocab") > 0 && draft_.number("/model/ffn") > 0);
    if (!known) return;
    const auto gathered = gathered_units(trace_.work, forwards_);
    if (gathered.empty()) return draft_.guess("/policy/wrap", "blocks", "sizes of all-gathers are not recorded");
    const auto shape = model();
    const auto seen = shape ? units_seen(gathered, *shape) : std::nullopt;
    if (!seen) return draft_.guess("/policy/wrap", "blocks", "the sizes of the all-gathers are those of no way to wrap this model that is tried");
    draft_.seen("/policy/wrap", spelled(scenarios::kWraps, seen->wrap), "sizes of the all-gathers");
    if (seen->blocks_per_unit > 1) draft_.seen("/policy/blocks_per_unit", seen->blocks_per_unit, "sizes of the all-gathers");
    if (seen->ends_known && !draft_.find("/model")) draft_.seen("/model/tied_embeddings", seen->tied, "size of the unit that holds the embedding");
  }

  /// The model as the draft has it, for its sizes alone: on any machine.
  [[nodiscard]] std::optional<program::ModelShape> model() const {
    const nlohmann::ordered_json own = draft_.document("model");
    const nlohmann::ordered_json scenario = {
        {"model", own.at("model")}, {"cluster", {{"node", "dgx-a100"}, {"nodes", 1}}}, {"batch", {{"seq_len", 1}}}, {"policy", {{"use_orig_params", true}}}};
    try {
      return scenarios::read_scenario_text(scenario.dump(), "inferred model").model;
    } catch (const InputError&) {
      return {};  // its sizes contradict each other; whoever reads the scenario is told how
    }
  }

  /// Reductions of each unit in a step against micro-batches.
  void accumulation() {
    const double micro_batch_count = micro_batches(trace_.work);
    const bool sharded = order_.reductions > 0;
    const double per_forward = sharded ? order_.reductions : order_.all_reduces;
    if (micro_batch_count < 1.5 || per_forward == 0) return;
    const double units = sharded ? std::max(1.0, order_.forward_gathers) : per_forward * micro_batch_count;
    const bool once = per_forward < 0.75 * units;
    if (sharded) draft_.seen("/policy/no_sync", once, "reductions against units and micro-batches");
    else draft_.guess("/policy/no_sync", true, "all-reduces of gradients over several micro-batches");
  }

  void precision() {
    std::map<hw::Dtype, double> flop;
    for (const profile::CountedProduct& p : trace_.work.products) {
      if (p.dtype) flop[*p.dtype] += p.product.flop() * static_cast<double>(p.count);
    }
    const auto most = std::max_element(flop.begin(), flop.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::optional<hw::Dtype> param = most != flop.end() && most->first != hw::Dtype::fp8 ? std::optional(most->first) : order_.gathered;
    if (!param || *param == hw::Dtype::fp8) return draft_.guess("/precision/param", "bf16", "no product's type is recorded");
    draft_.seen("/precision/param", hw::name(*param), "type of the products' operands");
    if (draft_.text("/policy/framework") == "ddp")
      return draft_.guess("/precision/master", "fp32", "what is usual");  // it reduces in the type of the parameters
    if (order_.reduced) draft_.seen("/precision/reduce", hw::name(*order_.reduced), "type of the reductions of gradients");
    else draft_.guess("/precision/reduce", hw::name(*param), "no reduction's type is recorded");
    const bool wide = *param == hw::Dtype::fp32 || *param == hw::Dtype::fp64;
    draft_.guess("/precision/master", wide ? hw::name(*param) : "fp32", "what is usual");
  }

  /// All-reduces in the forward (or, with the sequence divided too, reduce-scatters) add up what ranks computed of one layer: each has a part of the heads, of the feed-forward
  /// network and of the vocabulary.
  void tensor_parallel() {
    const bool scatters = sends("reducescatter", true);
    if ((order_.forward_all_reduces < 1 && !scatters) || draft_.find("/model")) return;
    const std::string what = scatters ? "reduce-scatters" : "all-reduces";
    draft_.unsupported("/tensor_parallel",
                       what + " in the forward are those of tensor parallelism, which the simulator does not have: sizes are this rank's part");
    for (const char* pointer : {"/model/heads", "/model/kv_heads", "/model/ffn", "/model/vocab"}) {
      const InferredKey* key = draft_.find(pointer);
      if (key && key->certainty != Certainty::missing)
        draft_.guess(pointer, key->value, "this rank's part, if the " + what + " in the forward are those of tensor parallelism");
    }
  }

  void other_parallelism() {
    if (sends("sendrecv", false))
      draft_.unsupported("/pipeline_parallel", "sends and receives, of pipeline stages or of all-to-alls, which the simulator does not have");
    if (sends("alltoall", false) || sends("dispatch", false))
      draft_.unsupported("/expert_parallel", "all-to-alls, as between experts on several ranks, which the simulator does not have");
  }

  /// Collectives of a type, in the whole step or in its forwards: there at least one each.
  [[nodiscard]] bool sends(std::string_view type, bool in_forward) const {
    const auto count = std::count_if(trace_.work.order.begin(), trace_.work.order.end(), [&](const profile::Issued& issued) {
      return issued.message && trace_.work.messages[*issued.message].type == type && (!in_forward || issued.pass == Pass::forward);
    });
    return static_cast<double>(count) >= (in_forward ? forwards_ : 1);
  }

  const TraceView& trace_;
  ScenarioDraft& draft_;
  double forwards_;
  IssueOrder order_;
};

}  // namespace

void infer_policy(const TraceView& trace, ScenarioDraft& draft) { PolicyInference(trace, draft).all(); }

}  // namespace stepcast::cli
