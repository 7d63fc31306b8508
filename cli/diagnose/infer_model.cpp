// Sizes of the model and of the batch from the shapes of a forward's operators. Test: tests/unit/inference_test.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/diagnose/infer.hpp"
#include "cli/diagnose/linears.hpp"
#include "program/model.hpp"
#include "scenarios/names.hpp"
#include "scenarios/presets.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::Pass;

constexpr const char* kNoShapes = "no shapes of operators are recorded (torch.profiler: record_shapes=True)";

bool near(double a, double b) { return std::fabs(a - b) < 0.01 * std::max(1.0, b); }
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::llround(value)); }

class ModelInference {
 public:
  ModelInference(const TraceView& trace, ScenarioDraft& draft)
      : trace_(trace),
        draft_(draft),
        forwards_(std::max(1.0, micro_batches(trace.work)) * static_cast<double>(trace.work.steps)),
        linears_(linears_of(trace.work, forwards_)),
        attention_(attention_seen(trace.work, forwards_, linears_.tokens)) {}

  void batch() {
    const auto lookup = std::find_if(trace_.work.lookups.begin(), trace_.work.lookups.end(),
                                     [&](const profile::CountedLookup& l) { return l.lookup.batch * l.lookup.length == linears_.tokens; });
    if (attention_.layers > 0) {
      draft_.seen("/batch/micro_batch", attention_.batch, "the batch of attention");
      draft_.seen("/batch/seq_len", attention_.length, "the length of attention's queries");
    } else if (lookup != trace_.work.lookups.end()) {
      draft_.seen("/batch/micro_batch", lookup->lookup.batch, "the ids that the embedding looks up");
      draft_.seen("/batch/seq_len", lookup->lookup.length, "the ids that the embedding looks up");
    } else {
      draft_.missing("/batch/micro_batch",
                     linears_.tokens > 0 ? fmt::format("neither attention nor the embedding has a shape; {} tokens", linears_.tokens) : kNoShapes);
      draft_.missing("/batch/seq_len", "as /batch/micro_batch");
    }
    if (trace_.device.passes[static_cast<std::size_t>(Pass::backward)].kernels > 0 && micro_batches(trace_.work) > 0)
      draft_.seen("/batch/grad_accum", whole(micro_batches(trace_.work)), "forwards that are followed by a backward, per step");
  }

  void sizes() {
    if (linears_.hidden == 0 || attention_.layers == 0) {
      const std::string because = linears_.count.empty() ? kNoShapes
                                  : linears_.hidden == 0 ? "no size is common to all linear layers: no transformer of one width, or one with adapters"
                                                         : "no attention is recognised by its shape";
      for (const char* key : {"hidden", "layers", "heads", "ffn", "vocab"}) draft_.missing(std::string("/model/") + key, because);
      return;
    }
    h_ = linears_.hidden;
    layers_ = whole(attention_.layers);
    q_ = attention_.heads * attention_.head_dim;
    const bool even = near(attention_.layers, static_cast<double>(layers_));
    draft_.seen("/model/hidden", h_, "a side of every linear layer's weight");
    if (even) draft_.seen("/model/layers", layers_, "attentions in a forward");
    else draft_.guess("/model/layers", layers_, fmt::format("{:.2f} attentions in a forward", attention_.layers));
    draft_.seen("/model/heads", attention_.heads, "heads of attention's queries");
    draft_.seen("/model/head_dim", attention_.head_dim, "head dimension of attention");
    experts_ = experts_seen(trace_.work, linears_, forwards_, layers_);
    head();
    projections();
    if (experts_.count > 0) experts();
    else feed_forward();
    if (linears_.adapter_rank > 0) adapters();
  }

