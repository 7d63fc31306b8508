// Rows of a table as scenarios: columns, facts, inferred values, and what cannot be said. cli/validate/row_scenario.hpp.
#include "cli/validate/row_scenario.hpp"
#include "support/text.hpp"

#include <doctest/doctest.h>

#include <map>

using namespace stepcast;
using calibration::Given, calibration::Run, calibration::SourceFacts, calibration::Sources;
using cli::NotExpressible, cli::RowScenario;
using Json = nlohmann::json;

namespace {

using Cells = std::map<std::string, std::string>;

const Cells kRow = {{"id", "r"},
                    {"source", "somewhere"},
                    {"model", "m"},
                    {"gpu", "a100-80gb"},
                    {"n_gpus", "16"},
                    {"framework", "fsdp1"},
                    {"sharding", "FULL_SHARD"},
                    {"micro_batch", "2"},
                    {"precision", "bf16"},
                    {"act_ckpt", "full"},
                    {"d_model", "512"},
                    {"n_layers", "2"},
                    {"n_heads", "8"},
                    {"ffn_dim", "2048"},
                    {"vocab", "1000"},
                    {"seq_len", "256"},
                    {"ffn_kind", "swiglu"}};

Run run_with(const Cells& changes, Given given = Given::stated) {
  Run run;
  Cells cells = kRow;
  for (const auto& [column, text] : changes) cells[column] = text;
  for (const auto& [column, text] : cells) {
    if (!text.empty()) run.cells.emplace(column, calibration::make_cell(column, text, changes.contains(column) ? given : Given::stated));
  }
  run.id = run.text("id");
  return run;
}

RowScenario said(const Cells& changes, Given given = Given::stated) {
  static const Sources sources;
  const Run run = run_with(changes, given);
  const SourceFacts facts = sources.of(run);
  return cli::row_scenario(calibration::completed(run, facts), facts);
}

Json at(const Cells& changes, const char* pointer) { return said(changes).document.value(Json::json_pointer(pointer), Json()); }

std::string refusal(const Cells& changes) {
  try {
    static_cast<void>(said(changes));
  } catch (const NotExpressible& reason) { return reason.what(); }
  return "accepted";
}

using stepcast::test::has;

}  // namespace

TEST_CASE("a row of an unknown source becomes a scenario by its columns, and says what was assumed") {
  const RowScenario row = said({});
  const Sources sources;
  const Run run = run_with({});
  std::vector<std::string> notes;
  const auto scenario = cli::scenario_of_row(run, sources.of(run), notes);
  CHECK(scenario.cluster.nodes == 2);
  CHECK(scenario.cluster.gpu == "a100-sxm4-80gb");
  CHECK(scenario.model.hidden == 512);
  CHECK(scenario.batch.micro_batch == 2);
  CHECK(scenario.recompute.mode == program::RecomputeMode::full);
  CHECK(scenario.precision.reduce == hw::Dtype::bf16);
  CHECK(row.notes == notes);
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) { return has(note, "unknown source"); }));
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) { return has(note, "network of the node profile dgx-a100"); }));
}

TEST_CASE("frameworks by their words") {
  CHECK(at({{"framework", "fsdp2 (torchtitan)"}, {"sharding", "full"}}, "/policy/framework") == "fsdp2");
  CHECK(at({{"framework", "ddp (Megatron)"}, {"sharding", "none (DDP)"}}, "/policy/framework") == "ddp");
  CHECK(at({{"framework", "zero3 (DeepSpeed)"}, {"sharding", "ZeRO-3"}}, "/policy/framework") == "zero3");
  CHECK(at({{"framework", "InternEvo"}, {"sharding", "ZeRO-1 over all data-parallel ranks"}}, "/policy/framework") == "zero1");
  CHECK(at({{"framework", "InternEvo"}, {"sharding", "ZeRO-1 inside groups of 8"}, {"n_gpus", "8"}}, "/policy/framework") == "zero1");
  CHECK(at({{"framework", "InternEvo"}, {"sharding", "ZeRO-1 inside groups of 8"}, {"n_gpus", "16"}}, "/policy/shard_group_size") == 8);
  CHECK(has(refusal({{"framework", "InternEvo"}, {"sharding", "ZeRO-2 inside groups of 8"}, {"n_gpus", "16"}}), "inside groups"));
  CHECK(at({{"framework", "single GPU"}, {"sharding", "none"}, {"n_gpus", "1"}}, "/policy/framework") == "fsdp1");
  CHECK(at({{"sharding", "HYBRID_SHARD"}}, "/policy/sharding") == "HYBRID_SHARD");
  CHECK(has(refusal({{"framework", "JAX pjit (Pax)"}}), "XLA"));
  CHECK(has(refusal({{"framework", "home-made"}, {"sharding", "some"}}), "framework is not modelled: home-made"));
}

