// Field names and defaults: huggingface/transformers, models/*/configuration_*.py; MPT: mosaicml/llm-foundry, models/mpt/configuration_mpt.py. See hf_config.hpp.
#include "scenarios/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"
#include "scenarios/limits.hpp"

namespace stepcast::scenarios {
namespace {

/// Keys that say nothing about the cost of a step.
constexpr const char* kIgnored[] = {"architectures",
                                    "attention_dropout",
                                    "attn_pdrop",
                                    "auto_map",
                                    "bos_token_id",
                                    "dtype",
                                    "embd_pdrop",
                                    "eos_token_id",
                                    "hidden_dropout",
                                    "id2label",
                                    "init_config",
                                    "init_device",
                                    "initializer_range",
                                    "label2id",
                                    "layer_norm_epsilon",
                                    "logit_scale",
                                    "max_window_layers",
                                    "model_type",
                                    "original_max_position_embeddings",
                                    "pad_token_id",
                                    "pretraining_tp",
                                    "reorder_and_upcast_attn",
                                    "resid_pdrop",
                                    "embd_pdrop",
                                    "rms_norm_eps",
                                    "rope_scaling",
                                    "rope_theta",
                                    "scale_attn_by_inverse_layer_idx",
                                    "scale_attn_weights",
                                    "summary_activation",
                                    "summary_first_dropout",
                                    "summary_proj_to_labels",
                                    "summary_type",
                                    "summary_use_proj",
                                    "task_specific_params",
                                    "tokenizer_name",
                                    "torch_dtype",
                                    "transformers_version",
                                    "unk_token_id",
                                    "use_cache",
                                    "verbose",
                                    "embedding_fraction",
                                    "emb_pdrop",
                                    "layer_norm_epsilon",
                                    "resid_pdrop",
                                    "n_ctx",
                                    "layer_types",
                                    "rope_parameters",
                                    "torchscript",
                                    "_attn_implementation",
                                    "_attn_implementation_autoset",
                                    "_facts"};

/// One config file being read: the strict reader, with null meaning absent as in Python.
class Config {
 public:
  Config(Reader reader, ImportedModel& model) : reader_(std::move(reader)), model_(model) {}

  std::int64_t count(const char* key, std::int64_t max) { return reader_.integer(key, {1, max}); }
  std::int64_t count_or(const char* key, std::int64_t value, std::int64_t max) {
    reader_.maybe(key, value, Limits<std::int64_t>{1, max});
    return value;
  }
  bool flag(const char* key, bool value) {
    reader_.maybe(key, value);
    return value;
  }
  std::string text(const char* key, std::string value) {
    reader_.maybe(key, value);
    return value;
  }
  void expect(const char* key, std::initializer_list<const char*> accepted, const char* fallback) {
    const std::string found = text(key, fallback);
    if (std::none_of(accepted.begin(), accepted.end(), [&](const char* one) { return found == one; })) {
      reader_.fail(key, "\"" + printable(found, 40) + "\" is not supported yet", std::string("supported: ") + *accepted.begin());
    }
  }
  Reader& reader() { return reader_; }
  ImportedModel& model() { return model_; }
  program::ModelShape& shape() { return model_.shape; }
  void warn(const std::string& text) { model_.warnings.push_back(text); }