  /// What shapes don't tell: from names in the file, else from the built-in model of the same sizes, else what is usual.
  void the_rest() {
    const bool layer_norm = trace_.mentions("layer_norm") || trace_.mentions("LayerNorm"),
               rms = trace_.mentions("rsqrt") || trace_.mentions("rms_norm") || trace_.mentions("RMSNorm");
    if (layer_norm || rms)
      draft_.seen("/model/norm", layer_norm ? "layer_norm" : "rms_norm", layer_norm ? "its operators" : "its operators, of which none is a layer norm");
    else
      draft_.guess("/model/norm", draft_.text("/model/ffn_kind") == "gelu" ? "layer_norm" : "rms_norm", "what usually goes with such a feed-forward network");
    const bool llama = draft_.text("/model/norm") == "rms_norm";
    draft_.guess("/model/style", llama ? "llama" : "gpt", "by the norm");
    draft_.guess("/model/biases/norm", !llama && !linears_.biased.empty(), "as the linear layers");
    draft_.guess("/model/tied_embeddings", false, "no size of a gathered unit tells");
    if (learned_positions()) return;
    if (names_rope()) draft_.seen("/model/positions", "rope", "its operators");
    else if (trace_.mentions("alibi")) draft_.seen("/model/positions", "alibi", "its operators");
    else draft_.guess("/model/positions", llama ? "rope" : "none", "no operator names them");
  }

  void like_a_preset() {
    if (h_ == 0) return;
    for (const std::string& name : scenarios::preset_names()) {
      const program::ModelShape model = scenarios::preset(name).model;
      const bool same = model.hidden == h_ && model.heads == attention_.heads && model.ffn == draft_.number("/model/ffn") &&
                        model.vocab == draft_.number("/model/vocab") && model.kv_heads == draft_.number("/model/kv_heads") &&
                        model.experts == draft_.number("/model/experts/count");
      if (!same) continue;
      const std::string because = "as of " + name + ", which has these sizes";
      draft_.guess("/model/tied_embeddings", model.tied_embeddings, because);
      draft_.guess("/model/name", name, because);
      return;
    }
  }

 private:
  [[nodiscard]] bool of_blocks(std::int64_t in, std::int64_t out, double times) const {
    return near(linears_.of(in, out), times * static_cast<double>(layers_));
  }

  /// The widest of the layers that each forward has once; where the loss takes its logits chunk by chunk, the widest that other rows pass through.
  void head() {
    for (const auto& [sizes, count] : linears_.count) {
      if (sizes.first == h_ && near(count, 1) && (layers_ > 1 || sizes.second > vocab_)) vocab_ = std::max(vocab_, sizes.second);
    }
    if (vocab_ > 0) return draft_.seen("/model/vocab", vocab_, "the widest linear layer that a forward has once");
    for (const profile::CountedProduct& p : trace_.work.products) {
      if (p.pass == Pass::forward && p.product.batch == 1 && p.product.k == h_ && p.product.m < linears_.tokens && p.product.groups == 1 &&
          p.product.n != experts_.ffn)
        vocab_ = std::max(vocab_, p.product.n);
    }
    if (vocab_ > 0) {
      draft_.seen("/model/vocab", vocab_, "the widest linear layer that takes the tokens in parts");
      return draft_.seen("/kernels/loss", "chunked", "the head takes the tokens in parts");
    }
    for (const profile::CountedLookup& l : trace_.work.lookups) vocab_ = std::max(vocab_, l.lookup.width == h_ ? l.lookup.rows : 0);
    if (vocab_ > 0) draft_.guess("/model/vocab", vocab_, "rows of the embedding; no head is in the file");
    else draft_.missing("/model/vocab", "neither a head nor the embedding's shape is in the file");
  }

