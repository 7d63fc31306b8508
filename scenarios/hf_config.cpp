// Field names and defaults: huggingface/transformers, models/*/configuration_*.py; MPT: mosaicml/llm-foundry, models/mpt/configuration_mpt.py. See hf_config.hpp.
#include "scenarios/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>

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
                                    "apply_residual_connection_post_layernorm",
                                    "cache_implementation",
                                    "num_ln_in_parallel_attn",
                                    "query_pre_attn_scalar",
                                    "router_aux_loss_coef",
                                    "router_jitter_noise",
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
  /// `nulls`: keys of the file that are null, which the reader does not see.
  Config(Reader reader, ImportedModel& model, std::vector<std::string> nulls = {}) : reader_(std::move(reader)), model_(model), nulls_(std::move(nulls)) {}

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
  [[nodiscard]] bool is_null(const char* key) const { return std::find(nulls_.begin(), nulls_.end(), key) != nulls_.end(); }
  /// A soft cap's value matters to the result, not to the time: whether there is one.
  bool capped(const char* key) { return reader_.has(key) && reader_.number(key, kPositive) > 0; }
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
  std::vector<std::string> nulls_;
};

/// What the attention, norms and feed-forwards of Llama and its descendants have in common.
void import_sizes(Config& config, std::int64_t kv_heads, const char* activation, std::initializer_list<const char*> activations) {
  program::ModelShape& shape = config.shape();
  shape.hidden = config.count("hidden_size", kMaxHidden);
  shape.ffn = config.count("intermediate_size", kMaxFfn);
  shape.layers = config.count("num_hidden_layers", kMaxLayers);
  shape.heads = config.count("num_attention_heads", kMaxHeads);
  shape.kv_heads = config.count_or("num_key_value_heads", kv_heads > 0 ? kv_heads : shape.heads, kMaxHeads);
  shape.vocab = config.count("vocab_size", kMaxVocab);
  config.expect(activation, activations, *activations.begin());
  shape.attention_bias = shape.output_bias = config.flag("attention_bias", false);
}

/// `fallback`: the window of the model's code where the file has no such key; a null means none.
void import_window(Config& config, std::optional<std::int64_t> fallback) {
  std::optional<std::int64_t>& window = config.shape().sliding_window;
  if (config.reader().has("sliding_window")) window = config.count("sliding_window", kMaxSequence);
  else if (!config.is_null("sliding_window")) window = fallback;
}

/// Qwen2 has its window only where use_sliding_window says so, and there from layer max_window_layers on.
void import_qwen2(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.attention_bias = true;  // Qwen2Attention: q, k and v have a bias, o has none
  if (!config.flag("use_sliding_window", false)) {
    config.reader().ignore("sliding_window");
    config.reader().ignore("max_window_layers");
    return;
  }
  import_window(config, 4096);
  const std::int64_t first = config.reader().has("max_window_layers") ? config.reader().integer("max_window_layers", {0, kMaxLayers}) : 28;
  if (first >= shape.layers) shape.sliding_window.reset();
  else if (first > 0) config.reader().fail("max_window_layers", "a window from some layer on is not supported yet", "0, or as many as there are layers");
}

