// Configuration files of training frameworks: what each becomes, and that every key is used, ignored for a reason, or refused. docs/import.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "program/model.hpp"
#include "scenarios/import/import.hpp"
#include "support/paths.hpp"
#include "support/text.hpp"

using namespace stepcast;
using program::Framework, program::RecomputeMode, program::Sharding, scenarios::import_configs, scenarios::Scenario;

namespace {

Scenario imported(const std::string& name, const std::string& text, const std::string& model = "llama-2-7b", const std::string& cluster = "dgx-a100-4") {
  return scenarios::read_scenario_text(import_configs({{name, text}}, model, cluster).document.dump(), name);
}

std::string refusal(const std::string& name, const std::string& text, const std::string& model = "llama-2-7b", const std::string& cluster = "dgx-a100-4") {
  try {
    import_configs({{name, text}}, model, cluster);
  } catch (const InputError& error) { return error.what(); }
  return "";
}

using stepcast::test::has;

bool ignores(const scenarios::ImportedConfigs& configs, const std::string& key) {
  return std::any_of(configs.ignored.begin(), configs.ignored.end(), [&](const auto& one) { return one.key == key && !one.reason.empty(); });
}

}  // namespace

TEST_CASE("accelerate with FSDP1: strategy, prefetch, wrapping, checkpointing, offloading, precision, processes") {
  const std::string text = R"(distributed_type: FSDP
mixed_precision: bf16
num_machines: 2
num_processes: 16
machine_rank: 0
fsdp_config:
  fsdp_sharding_strategy: HYBRID_SHARD
  fsdp_backward_prefetch: NO_PREFETCH
  fsdp_forward_prefetch: true
  fsdp_use_orig_params: true
  fsdp_auto_wrap_policy: SIZE_BASED_WRAP
  fsdp_min_num_params: 150000000
  fsdp_activation_checkpointing: true
  fsdp_state_dict_type: SHARDED_STATE_DICT
)";
  const Scenario s = imported("a.yaml", text, "llama-2-7b", "dgx-a100");
  CHECK(s.policy.framework == Framework::fsdp1);
  CHECK(s.policy.sharding == Sharding::hybrid_shard);
  CHECK(s.policy.backward_prefetch == program::BackwardPrefetch::none);
  CHECK(s.policy.forward_prefetch);
  CHECK(s.policy.use_orig_params);
  CHECK(s.policy.wrap == program::Wrap::size_based);
  CHECK(s.policy.min_unit_parameters == 150000000);  // a block is large enough, none of its parts
  CHECK(s.recompute.mode == RecomputeMode::full);
  CHECK(s.cluster.nodes == 2);
  CHECK(s.cluster.gpus_per_node == 8);
  const auto configs = import_configs({{"a.yaml", text}}, "llama-2-7b", "dgx-a100");
  CHECK(ignores(configs, "machine_rank"));
  CHECK(ignores(configs, "fsdp_config.fsdp_state_dict_type"));
  CHECK(imported("a.yaml", "distributed_type: FSDP\nfsdp_config: {fsdp_sharding_strategy: 2}\n").policy.sharding == Sharding::shard_grad_op);
}

TEST_CASE("accelerate with FSDP2, and as DDP") {
  const Scenario s = imported(
      "a.yaml",
      "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false, fsdp_forward_prefetch: true}\n"
      "parallelism_config: {parallelism_config_dp_replicate_size: 4, parallelism_config_dp_shard_size: 8}\ndynamo_config: {dynamo_backend: INDUCTOR}\n");
  CHECK(s.policy.framework == Framework::fsdp2);
  CHECK(s.policy.reshard_after_forward == program::kKeepAfterForward);
  CHECK(s.policy.sharding == Sharding::hybrid_shard);
  CHECK(s.policy.shard_group_size == 8);
  CHECK(s.kernels.set == program::KernelSet::pytorch_compile);
  CHECK(imported("a.yaml", "distributed_type: MULTI_GPU\nmixed_precision: bf16\n").policy.framework == Framework::ddp);
}