  /// Heads of keys and values: the projections that each block has besides those of the queries and of the result.
  void projections() {
    const auto layers = static_cast<double>(layers_);
    const double square = q_ == h_ ? 2 : 1;  // layers of h x q that are not of keys and values: queries, and the result's
    std::int64_t kv = 0;
    bool fused = false;
    for (std::int64_t heads = 1; heads <= attention_.heads && kv == 0; ++heads) {
      const std::int64_t width = heads * attention_.head_dim, all = q_ + 2 * width;
      if (attention_.heads % heads != 0) continue;
      fused = of_blocks(h_, all, 1) && all != vocab_;
      const bool own = linears_.of(h_, width) >= ((width == q_ ? square : 0) + 1.99) * layers;
      if (own || fused) kv = heads;
    }
    if (kv == 0) return draft_.guess("/model/kv_heads", attention_.kv_heads, "heads of attention's keys; the projections are not recognised");
    draft_.seen("/model/kv_heads", kv, fused ? "width of the projection of queries, keys and values" : "width of the keys' projection");
    draft_.seen("/model/fused_qkv", fused, fused ? "one projection for queries, keys and values" : "a projection for each of queries, keys and values");
    projection_biases(kv * attention_.head_dim, fused);
  }

  void projection_biases(std::int64_t width, bool fused) {
    const auto layers = static_cast<double>(layers_);
    const double square = linears_.with_bias(h_, h_) / layers;
    const bool qkv = fused ? linears_.with_bias(h_, q_ + 2 * width) > 0 : width == h_ ? square > 2.9 : linears_.with_bias(h_, width) > 0;
    const double of_qkv = !qkv || fused || q_ != h_ ? 0 : width == h_ ? 3 : 1;
    const bool output = q_ == h_ ? square - of_qkv > 0.9 : linears_.with_bias(q_, h_) > 0;
    draft_.seen("/model/biases/qkv", qkv, qkv ? "aten::addmm" : "aten::mm");
    draft_.seen("/model/biases/output", output, output ? "aten::addmm" : "aten::mm");
  }

  void feed_forward() {
    std::int64_t f = 0;
    for (const auto& [sizes, count] : linears_.count) {
      const bool down = sizes.second == h_ && sizes.first != h_ && near(count, (sizes.first == q_ ? 2.0 : 1.0) * static_cast<double>(layers_));
      if (down && (sizes.first != q_ || f == 0) && (sizes.first != q_ || near(count, 2.0 * static_cast<double>(layers_)))) f = sizes.first;
    }
    if (f == 0) {
      const bool grouped = trace_.mentions("grouped_mm") || trace_.mentions("grouped_gemm") || trace_.mentions("GroupedGemm");
      return draft_.missing("/model/ffn", grouped ? "the experts' products are grouped, and no operator has their shapes; give /model/experts, too"
                                                  : "no layer that each block has once ends a feed-forward network");
    }
    draft_.seen("/model/ffn", f, "the layer of each block that leads back to the model's width");
    const bool fused = of_blocks(h_, 2 * f, 1) && 2 * f != vocab_, gated = fused || linears_.of(h_, f) >= 1.99 * static_cast<double>(layers_);
    const bool gelu = names_gelu();
    if (!gated) draft_.seen("/model/ffn_kind", "gelu", "one layer leads to the feed-forward width");
    else draft_.seen("/model/ffn_kind", gelu ? "geglu" : "swiglu", "two layers' width leads to the feed-forward width");
    if (fused) draft_.seen("/model/fused_gate_up", true, "one layer of twice the feed-forward width");
    const bool bias = linears_.with_bias(f, h_) > 0;
    draft_.seen("/model/biases/ffn", bias, bias ? "aten::addmm" : "aten::mm");
  }

  [[nodiscard]] bool names_gelu() const { return trace_.mentions("gelu") || trace_.mentions("Gelu") || trace_.mentions("GELU"); }

  /// Each token passes through some of the networks of a block: their products together have as many times the rows of the others.
  void experts() {
    draft_.seen("/model/experts/count", experts_.count,
                experts_.grouped ? "matrices of the grouped products, or columns of the router; the simulator runs one expert after the other"
                                 : "columns of the narrowest linear layer that each block has once, the router");
    draft_.seen("/model/experts/active", experts_.active, "rows of the experts' products against the tokens");
    draft_.seen("/model/ffn", experts_.ffn, "width of the products that lead back to the model's width with other rows than the tokens");
    draft_.seen("/model/ffn_kind", !experts_.gated ? "gelu" : names_gelu() ? "geglu" : "swiglu", "how many such products lead to that width");
  }

