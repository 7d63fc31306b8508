// Settings to paste: each framework's text says what the scenario says, in its own words. docs/tune.md, "Settings".
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "cli/tune/settings.hpp"
#include "scenarios/import/import.hpp"
#include "scenarios/scenario_template.hpp"
#include "support/text.hpp"

using namespace stepcast;
using Texts = std::vector<std::string>;

namespace {

std::map<std::string, std::string> pasted(const Texts& sets) {
  std::map<std::string, std::string> texts;
  for (auto& [name, text] : cli::settings_to_paste(scenarios::read_scenario("7b-32xa100", sets))) texts[name] = text;
  return texts;
}

using stepcast::test::has;

/// What the importer makes of a pasted text.
scenarios::Scenario back(const std::string& name, const std::string& text) {
  const auto imported = scenarios::import_configs({{name, text}}, "llama-2-7b", "dgx-a100-4");
  return scenarios::read_scenario_text(imported.document.dump(), name);
}

}  // namespace

TEST_CASE("FSDP1 as Python") {
  const std::string text =
      pasted({"/policy/sharding=SHARD_GRAD_OP", "/policy/backward_prefetch=NONE", "/policy/forward_prefetch=true", "/policy/limit_all_gathers=false",
              "/recompute/mode=full", "/kernels/set=pytorch-compile", "/optimizer/implementation=fused"})
          .at("fsdp1");
  for (const char* part : {"ShardingStrategy.SHARD_GRAD_OP", "backward_prefetch=None", "forward_prefetch=True", "limit_all_gathers=False",
                           "isinstance(m, Block)", "block.compile()", "fused=True", "param_dtype=torch.bfloat16", "use_orig_params=True"})
    CHECK_MESSAGE(has(text, part), part);
}

TEST_CASE("FSDP2 as Python, from either FSDP") {
  const std::string second = pasted({"/policy/framework=fsdp2", "/policy/sharding=HYBRID_SHARD", "/policy/reshard_after_forward=false",
                                     "/policy/forward_prefetch_depth=2", "/policy/wrap=embedding_and_head"})
                                 .at("fsdp2");
  for (const char* part : {"(4, 8), mesh_dim_names=(\"replicate\", \"shard\")", "reshard_after_forward=False", "blocks[i + 1:i + 3]", "fully_shard(embedding",
                           "fully_shard([norm, head]"})
    CHECK_MESSAGE(has(second, part), part);
  CHECK(has(pasted({"/policy/sharding=SHARD_GRAD_OP"}).at("fsdp2"), "reshard_after_forward=False"));
  CHECK(has(pasted({"/policy/sharding=NO_SHARD"}).at("fsdp2"), "DistributedDataParallel"));
  CHECK(has(pasted({"/policy/framework=fsdp2", "/policy/reshard_after_forward=8"}).at("fsdp2"), "reshard_after_forward=8"));
}

TEST_CASE("a share of the blocks: the same ones in Python; where a framework has no such setting, a comment says so") {
  const auto texts = pasted({"/recompute/mode=share", "/recompute/share=0.75"});
  CHECK(has(texts.at("fsdp1"), "m in [b for i, b in enumerate(blocks) if int((i + 1) * 0.75 + 0.5) > int(i * 0.75 + 0.5)]"));
  for (const char* framework : {"accelerate", "torchtitan", "llm_foundry"}) CHECK(has(texts.at(framework), "recomputation of 0.75 of the blocks"));
}

TEST_CASE("what is pasted into accelerate, torchtitan, DeepSpeed and llm-foundry is imported as the same policy") {
  const Texts first = {"/policy/sharding=SHARD_GRAD_OP", "/policy/forward_prefetch=true", "/recompute/mode=full", "/batch/micro_batch=2"};
  const auto texts = pasted(first);
  const scenarios::Scenario scenario = scenarios::read_scenario("7b-32xa100", first);
  const scenarios::Scenario accelerate = back("a.yaml", texts.at("accelerate"));
  CHECK(accelerate.policy == scenario.policy);
  CHECK(accelerate.recompute == scenario.recompute);
  CHECK(accelerate.precision == scenario.precision);
  const scenarios::Scenario foundry = back("f.yaml", texts.at("llm_foundry"));
  CHECK(foundry.policy.sharding == scenario.policy.sharding);
  CHECK(foundry.policy.forward_prefetch);
  CHECK(foundry.recompute.mode == program::RecomputeMode::full);
  CHECK(foundry.batch.micro_batch == 2);
  const Texts second = {"/policy/framework=fsdp2", "/policy/reshard_after_forward=false",
                        "/recompute/mode=every_k", "/recompute/every=3",
                        "/batch/micro_batch=2",    "/batch/grad_accum=4"};
  const scenarios::Scenario titan = back("t.toml", pasted(second).at("torchtitan")), own = scenarios::read_scenario("7b-32xa100", second);
  CHECK(titan.policy.reshard_after_forward == program::kKeepAfterForward);
  CHECK(titan.recompute == own.recompute);
  CHECK(titan.batch == own.batch);
  CHECK(titan.precision == own.precision);
  const scenarios::Scenario deepspeed = back("d.json", pasted({"/batch/grad_accum=2"}).at("deepspeed"));
  CHECK(deepspeed.policy.framework == program::Framework::zero3);
  CHECK(deepspeed.batch.grad_accum == 2);
  CHECK(nlohmann::json::parse(texts.at("deepspeed"))["zero_optimization"]["stage"] == 2);
}

TEST_CASE("the environment of the allocator") {
  CHECK(has(pasted({"/allocator/expandable_segments=true"}).at("environment"), "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
  CHECK(has(pasted({"/allocator/max_split_size=512 MiB"}).at("environment"), "max_split_size_mb:512"));
  CHECK(has(pasted({}).at("environment"), "unset PYTORCH_CUDA_ALLOC_CONF"));
}

TEST_CASE("what a file has no words for stands in it as a remark, and the importer still reads it") {
  const auto texts = pasted({"/policy/blocks_per_unit=2", "/recompute/mode=per_op", "/recompute/ops=all_but_matmul"});
  for (const char* name : {"accelerate", "torchtitan", "llm_foundry"}) {
    CHECK_MESSAGE(has(texts.at(name), "# not said here, set it in code: one unit for every 2 blocks\n"), name);
    CHECK_MESSAGE(has(texts.at(name), "recomputation of all_but_matmul"), name);
  }
  CHECK(back("a.yaml", texts.at("accelerate")).recompute.mode == program::RecomputeMode::none);
  const auto plain = pasted({});
  for (const auto& [name, text] : plain) CHECK_MESSAGE(!has(text, "not said here"), name);
}