void import_llama_family(Config& config, const std::string& type) {
  program::ModelShape& shape = config.shape();
  import_sizes(config, type == "mistral" || type == "mixtral" ? 8 : 0, "hidden_act", {"silu", "swish"});
  shape.head_dim = config.count_or("head_dim", 0, kMaxHeadDim);
  shape.max_positions = config.count_or("max_position_embeddings", 2048, kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", false);
  shape.ffn_bias = config.flag("mlp_bias", false);
  if (type == "qwen2") import_qwen2(config);
  if (type == "mistral") import_window(config, 4096);
  if (type == "mixtral" || type == "phi3") import_window(config, {});
  shape.fused_qkv = shape.fused_gate_up = type == "phi3";
  if (type != "mixtral") return;
  shape.experts = config.count_or("num_local_experts", 8, kMaxExperts);
  shape.active_experts = config.count_or("num_experts_per_tok", 2, kMaxExperts);
  if (shape.active_experts > shape.experts) config.reader().fail("num_experts_per_tok", fmt::format("is more than the {} experts", shape.experts));
  if (config.flag("output_router_logits", false)) config.warn("output_router_logits: the load-balancing loss is not modelled; its kernels are small");
}

/// Gemma2DecoderLayer: four norms, GeGLU, capped scores and logits; even layers attend to a window.
void import_gemma2(Config& config) {
  program::ModelShape& shape = config.shape();
  const bool named = config.reader().has("hidden_activation");
  if (named) config.reader().ignore("hidden_act");
  import_sizes(config, 4, named ? "hidden_activation" : "hidden_act", {"gelu_pytorch_tanh", "gelu"});
  shape.head_dim = config.count_or("head_dim", 256, kMaxHeadDim);
  shape.max_positions = config.count_or("max_position_embeddings", 8192, kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", true);
  shape.layout = program::BlockLayout::sandwich;
  shape.ffn_kind = program::FfnKind::geglu;
  shape.scaled_embedding = true;
  shape.attention_softcap = config.capped("attn_logit_softcapping");
  shape.logit_softcap = config.capped("final_logit_softcapping");
  import_window(config, 4096);
  if (shape.sliding_window) shape.full_attention_every = 2;
}

/// FalconDecoderLayer. The newer architecture (two norms, grouped heads) is another block.
void import_falcon(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.style = program::BlockStyle::gpt;
  shape.hidden = config.count("hidden_size", kMaxHidden);
  shape.layers = config.count(config.reader().has("n_layer") ? "n_layer" : "num_hidden_layers", kMaxLayers);
  shape.heads = config.count(config.reader().has("n_head") ? "n_head" : "num_attention_heads", kMaxHeads);
  shape.ffn = config.count_or("ffn_hidden_size", 4 * shape.hidden, kMaxFfn);
  shape.vocab = config.count("vocab_size", kMaxVocab);
  shape.max_positions = config.count_or("max_position_embeddings", 2048, kMaxSequence);
  shape.tied_embeddings = config.flag("tie_word_embeddings", true);
  config.expect("activation", {"gelu"}, "gelu");
  if (config.flag("new_decoder_architecture", false)) config.reader().fail("new_decoder_architecture", "is not supported yet", "falcon-7b has the older one");
  shape.kv_heads = config.flag("multi_query", true) ? 1 : shape.heads;
  if (shape.kv_heads == 1) config.reader().ignore("num_kv_heads");  // the model's code does not read it then
  if (config.flag("parallel_attn", true)) shape.layout = program::BlockLayout::parallel;
  shape.positions = config.flag("alibi", false) ? program::Positions::alibi : program::Positions::rope;
  shape.attention_bias = shape.output_bias = shape.ffn_bias = config.flag("bias", false);
  shape.norm_bias = shape.fused_qkv = true;
  shape.norm = program::NormKind::layer_norm;
  shape.ffn_kind = program::FfnKind::gelu;
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
  shape.attention_bias = shape.output_bias = shape.ffn_bias = shape.norm_bias = shape.fused_qkv = true;
}

void import_mpt_attention(Config& config) {
  program::ModelShape& shape = config.shape();
  shape.kv_heads = shape.heads;
  auto attention = config.reader().maybe_object("attn_config");
  if (!attention) return;
  Config inner(std::move(*attention), config.model());
  if (inner.flag("alibi", false)) shape.positions = program::Positions::alibi;
  if (inner.flag("rope", false)) shape.positions = program::Positions::rope;
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
  shape.fused_qkv = true;
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
  std::vector<std::string> nulls;
  for (const auto& [key, value] : parsed.items()) {
    if (value.is_null()) nulls.push_back(key);
  }
  Config config(Reader(json, file), model, std::move(nulls));
  const std::string type = config.reader().text("model_type", 64);
  model.name = config.reader().has("_name_or_path") ? last_part(config.text("_name_or_path", type)) : label(file, type);
  if (type == "llama" || type == "mistral" || type == "mixtral" || type == "qwen2" || type == "phi3") {
    import_llama_family(config, type);
  } else if (type == "gemma2") {
    import_gemma2(config);
  } else if (type == "falcon") {
    import_falcon(config);
  } else if (type == "gpt2") {
    import_gpt2(config);
  } else if (type == "mpt") {
    import_mpt(config);
  } else {
    config.reader().fail("model_type", "\"" + printable(type) + "\" is not supported yet",
                         "supported: llama, mistral, mixtral, qwen2, phi3, gemma2, falcon, gpt2, mpt");
  }
  finish_shape(config);
  for (const char* key : kIgnored) config.reader().ignore(key);
  for (const std::string& key : config.reader().unread()) config.warn("\"" + printable(key, 60) + "\" is not known and was ignored");
  return model;
}

}  // namespace stepcast::scenarios