TEST_CASE("torchtitan: its defaults where the file is silent, and what it says") {
  const Scenario plain = imported("t.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n", "");
  CHECK(plain.policy.framework == Framework::fsdp2);
  CHECK(plain.policy.wrap == program::Wrap::embedding_and_head);
  CHECK(plain.recompute.mode == RecomputeMode::every_k);
  CHECK(plain.recompute.every == 2);
  CHECK(plain.precision.reduce == hw::Dtype::fp32);
  CHECK(plain.model.kv_heads == 8);
  const Scenario said = imported(
      "t.toml",
      "[training]\nlocal_batch_size = 2\nglobal_batch_size = 256\nseq_len = 4096\n[parallelism]\ndata_parallel_replicate_degree = "
      "4\ndata_parallel_shard_degree = 8\n"
      "fsdp_reshard_after_forward = \"never\"\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n[compile]\nenable = true\n");
  CHECK(said.batch == program::Batch{2, 4, 4096});
  CHECK(said.policy.sharding == Sharding::hybrid_shard);
  CHECK(said.policy.reshard_after_forward == program::kKeepAfterForward);
  CHECK(said.recompute.mode == RecomputeMode::per_op);
  CHECK(said.recompute.ops == program::RecomputeOps::all_but_every_second_matmul);
  CHECK(said.kernels.set == program::KernelSet::pytorch_compile);
  CHECK(said.kernels.loss == program::Loss::fused);
  CHECK(has(refusal("t.toml", "[training]\nseq_len = 1\n[parallelism]\ntensor_parallel_degree = 8\n"), "parallelism.tensor_parallel_degree"));
}

TEST_CASE("DeepSpeed: stages, buckets, offloading, automatic values, floats as counts") {
  const Scenario s = imported(
      "d.json",
      R"({"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto", "train_batch_size": 128, "bf16": {"enabled": true}, "gradient_clipping": 1.0,
    "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 1e7, "reduce_bucket_size": 2e7, "overlap_comm": false, "sub_group_size": 1e9, "offload_optimizer": {"device": "cpu", "pin_memory": true}}})");
  CHECK(s.policy.framework == Framework::zero3);
  CHECK(s.policy.stage3_prefetch_bucket_size == 10000000);
  CHECK(s.policy.reduce_bucket_size == 20000000);
  CHECK(!s.policy.overlap_comm);
  CHECK(s.policy.cpu_offload == program::CpuOffload::optimizer);
  CHECK(s.batch.grad_accum == 2);
  CHECK(s.optimizer.clip_grad_norm);
  const auto configs = import_configs({{"d.json", R"({"train_batch_size": 32, "zero_optimization": {"stage": 1, "stage3_max_live_parameters": 1e9}})"}},
                                      "llama-2-7b", "dgx-a100-4");
  CHECK(ignores(configs, "zero_optimization.stage3_max_live_parameters"));
  CHECK(configs.document["precision"]["param"] == "fp32");
  CHECK(has(refusal("d.json", R"({"train_batch_size": 33, "zero_optimization": {"stage": 1}})"), "can't be divided"));
}

TEST_CASE("llm-foundry: the model in the file, interpolation, accumulation from the global batch") {
  const std::string text = R"(variables: {max_seq_len: 2048}
max_seq_len: ${variables.max_seq_len}
global_train_batch_size: 512
device_train_microbatch_size: 8
precision: amp_bf16
model: {name: mpt_causal_lm, d_model: 4096, n_heads: 32, n_layers: 32, expansion_ratio: 4, vocab_size: 50368, max_seq_len: "${max_seq_len}", no_bias: true, attn_config: {attn_impl: flash}}
fsdp_config: {sharding_strategy: SHARD_GRAD_OP, mixed_precision: PURE, activation_checkpointing: true, activation_checkpointing_reentrant: false, limit_all_gathers: true}
algorithms: {gradient_clipping: {clipping_type: norm, clipping_threshold: 1.0}}
train_loader: {num_workers: 8, drop_last: true}
)";
  const Scenario s = imported("f.yaml", text, "");
  CHECK(s.model.hidden == 4096);
  CHECK(s.batch == program::Batch{8, 2, 2048});
  CHECK(s.policy.sharding == Sharding::shard_grad_op);
  CHECK(s.recompute.mode == RecomputeMode::full);
  CHECK(!s.recompute.reentrant);
  CHECK(s.precision.reduce == hw::Dtype::bf16);
  CHECK(s.optimizer.implementation == program::OptimizerImpl::for_loop);
}