  /// Which layers have one, by how many: of a block's 4 (fused: 2) linear layers of attention and 2 or 3 of the feed-forward network.
  void adapters() {
    const auto is_true = [&](const char* pointer) {
      const InferredKey* key = draft_.find(pointer);
      return key && key->value == true;
    };
    const double each = linears_.adapters / static_cast<double>(layers_);
    const bool fused = is_true("/model/fused_qkv"), gated = draft_.text("/model/ffn_kind") != "gelu";
    const double attention = fused ? 2 : 4, all = attention + (gated && !is_true("/model/fused_gate_up") ? 3 : 2);
    draft_.seen("/model/lora_rank", linears_.adapter_rank, "a narrow middle between two layers beside a layer of the same ends");
    const std::string because = fmt::format("{:.2g} of the linear layers of a block have one", each);
    const char* const targets = near(each, all) ? "all_linear" : near(each, attention) ? "attention" : "query_value";
    if (near(each, all) || near(each, attention) || near(each, fused ? 1 : 2)) draft_.seen("/model/lora_targets", targets, because);
    else draft_.guess("/model/lora_targets", each > attention ? "all_linear" : targets, because);
  }

  /// Not "property".
  [[nodiscard]] bool names_rope() const {
    constexpr const char* kParts[] = {"rotary", "Rotary", " rope", "_rope", "::rope"};
    return std::any_of(std::begin(kParts), std::end(kParts), [&](const char* part) { return trace_.mentions(part); });
  }

  bool learned_positions() {
    if (trace_.mentions("embedding positions"))
      return draft_.seen("/model/positions", "learned", "a second lookup"),
             draft_.guess("/model/max_positions", draft_.number("/batch/seq_len"), "at least the sequence"), true;
    for (const profile::CountedLookup& l : trace_.work.lookups) {
      if (l.lookup.width != h_ || l.lookup.rows == vocab_ || l.lookup.rows < attention_.length) continue;
      draft_.seen("/model/positions", "learned", "a second lookup");
      draft_.seen("/model/max_positions", l.lookup.rows, "rows of the second lookup");
      return true;
    }
    return false;
  }

  const TraceView& trace_;
  ScenarioDraft& draft_;
  double forwards_;
  Linears linears_;
  AttentionSeen attention_;
  ExpertsSeen experts_;
  std::int64_t h_ = 0, layers_ = 0, q_ = 0, vocab_ = 0;
};

void take_given(const scenarios::ImportedModel& given, ScenarioDraft& draft) {
  scenarios::Scenario shape;
  shape.model = given.shape;
  shape.model_name = given.name;
  draft.given("/model", scenarios::to_json(shape)["model"], "--model");
}

}  // namespace

double micro_batches(const profile::Workload& work) {
  std::int64_t starts = 0;
  bool forward = false, backward = false;
  for (const profile::Issued& issued : work.order) {
    if (issued.message) continue;
    if (issued.pass == Pass::forward && !forward) ++starts;
    forward = issued.pass == Pass::forward;
    backward = backward || issued.pass == Pass::backward;
  }
  if (starts == 0) return 0;
  return backward ? static_cast<double>(starts) / static_cast<double>(work.steps) : 1;
}

void infer_model(const TraceView& trace, const std::optional<scenarios::ImportedModel>& given, ScenarioDraft& draft) {
  ModelInference inference(trace, draft);
  inference.batch();
  if (given) {
    take_given(*given, draft);
  } else {
    inference.sizes();
    inference.the_rest();
    inference.like_a_preset();
  }
}

}  // namespace stepcast::cli