 private:
  Reader reader_;
  ImportedModel& model_;
};

void import_llama_family(Config& config, const std::string& type) {
  program::ModelShape& shape = config.shape();
  shape.hidden = config.count("hidden_size", kMaxHidden);
  shape.ffn = config.count("intermediate_size", kMaxFfn);
  shape.layers = config.count("num_hidden_layers", kMaxLayers);
  shape.heads = config.count("num_attention_heads", kMaxHeads);
  shape.kv_heads = config.count_or("num_key_value_heads", type == "mistral" ? 8 : shape.heads, kMaxHeads);
  shape.head_dim = config.count_or("head_dim", 0, kMaxHeadDim);
  shape.vocab = config.count("vocab_size", kMaxVocab);
  shape.max_positions = config.count_or("max_position_embeddings", 2048, kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", false);
  config.expect("hidden_act", {"silu", "swish"}, "silu");
  shape.attention_bias = shape.output_bias = config.flag("attention_bias", false);
  if (type == "qwen2") shape.attention_bias = true;  // Qwen2Attention: q, k and v have a bias, o has none
  shape.ffn_bias = config.flag("mlp_bias", false);
  const std::int64_t window = config.count_or("sliding_window", kMaxSequence, kMaxSequence);
  const bool windowed = config.flag("use_sliding_window", type != "qwen2");
  if (windowed && window < shape.max_positions) config.warn(fmt::format("sliding_window = {} is not modelled: attention sees the whole sequence", window));
}

void import_gpt2(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.style = program::BlockStyle::gpt;
  shape.hidden = config.count("n_embd", kMaxHidden);
  shape.layers = config.count("n_layer", kMaxLayers);
  shape.heads = shape.kv_heads = config.count("n_head", kMaxHeads);
  shape.ffn = config.count_or("n_inner", 4 * shape.hidden, kMaxFfn);
  shape.vocab = config.count("vocab_size", kMaxVocab);
  shape.max_positions = config.count("n_positions", kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", true);
  config.expect("activation_function", {"gelu_new", "gelu", "gelu_pytorch_tanh", "gelu_fast"}, "gelu_new");
  shape.positions = program::Positions::learned;
  shape.attention_bias = shape.output_bias = shape.ffn_bias = shape.norm_bias = true;
}

void import_mpt_attention(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.kv_heads = shape.heads;
  auto attention = config.reader().maybe_object("attn_config");
  if (!attention) return;
  Config inner(std::move(*attention), config.model());
  if (inner.flag("alibi", false)) shape.positions = program::Positions::alibi;
  if (inner.flag("rope", false)) inner.reader().fail("rope", "an MPT model with rotary positions is not supported yet");
  if (inner.flag("qk_ln", false)) inner.reader().fail("qk_ln", "norms of q and k are not supported yet");
  shape.clip_qkv = inner.reader().has("clip_qkv") && inner.reader().number("clip_qkv", kPositive) > 0;
  shape.kv_heads = inner.count_or("kv_n_heads", inner.text("attn_type", "multihead_attention") == "multiquery_attention" ? 1 : shape.heads, kMaxHeads);
  for (const char* key : {"attn_impl", "attn_pdrop", "softmax_scale", "attn_uses_sequence_id", "prefix_lm", "alibi_bias_max", "qk_gn", "sliding_window_size"}) {
    inner.reader().ignore(key);
  }
  for (const std::string& key : inner.reader().unread()) config.warn("attn_config." + printable(key, 60) + " is not known and was ignored");
}

void import_mpt(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.style = program::BlockStyle::gpt;
  shape.hidden = config.count("d_model", kMaxHidden);
  shape.layers = config.count("n_layers", kMaxLayers);
  shape.heads = config.count("n_heads", kMaxHeads);
  shape.ffn = shape.hidden * config.count_or("expansion_ratio", 4, 64);
  shape.vocab = config.count("vocab_size", kMaxVocab);
  shape.max_positions = config.count("max_seq_len", kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", true);
  shape.positions = config.flag("learned_pos_emb", true) ? program::Positions::learned : program::Positions::none;
  config.expect("norm_type", {"low_precision_layernorm", "layernorm"}, "low_precision_layernorm");
  if (!config.reader().has("no_bias")) config.warn("no_bias is absent: biases everywhere, as llm-foundry has by default");
  shape.attention_bias = shape.output_bias = shape.ffn_bias = shape.norm_bias = !config.flag("no_bias", false);
  import_mpt_attention(config);
}

void finish_shape(Config& config) {
  program::ModelShape& shape = config.shape();
  if (shape.style == program::BlockStyle::gpt) {
    shape.norm = program::NormKind::layer_norm;
    shape.ffn_kind = program::FfnKind::gelu;
  }
  const char* heads = config.reader().has("num_attention_heads") ? "num_attention_heads" : config.reader().has("n_heads") ? "n_heads" : "n_head";
  if (shape.head_dim == 0 && shape.hidden % shape.heads != 0) config.reader().fail(heads, fmt::format("{} does not divide {}", shape.heads, shape.hidden));
  if (shape.head_dim == 0) shape.head_dim = shape.hidden / shape.heads;
  if (shape.heads % shape.kv_heads != 0) config.reader().fail(heads, fmt::format("is not a multiple of the {} key-value heads", shape.kv_heads));
}

std::string last_part(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// From the file's path: "phi-3.json" is phi-3, "Qwen2.5-7B/config.json" is Qwen2.5-7B.
std::string label(const std::string& file, const std::string& type) {
  std::string stem = last_part(file);
  if (stem == "config.json" && stem.size() < file.size()) stem = last_part(file.substr(0, file.size() - stem.size() - 1));
  if (stem.ends_with(".json")) stem.resize(stem.size() - 5);
  return stem.empty() || stem == "config" || stem == "." || stem == ".." ? type : stem;
}

/// A null is Python's None: as if the key were absent.
Json without_nulls(const Json& json) {
  Json kept = Json::object();
  kept.merge_patch(json);
  return kept;
}

}  // namespace

ImportedModel import_hf_config(std::string_view text, const std::string& file) {
  const Json parsed = parse_json(text, file);
  if (!parsed.is_object()) throw InputError(printable(file, 400), "", "expected a JSON object");
  const Json json = without_nulls(parsed);
  ImportedModel model;
  Config config(Reader(json, file), model);
  const std::string type = config.reader().text("model_type", 64);
  model.name = config.reader().has("_name_or_path") ? last_part(config.text("_name_or_path", type)) : label(file, type);
  if (type == "llama" || type == "mistral" || type == "qwen2" || type == "phi3") {
    import_llama_family(config, type);
  } else if (type == "gpt2") {
    import_gpt2(config);
  } else if (type == "mpt") {
    import_mpt(config);
  } else {
    config.reader().fail("model_type", "\"" + printable(type) + "\" is not supported yet", "supported: llama, mistral, qwen2, phi3, gpt2, mpt");
  }
  finish_shape(config);
  for (const char* key : kIgnored) config.reader().ignore(key);
  for (const std::string& key : config.reader().unread()) config.warn("\"" + printable(key, 60) + "\" is not known and was ignored");
  return model;
}

}  // namespace stepcast::scenarios
