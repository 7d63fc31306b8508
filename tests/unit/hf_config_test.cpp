// Importer of Hugging Face config.json: mapping per model type, defaults, warnings, refusals, and the scenario made for a cluster's name.
#include "scenarios/hf_config.hpp"

#include <doctest/doctest.h>

#include "hw_models/input_error.hpp"
#include "program/model.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

namespace {

const std::string kLlama = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "_name_or_path": "meta-llama/Llama-2-7b-hf", "hidden_size": 4096,
  "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
  "max_position_embeddings": 4096, "hidden_act": "silu", "rope_scaling": null, "tie_word_embeddings": false, "torch_dtype": "float16", "use_cache": true)";

std::string refusal(const std::string& text) {
  try {
    import_hf_config(text, "config.json");
  } catch (const InputError& error) { return error.what(); }
  return "(nothing was refused)";
}

}  // namespace

TEST_CASE("llama") {
  const ImportedModel model = import_hf_config(kLlama + "}", "config.json");
  CHECK(model.name == "Llama-2-7b-hf");
  CHECK(model.warnings.empty());
  CHECK(program::parameters(model.shape) == 6738415616);
  CHECK(import_hf_config(kLlama + R"(, "attention_bias": true})", "c").shape.output_bias);
  const ImportedModel odd = import_hf_config(kLlama + R"(, "novel_key": 1})", "c");
  REQUIRE(odd.warnings.size() == 1);
  CHECK(odd.warnings[0] == "\"novel_key\" is not known and was ignored");
}

TEST_CASE("windows by the defaults of each model; qwen2 has biases on q, k and v alone") {
  const auto sized = [](const std::string& head) {
    return import_hf_config(
        "{" + head + R"(, "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 100,
      "num_key_value_heads": 8, "max_position_embeddings": 32768})",
        "c");
  };
  CHECK(sized(R"("model_type": "mistral")").shape.sliding_window == 4096);
  CHECK(sized(R"("model_type": "mistral", "sliding_window": 512)").shape.sliding_window == 512);
  CHECK_FALSE(sized(R"("model_type": "mistral", "sliding_window": null)").shape.sliding_window);
  CHECK_FALSE(sized(R"("model_type": "mixtral")").shape.sliding_window);
  CHECK_FALSE(sized(R"("model_type": "phi3")").shape.sliding_window);
  CHECK(sized(R"("model_type": "phi3")").shape.fused_gate_up);
  CHECK(sized(R"("model_type": "qwen2", "sliding_window": 100, "use_sliding_window": true, "max_window_layers": 0)").shape.sliding_window == 100);
  CHECK_FALSE(sized(R"("model_type": "qwen2", "sliding_window": 100, "use_sliding_window": true, "max_window_layers": 2)").shape.sliding_window);
  CHECK_THROWS_WITH_AS(sized(R"("model_type": "qwen2", "use_sliding_window": true, "max_window_layers": 1)"),
                       doctest::Contains("/max_window_layers: a window from some layer on is not supported yet"), InputError);
  const ImportedModel qwen = sized(R"("model_type": "qwen2", "use_sliding_window": false)");
  CHECK(qwen.warnings.empty());
  CHECK(qwen.shape.attention_bias);
  CHECK_FALSE(qwen.shape.output_bias);
}

TEST_CASE("mixtral, gemma2 and falcon") {
  const std::string sizes =
      R"("hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 100, "num_key_value_heads": 8})";
  const ImportedModel mixtral =
      import_hf_config(R"({"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 3, "output_router_logits": true, )" + sizes, "c");
  CHECK(mixtral.shape.experts == 4);
  CHECK(mixtral.shape.active_experts == 3);
  CHECK(mixtral.warnings.size() == 1);
  CHECK(refusal(R"({"model_type": "mixtral", "num_experts_per_tok": 9, )" + sizes) == "config.json: /num_experts_per_tok: is more than the 8 experts");
  const ImportedModel gemma = import_hf_config(R"({"model_type": "gemma2", "hidden_act": "gelu", "hidden_activation": "gelu_pytorch_tanh", )" + sizes, "c");
  CHECK(gemma.warnings.empty());
  CHECK(gemma.shape.head_dim == 256);
  CHECK(gemma.shape.sliding_window == 4096);
  CHECK(gemma.shape.full_attention_every == 2);
  CHECK_FALSE(gemma.shape.attention_softcap);
  CHECK(import_hf_config(R"({"model_type": "gemma2", "attn_logit_softcapping": 50.0, )" + sizes, "c").shape.attention_softcap);
  CHECK(import_hf_config(R"({"model_type": "gemma2", "sliding_window": null, )" + sizes, "c").shape.full_attention_every == 0);
  const std::string falcon = R"({"model_type": "falcon", "hidden_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 16, "vocab_size": 100)";
  CHECK(import_hf_config(falcon + "}", "c").shape.kv_heads == 1);
  CHECK(import_hf_config(falcon + R"(, "multi_query": false, "parallel_attn": false, "bias": true})", "c").shape.layout == program::BlockLayout::sequential);
  CHECK(refusal(falcon + R"(, "new_decoder_architecture": true})") ==
        "config.json: /new_decoder_architecture: is not supported yet; falcon-7b has the older one");
}