TEST_CASE("products in 8 bits: whose recipe it is, by the words of the source") {
  CHECK(at({{"precision", "amp_fp8"}}, "/precision/matmul") == "fp8-delayed");
  CHECK(at({{"precision", "FP8-CS"}}, "/precision/matmul") == "fp8-tensorwise");
  CHECK(at({{"precision", "amp_fp8"}}, "/precision/param") == "bf16");
  CHECK(at({{"framework", "fsdp2"}, {"precision", "float8 linear (all-gather in fp8), bf16 rest"}}, "/precision/matmul") == "fp8-tensorwise");
  CHECK(at({{"framework", "fsdp2"}, {"precision", "float8 linear (all-gather in fp8), bf16 rest"}}, "/precision/fp8_all_gather") == true);
}

TEST_CASE("offload by its words, where the framework has it") {
  const char* pointer = "/policy/cpu_offload";
  CHECK(at({{"framework", "fsdp1"}, {"offload", "parameters to CPU"}}, pointer) == "parameters");
  CHECK(at({{"framework", "fsdp2"}, {"offload", "CPU (with fused optimizer)"}}, pointer) == "parameters");
  CHECK(at({{"framework", "zero3"}, {"offload", "parameters and optimizer to CPU"}}, pointer) == "parameters");
  CHECK(at({{"framework", "zero2"}, {"offload", "optimizer to CPU; see source"}}, pointer) == "optimizer");
  CHECK(at({{"offload", "none"}}, pointer).is_null());
  CHECK(has(refusal({{"framework", "zero3"}, {"offload", "CPU"}}), "offload: cpu"));
  CHECK(has(refusal({{"framework", "ddp"}, {"sharding", "none (DDP)"}, {"offload", "CPU"}}), "offload: cpu"));
}

TEST_CASE("what cannot be said is refused with the reason") {
  CHECK(has(refusal({{"tp", "8"}}), "tensor parallelism"));
  CHECK(has(refusal({{"pp", "2"}}), "pipeline parallelism"));
  CHECK(has(refusal({{"precision", "FP8-MX"}}), "8 bits"));
  CHECK(has(refusal({{"offload", "activations"}}), "offload: activations"));
  CHECK(has(refusal({{"model", "x LoRA"}}), "LoRA"));
  CHECK(has(refusal({{"gpu", "tpu-v4"}}), "no profile for the GPU \"tpu-v4\""));
  CHECK(has(refusal({{"n_gpus", "12"}}), "12 GPUs do not fill nodes of 8"));
  CHECK(has(refusal({{"micro_batch", ""}}), "micro-batch is not known"));
  CHECK(has(refusal({{"d_model", ""}, {"vocab", ""}}), "not known: hidden, vocab"));
}

TEST_CASE("batches: accumulation and micro-batch follow from the global batch") {
  CHECK(at({{"global_batch_seqs", "128"}}, "/batch/grad_accum") == 4);
  CHECK(at({{"micro_batch", ""}, {"grad_accum", "2"}, {"global_batch_seqs", "128"}}, "/batch/micro_batch") == 4);
  const auto notes = said({{"grad_accum", "3"}, {"global_batch_seqs", "128"}}).notes;
  CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string& note) { return has(note, "do not multiply"); }));
}