TEST_CASE("torchtune: everything in one type, chunked loss, units of their own") {
  const Scenario s =
      imported("t.yaml",
               "model: {_component_: torchtune.models.llama3.llama3_8b}\nbatch_size: 2\ngradient_accumulation_steps: 4\ndtype: bf16\nclip_grad_norm: "
               "null\ncompile: true\n"
               "optimizer: {_component_: torch.optim.AdamW, lr: 2e-5, fused: true}\nloss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}\n"
               "enable_activation_checkpointing: true\ncustom_sharded_layers: ['tok_embeddings', 'output']\ntokenizer: {max_seq_len: 8192, path: x}\n",
               "");
  CHECK(s.model_name == "llama-3-8b");
  CHECK(s.precision.master == hw::Dtype::bf16);
  CHECK(s.kernels.loss == program::Loss::chunked);
  CHECK(s.policy.wrap == program::Wrap::embedding_and_head);
  CHECK(s.batch == program::Batch{2, 4, 8192});
  CHECK(!s.optimizer.clip_grad_norm);
  CHECK(s.recompute.mode == RecomputeMode::full);
  CHECK_FALSE(s.optimizer.in_backward);
  const char* fused =
      "model: torchtune.models.llama3.llama3_8b\ncustom_sharded_layers: ['output']\noptimizer_in_bwd: true\nclip_grad_norm: null\ntokenizer: {max_seq_len: "
      "8192}\n";
  CHECK(imported("t.yaml", fused, "").optimizer.in_backward);
  CHECK_THROWS_WITH_AS(imported("t.yaml", std::string(fused) + "gradient_accumulation_steps: 4\n", ""), doctest::Contains("can't be accumulated"), InputError);
}

TEST_CASE("what is not known is refused with the nearest key; wrong types and values too; so is a file of no known kind") {
  CHECK(has(refusal("a.yaml", "distributed_type: FSDP\nmixed_precison: bf16\n"), "a.yaml: mixed_precison: is not known; did you mean mixed_precision?"));
  CHECK(has(refusal("a.yaml", "distributed_type: FSDP\nnum_machines: two\n"), "num_machines: expected a number"));
  CHECK(has(refusal("d.json", R"({"zero_optimization": {"stage": 4}})"), "zero_optimization.stage: must be from 0 to 3"));
  CHECK(has(refusal("x.yaml", "batch_size: 4\n"), "no configuration that is known"));
  CHECK(has(refusal("x.ini", "a=1"), "neither .json"));
  CHECK(has(refusal("d.json", R"({"zero_optimization": {"stage": 3}})", ""), "don't say which model"));
  CHECK(has(refusal("d.json", R"({"zero_optimization": {"stage": 3}})", "llama-2-7b", "no-such"), "no-such"));
}

TEST_CASE("a config.json beside a training file gives the model") {
  const auto configs = import_configs(
      {{"config.json",
        R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 1000})"},
       {"ds.json", R"({"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}})"}},
      "", "dgx-a100-1");
  CHECK(configs.formats == std::vector<std::string>{"config.json", "deepspeed"});
  const Scenario s = scenarios::read_scenario_text(configs.document.dump(), "both");
  CHECK(s.model.hidden == 512);
  CHECK(s.policy.framework == Framework::zero2);
}

