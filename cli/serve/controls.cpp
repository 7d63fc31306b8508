// See controls.hpp. The values are the page's reach, not the format's: sizes that a browser's user tries, none of which makes a forecast take minutes.
#include "cli/serve/controls.hpp"

#include <algorithm>

namespace stepcast::cli {
namespace {

using enum ControlKind;

constexpr ControlNeed kShare{"/recompute/mode", "share", "belongs to recomputation of a share of the blocks (share)"};
constexpr ControlNeed kEveryK{"/recompute/mode", "every_k", "belongs to recomputation of every k-th block (every_k)"};
constexpr ControlNeed kPerOp{"/recompute/mode", "per_op", "belongs to recomputation of chosen kernels (per_op)"};

const nlohmann::json& flags() {
  static const nlohmann::json kFlags = {false, true};
  return kFlags;
}

std::vector<Control> batch_controls() {
  return {{"/batch/micro_batch", "Micro-batch", "Batch", slider, {1, 2, 4, 8, 16, 32, 64}, false, false},
          {"/batch/grad_accum", "Gradient accumulation", "Batch", slider, {1, 2, 4, 8, 16, 32}, false, false},
          {"/batch/seq_len", "Sequence length", "Batch", slider, {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}, false, false},
          {"/cluster/nodes", "Nodes", "Batch", slider, {1, 2, 4, 8, 16, 32, 64, 128, 256}, false, false}};
}

std::vector<Control> policy_controls() {
  const char* group = "Sharding and prefetch";
  return {{"/policy/framework", "Framework", group, choice, {"fsdp1", "fsdp2", "ddp", "zero1", "zero2", "zero3"}, true},
          {"/policy/sharding", "Sharding", group, choice, {"FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"}},
          {"/policy/backward_prefetch", "Backward prefetch", group, choice, {"BACKWARD_PRE", "BACKWARD_POST", "NONE"}},
          {"/policy/forward_prefetch", "Forward prefetch", group, toggle, flags()},
          {"/policy/limit_all_gathers", "Limit all-gathers", group, toggle, flags()},
          {"/policy/reshard_after_forward", "Reshard after forward", group, choice, {false, true, 2, 4, 8}},
          {"/policy/forward_prefetch_depth", "Forward prefetch depth", group, slider, {0, 1, 2, 3, 4}},
          {"/policy/backward_prefetch_depth", "Backward prefetch depth", group, slider, {1, 2, 3, 4}},
          {"/policy/wrap", "Units", group, choice, {"blocks", "embedding_and_head", "attention_and_ffn", "linears", "size_based", "model"}},
          {"/policy/blocks_per_unit", "Blocks per unit", group, slider, {1, 2, 4, 8}},
          {"/policy/no_sync", "No reduction before the last micro-batch", group, toggle, flags()},
          {"/policy/overlap_comm", "Overlap communication (ZeRO)", group, toggle, flags()},
          {"/policy/cpu_offload", "Offload to the host", group, choice, {"none", "optimizer", "parameters"}}};
}

std::vector<Control> compute_controls() {
  const char* group = "Kernels and recomputation";
  return {{"/recompute/mode", "Recomputation", group, choice, {"none", "full", "every_k", "share", "per_op"}, true},
          {"/recompute/every", "Every k-th block", group, slider, {1, 2, 3, 4, 8}, false, true, kEveryK},
          {"/recompute/share", "Share of the blocks", group, slider, {0.25, 0.5, 0.6, 0.7, 0.8, 0.9}, false, true, kShare},
          {"/recompute/ops",
           "Recomputed kernels",
           group,
           choice,
           {"attention", "all_but_attention", "all_but_matmul", "all_but_every_second_matmul"},
           false,
           true,
           kPerOp},
          {"/kernels/set", "Kernels", group, choice, {"pytorch-eager", "pytorch-compile", "megatron"}, true},
          {"/kernels/attention", "Attention", group, choice, {"flash1", "flash2", "flash3", "triton", "efficient", "unfused"}},
          {"/kernels/loss", "Loss", group, choice, {"eager_fp32", "fused", "fused_fp32", "chunked"}},
          {"/kernels/fused_norm", "Fused norm", group, toggle, flags()},
          {"/precision/reduce", "Gradients reduced in", group, choice, {"bf16", "fp16", "fp32"}},
          {"/precision/matmul", "Products in", group, choice, {"param", "tf32", "fp8-tensorwise", "fp8-delayed", "fp8-rowwise", "fp8-blockwise"}},
          {"/optimizer/implementation", "Optimizer", group, choice, {"for_loop", "foreach", "fused"}},
          {"/optimizer/clip_grad_norm", "Clip gradients", group, toggle, flags()}};
}

std::vector<Control> host_controls() {
  const char* group = "Host, data, allocator";
  return {{"/loader/batch_time", "A worker's time for a micro-batch", group, slider, {"0 s", "20 ms", "50 ms", "100 ms", "250 ms", "500 ms", "1 s", "2 s"}},
          {"/loader/workers", "Loader workers", group, slider, {0, 1, 2, 4, 8, 16}},
          {"/host/scale", "Host costs times", group, slider, {0.5, 0.75, 1.0, 1.5, 2.0, 3.0}},
          {"/host/sync_each_step", "Wait for the device each step", group, toggle, flags()},
          {"/allocator/expandable_segments", "Expandable segments", group, toggle, flags()}};
}

}  // namespace

const std::vector<Control>& controls() {
  static const std::vector<Control> kControls = [] {
    std::vector<Control> all;
    for (auto part : {batch_controls(), policy_controls(), compute_controls(), host_controls()})
      for (Control& control : part) all.push_back(std::move(control));
    return all;
  }();
  return kControls;
}

const Control* find_control(std::string_view pointer) {
  const auto found = std::find_if(controls().begin(), controls().end(), [&](const Control& control) { return pointer == control.pointer; });
  return found == controls().end() ? nullptr : &*found;
}

}  // namespace stepcast::cli