TEST_CASE("networks in words") {
  const auto words = [](const char* text) {
    const auto network = cli::network_words(text);
    return network ? std::tuple(network->nics, network->gbit, network->per_gpu) : std::tuple(std::int64_t{-1}, 0.0, false);
  };
  CHECK(words("4 x 100 Gb/s RoCE between machines") == std::tuple(4, 100.0, false));
  CHECK(words("400 Gb/s per GPU") == std::tuple(0, 400.0, true));
  CHECK(words("1600 Gbps RoCE") == std::tuple(0, 1600.0, false));
  CHECK(words("3.2 Tb/s") == std::tuple(0, 3200.0, false));
  CHECK(words("2 dual-port HDR adapters per node, 400 Gb/s aggregated") == std::tuple(0, 400.0, false));
  CHECK(words("InfiniBand") == std::tuple(-1, 0.0, false));
  CHECK(words("Gb") == std::tuple(-1, 0.0, false));
}

TEST_CASE("a network that differs from the profile's is put in its place; the same one is left alone") {
  CHECK(at({{"interconnect", "4 x 100 Gb/s"}}, "/cluster/nics_per_node") == 4);
  CHECK(at({{"interconnect", "4 x 100 Gb/s"}}, "/cluster/nic_rate") == "100000 Mb/s");
  CHECK(at({{"interconnect", "8 x 200 Gb/s"}}, "/cluster/nic_rate").is_null());
  CHECK(at({{"interconnect", "4 x 100 Gb/s"}, {"n_gpus", "8"}}, "/cluster/nic_rate").is_null());
}

TEST_CASE("recomputation: words, and shares from the row's own HFU and MFU") {
  const auto mode = [](const char* mfu, const char* hfu) {
    const Json document = said({{"act_ckpt", "selective-fraction"}, {"mfu", mfu}, {"hfu", hfu}}).document["recompute"];
    return std::pair(document["mode"].get<std::string>(), document.value("share", 0.0));
  };
  CHECK(mode("0.51", "0.59") == std::pair(std::string("share"), 0.47));  // 3 (59/51 - 1)
  CHECK(mode("0.55", "0.74") == std::pair(std::string("full"), 0.0));
  CHECK(mode("0.38", "0.47") == std::pair(std::string("share"), 0.71));
  CHECK(mode("0.50", "0.50") == std::pair(std::string("none"), 0.0));
  CHECK(mode("0.43", "0.46") == std::pair(std::string("share"), 0.21));
  CHECK(mode("0.60", "0.61") == std::pair(std::string("none"), 0.0));  // 0.05
  CHECK(at({{"act_ckpt", "selective-layer-2"}}, "/recompute/mode") == "every_k");
  CHECK(at({{"act_ckpt", "selective-op"}}, "/recompute/mode") == "per_op");
}

TEST_CASE("stated cells win over facts, facts over loose words") {
  const Cells foundry = {{"source", "mosaicml/llm-foundry scripts/train/benchmarking/README.md @a7d6a4475"}, {"ffn_kind", "gelu"}, {"ffn_dim", ""}};
  Cells row = foundry;
  CHECK(at(row, "/model/ffn") == 2048);
  CHECK(at(row, "/model/max_positions") == 256);
  CHECK(at(row, "/policy/release") == "before-2.1");
  row = {{"source", "mosaicml/llm-foundry ... (2024-01)"}, {"attention", "flash"}, {"ffn_kind", "gelu"}};
  CHECK(at(row, "/kernels/attention") == "flash2");
  row["attention"] = "triton";
  CHECK(at(row, "/kernels/attention") == "triton");
}

TEST_CASE(
    "torchtune's table is cumulative: its last rows have the chunked loss and, fused into the backward, the optimizer; such a single GPU has no flat "
    "parameters") {
  const Cells one{{"source", "pytorch/torchtune README"}, {"n_gpus", "1"}, {"framework", "single GPU (torchtune)"}, {"sharding", "none"}};
  const auto with_note = [&](const char* note) {
    Cells row = one;
    row["note"] = note;
    return row;
  };
  const Cells before = with_note("cumulative: + chunked cross-entropy"), after = with_note("cumulative: + optimizer step fused into backward");
  CHECK(at(before, "/policy/framework") == "fsdp1");
  CHECK(at(before, "/optimizer/in_backward").is_null());
  CHECK(at(after, "/policy/framework") == "ddp");
  CHECK(at(after, "/optimizer/in_backward") == true);
  CHECK(at(after, "/optimizer/clip_grad_norm") == false);
  CHECK(at(after, "/kernels/loss") == "fused");  // the chunks are those of the loss: bf16 logits stay
}