TEST_CASE("KempnerForge: sizes in Meta's terms, everything in bf16, loader") {
  const std::string text = R"([model]
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
vocab_size = 128256
ffn_dim_multiplier = 1.3
[train]
batch_size = 4
seq_len = 4096
grad_accum_steps = 4
compile_model = true
activation_checkpointing = "full"
[optimizer]
fused = true
[data]
num_workers = 4
[distributed]
dp_replicate = 2
dp_shard = 16
tp = 1
)";
  const Scenario s = imported("k.toml", text, "");
  CHECK(program::parameters(s.model) == 8030261248);  // Llama-3-8B: 14,336 is 1.3 x 2/3 x 4 x 4096 in whole multiples of 256
  CHECK(s.model.ffn == 14336);
  CHECK(s.policy.framework == Framework::fsdp2);
  CHECK(s.policy.sharding == Sharding::hybrid_shard);
  CHECK(s.policy.shard_group_size == 16);
  CHECK(s.precision.master == hw::Dtype::bf16);
  CHECK(s.batch.grad_accum == 4);
  CHECK(s.kernels.set == program::KernelSet::pytorch_compile);
  CHECK(s.recompute.mode == RecomputeMode::full);
  CHECK(s.loader.workers == 4);
  CHECK(has(refusal("k.toml", "[train]\nbatch_size = 1\n[distributed]\ntp = 4\n"), "distributed.tp"));
  CHECK(has(refusal("k.toml", "[train]\nbatch_sise = 1\n"), "batch_size"));
}

TEST_CASE("Lingua: sharded or not, selective recomputation, a model without vocabulary") {
  const std::string text = R"(grad_acc_steps: 2
optim: {lr: 1.0e-3, clip: 1.0}
distributed: {fsdp_type: full_shard, compile: true, model_dtype: bf16, selective_activation_checkpointing: true, tp_size: 1}
model: {dim: 4096, n_layers: 32, n_heads: 32, ffn_dim_multiplier: 1.0, multiple_of: 256}
data: {batch_size: 2, seq_len: 2048, load_async: true}
)";
  const Scenario s = imported("l.yaml", text);
  CHECK(s.policy.framework == Framework::fsdp2);
  CHECK(s.recompute.ops == program::RecomputeOps::all_but_matmul);
  CHECK(s.batch.grad_accum == 2);
  CHECK(s.batch.seq_len == 2048);
  CHECK(s.precision.param == hw::Dtype::bf16);
  CHECK(has(refusal("l.yaml", text, ""), "don't say which model"));
  CHECK(ignores(import_configs({{"l.yaml", text}}, "llama-2-7b", "dgx-a100-4"), "model"));
  const Scenario whole =
      imported("l.yaml", "grad_acc_steps: 1\ndistributed: {fsdp_type: no_shard}\nmodel: {dim: 4096, n_layers: 32, n_heads: 32, vocab_size: 32000}\n", "");
  CHECK(whole.policy.framework == Framework::ddp);
  CHECK(program::parameters(whole.model) == 6738415616);  // Llama-2-7B
}