TEST_CASE("gpt2 and mpt") {
  const ImportedModel gpt2 = import_hf_config(
      R"({"model_type": "gpt2", "n_embd": 1600, "n_inner": null, "n_layer": 48, "n_head": 25, "vocab_size": 50257, "n_positions": 1024, "activation_function": "gelu_new"})",
      "c");
  CHECK(program::parameters(gpt2.shape) == 1557611200);
  // The published mosaicml/mpt-7b: ALiBi, no biases, 6,649,286,656 parameters = 32 (12 h^2 + 2 h) + 50432 h + h with h = 4096.
  const ImportedModel mpt = import_hf_config(
      R"({"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4, "max_seq_len": 2048, "vocab_size": 50432, "no_bias": true,
        "learned_pos_emb": true, "attn_config": {"alibi": true, "attn_impl": "torch", "clip_qkv": null, "prefix_lm": false}, "norm_type": "low_precision_layernorm"})",
      "c");
  CHECK(mpt.warnings.empty());
  CHECK(mpt.shape.positions == program::Positions::alibi);
  CHECK(program::parameters(mpt.shape) == 32LL * (12LL * 4096 * 4096 + 2 * 4096) + 50432LL * 4096 + 4096);
  CHECK(program::parameters(mpt.shape) == 6649286656);
}

TEST_CASE("the model's label") {
  const std::string tiny = R"({"model_type": "gpt2", "n_embd": 64, "n_head": 1, "n_layer": 1, "vocab_size": 1, "n_positions": 1})";
  CHECK(import_hf_config(tiny, "config.json").name == "gpt2");
  CHECK(import_hf_config(tiny, "/config.json").name == "gpt2");
  CHECK(import_hf_config(tiny, "../config.json").name == "gpt2");
  CHECK(import_hf_config(tiny, "models/distilgpt2/config.json").name == "distilgpt2");
  CHECK(import_hf_config(tiny, "models/small.json").name == "small");
}

TEST_CASE("refusals") {
  CHECK(refusal("") == "config.json: is empty; a JSON object is expected");
  CHECK(refusal("[]") == "config.json: expected a JSON object");
  CHECK(refusal("{}") == "config.json: /model_type: is missing");
  CHECK(refusal(R"({"model_type": "bloom"})") ==
        "config.json: /model_type: \"bloom\" is not supported yet; supported: llama, mistral, mixtral, qwen2, phi3, gemma2, falcon, gpt2, mpt");
  CHECK(refusal(R"({"model_type": "llama"})") == "config.json: /hidden_size: is missing");
  CHECK(refusal(R"({"model_type": "llama", "hidden_size": "4096"})") == "config.json: /hidden_size: expected a whole number, found a text");
  CHECK(refusal(R"({"model_type": "llama", "hidden_size": -1})").find("/hidden_size: -1 is out of range") != std::string::npos);
  CHECK(refusal(R"({"model_type": "llama", "hidden_size": 100, "intermediate_size": 1, "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 1})") ==
        "config.json: /num_attention_heads: 3 does not divide 100");
  CHECK(
      refusal(
          R"({"model_type": "llama", "hidden_size": 96, "intermediate_size": 1, "num_hidden_layers": 1, "num_attention_heads": 3, "vocab_size": 1, "hidden_act": "relu"})") ==
      "config.json: /hidden_act: \"relu\" is not supported yet; supported: silu");
}

TEST_CASE("a scenario for a model and a cluster") {
  const ImportedScenario made = scenario_for("llama-2-7b", "dgx-a100-4");
  CHECK(made.scenario.cluster.node == "dgx-a100");
  CHECK(ranks(made.scenario) == 32);
  CHECK(made.scenario.batch.seq_len == 4096);
  CHECK(made.scenario.model_name == "llama-2-7b");
  CHECK(made.scenario.name == "llama-2-7b on dgx-a100-4");
  CHECK(scenario_for("gpt2-xl", "roce-1600").scenario.batch.seq_len == 1024);
  CHECK(scenario_for("gpt2-xl", "roce-1600").scenario.cluster.nodes == 1);
  CHECK(scenario_for("gpt2-xl", "roce-1600-2").scenario.cluster.nodes == 2);
  const std::vector<std::string> sets = {"/batch/micro_batch=4"};
  CHECK(scenario_for("gpt2-xl", "p4d-2", sets).scenario.batch.micro_batch == 4);
  for (const char* cluster : {"", "dgx-a100-0", "dgx-a100-", "dgx-a100--1", "nowhere-4", "dgx-a100-4x", "dgx-a100-99999999999"}) {
    CAPTURE(cluster);
    CHECK_THROWS_WITH_AS(scenario_for("gpt2-xl", cluster), doctest::Contains("is not NAME-NODES with a known node"), InputError);
  }
  CHECK_THROWS_WITH_AS(scenario_for("gpt2-xll", "p4d-2"), "--model: \"gpt2-xll\" is neither a file nor a built-in model; did you mean gpt2-xl?", InputError);
  CHECK_THROWS_WITH_AS(scenario_for("no/config.json", "p4d-2"), "no/config.json: cannot be opened: No such file or directory", InputError);
}
