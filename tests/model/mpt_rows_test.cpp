// MPT-7B, FULL_SHARD, sequences of 2048, on 8 to 128 A100: measured tokens/s/GPU of mosaicml/llm-foundry, scripts/train/benchmarking/README.md (table of 2023-04),
// against the forecast with one A100 profile. That sweep: torch 1.13, Triton flash attention, parameters and reduction in bf16, limiter on, Composer's BACKWARD_POST,
// full non-reentrant checkpointing, 1600 Gb/s RoCE between nodes of 8.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/forecast.hpp"

using namespace stepcast;

namespace {

struct Row {
  const char* gpu;
  int gpus, micro_batch, grad_accum;
  double tokens_per_s_per_gpu;
};
constexpr Row kRows[] = {{"a100-sxm4-80gb", 8, 32, 2, 3824.5},
                         {"a100-sxm4-80gb", 32, 32, 1, 3697.19},
                         {"a100-sxm4-40gb", 64, 18, 1, 3665.84},
                         {"a100-sxm4-40gb", 128, 18, 1, 3623.04}};

constexpr const char* kScenario = R"({
  "schema": "stepcast.scenario/1", "name": "mpt-7b",
  "model": {"style": "gpt", "hidden": 4096, "layers": 32, "heads": 32, "ffn": 16384, "ffn_kind": "gelu", "vocab": 50368, "norm": "layer_norm",
            "positions": "learned", "max_positions": 2048, "tied_embeddings": true, "biases": {"qkv": true, "output": true, "ffn": true, "norm": true}},
  "cluster": {"node": "roce-1600", "gpus_per_node": 8},
  "policy": {"sharding": "FULL_SHARD", "backward_prefetch": "BACKWARD_POST"},
  "batch": {"seq_len": 2048},
  "precision": {"param": "bf16", "reduce": "bf16"},
  "recompute": {"mode": "full", "early_stop": false},
  "kernels": {"attention": "triton", "loss": "fused"},
  "optimizer": {"implementation": "for_loop"}})";

}  // namespace

TEST_CASE("MPT-7B on 8 to 128 A100: every row within 6 %") {
  for (const Row& row : kRows) {
    const auto report =
        test::forecast_text(kScenario, {std::string("/cluster/gpu=\"") + row.gpu + "\"", "/cluster/nodes=" + std::to_string(row.gpus / 8),
                                        "/batch/micro_batch=" + std::to_string(row.micro_batch), "/batch/grad_accum=" + std::to_string(row.grad_accum)})
            .report;
    REQUIRE(report.outcome == "ok");
    const double error = report.tokens_per_s_per_gpu / row.tokens_per_s_per_gpu - 1;
    MESSAGE(std::string(row.gpu) << " x " << row.gpus << ": measured " << row.tokens_per_s_per_gpu << ", forecast " << report.tokens_per_s_per_gpu
                                 << " tokens/s/GPU, error " << std::round(error * 1000) / 10 << " %");
    CHECK(std::abs(error) < 0.06);
  }
}