TEST_CASE("flags of fms-fsdp, llama-cookbook and AWS's sample") {
  const Scenario fms = imported(
      "f.yaml",
      "sharding_strategy: hsdp\nbatch_size: 2\nseq_length: 4096\nfsdp_activation_checkpointing: true\nselective_checkpointing: 1/3\nuse_torch_compile: true\n");
  CHECK(fms.policy.sharding == Sharding::hybrid_shard);
  CHECK(fms.policy.use_orig_params);
  CHECK(fms.recompute.mode == RecomputeMode::share);
  CHECK(fms.recompute.share == 1.0 / 3);
  CHECK(imported("f.yaml", "low_cpu_fsdp: false\nfsdp_activation_checkpointing: true\nselective_checkpointing: 1\n").recompute.mode == RecomputeMode::full);
  const auto share = [](const std::string& theirs) {
    return "low_cpu_fsdp: false\nfsdp_activation_checkpointing: true\nselective_checkpointing: " + theirs + "\n";
  };
  CHECK(imported("f.yaml", share("2/3")).recompute.share == 2.0 / 3);
  CHECK(imported("f.yaml", share("0.71")).recompute.share == 0.71);
  CHECK(imported("f.yaml", share("0")).recompute.mode == RecomputeMode::none);
  for (const char* wrong : {"3/2", "-1", "1/0", "0/0", "1/", "/2", "1/2/3", "half", "1e400"}) {
    CAPTURE(wrong);
    CHECK(has(refusal("f.yaml", share(wrong)), "selective_checkpointing"));
  }
  const Scenario cookbook = imported(
      "c.yaml", "batch_size_training: 4\nhsdp: true\nsharding_group_size: 8\npure_bf16: true\nfsdp_activation_checkpointing: false\ngradient_clipping: true\n");
  CHECK(cookbook.policy.framework == Framework::fsdp1);
  CHECK(cookbook.policy.sharding == Sharding::hybrid_shard);
  CHECK(cookbook.policy.shard_group_size == 8);
  CHECK(cookbook.precision.master == hw::Dtype::bf16);
  CHECK(cookbook.recompute.mode == RecomputeMode::none);
  CHECK(cookbook.optimizer.clip_grad_norm);
  CHECK(has(refusal("c.yaml", "batch_size_training: 4\noptimizer: anyprecision\n"), "anyprecision"));
  const std::string aws =
      "hidden_width: 4096\nintermediate_size: 11008\nnum_layers: 32\nnum_heads: 32\nvocab_size: 32000\nmax_context_width: 4096\ntrain_batch_size: "
      "1\nactivation_checkpointing: 1\n";
  const Scenario sample = imported("a.yaml", aws, "");
  CHECK(program::parameters(sample.model) == 6738415616);
  CHECK(sample.recompute.mode == RecomputeMode::full);
  CHECK(has(refusal("a.yaml", aws + "offload_activations: 1\n"), "not supported yet"));
  CHECK(has(refusal("a.yaml", "hidden_width: 4096\n"), "activation_checkpointing"));
}

TEST_CASE("configurations found in the wild are read, or refused for what is not supported") {
  namespace fs = std::filesystem;
  const fs::path folder = test::source_dir() + "/../shared/configs/train";
  if (!fs::exists(folder)) {
    MESSAGE("no collection of configurations beside the sources: skipped");
    return;
  }
  for (const char* name :
       {"accelerate_fsdp.yaml", "deepspeed_zero1_accum32.json", "deepspeed_zero3_flagperf.json", "deepspeed_zero3_minimal.json",
        "deepspeed_zero3_no_overlap.json", "fms_fsdp_7b_flags.yaml", "kempnerforge_7b_32gpu_fsdp.toml", "lingua_llama_7B.yaml", "llama_cookbook_defaults.yaml",
        "llm_foundry_mpt-7b.yaml", "torchtitan_llama3_8b.toml", "torchtune_llama3_8B_full.yaml", "yafsdp_accelerate.yaml"}) {
    CAPTURE(name);
    const bool own = std::string(name).find("llm_foundry") == 0 || std::string(name).find("torch") == 0 || std::string(name).find("kempner") == 0;
    const auto configs = import_configs(scenarios::read_configs({(folder / name).string()}), own ? "" : "llama-2-7b", "dgx-a100-4");
    CHECK_NOTHROW(scenarios::read_scenario_text(configs.document.dump(), name));
  }
  for (const char* name : {"accelerate_fsdp2_tp_hsdp.yaml", "aws_fsdp_llama2_7b_flags.yaml", "torchtitan_llama3_70b.toml"}) {
    CAPTURE(name);
    try {
      import_configs(scenarios::read_configs({(folder / name).string()}), "llama-3-70b", "dgx-h100-8");
      CHECK(false);
    } catch (const InputError& error) { CHECK(has(error.what(), "not supported yet")); }
  }
}
