// Models that trainers write down in Meta's own terms: `dim`, `n_layers`, `ffn_dim_multiplier`, ... (meta-llama/llama, llama/model.py). docs/import.md.
#include <cmath>

#include "scenarios/import/draft.hpp"

namespace stepcast::scenarios {
namespace {

/// Of 4 x dim two thirds, times the multiplier, up to whole multiples.
std::int64_t llama_ffn(std::int64_t dim, double multiplier, std::int64_t multiple_of) {
  const std::int64_t two_thirds = 8 * dim / 3;  // whole, as in Meta's code
  const auto width = static_cast<std::int64_t>(std::floor(multiplier * static_cast<double>(two_thirds)));
  return (width + multiple_of - 1) / multiple_of * multiple_of;
}

}  // namespace

void set_llama_sizes(Settings& s, Draft& draft) {
  const auto whole = [&](const char* key, std::int64_t most) { return s.integer(std::string("model.") + key, 1, most); };
  const auto dim = whole("dim", kMaxHidden), layers = whole("n_layers", kMaxLayers), heads = whole("n_heads", kMaxHeads),
             vocab = whole("vocab_size", kMaxVocab);
  const auto kv_heads = whole("n_kv_heads", kMaxHeads), hidden = whole("ffn_hidden_dim", kMaxFfn);
  const double multiplier = s.number("model.ffn_dim_multiplier").value_or(1.0);
  if (multiplier <= 0 || multiplier > 64) s.refuse("model.ffn_dim_multiplier", "must be above 0 and at most 64");
  const std::int64_t multiple_of = whole("multiple_of", kMaxFfn).value_or(256);
  const bool tied = s.flag("model.tie_embeddings").value_or(s.flag("model.weight_tying").value_or(false));
  if (!dim || !layers || !heads || !vocab) {
    s.ignore("model", "without " + std::string(!dim ? "dim" : !layers ? "n_layers" : !heads ? "n_heads" : "vocab_size") + " it is no model: --model is needed");
    return;
  }
  draft.own_model = true;
  draft.document["model"] = {{"style", "llama"},
                             {"hidden", *dim},
                             {"layers", *layers},
                             {"heads", *heads},
                             {"kv_heads", kv_heads.value_or(*heads)},
                             {"ffn", hidden.value_or(llama_ffn(*dim, multiplier, multiple_of))},
                             {"vocab", *vocab}};
  if (tied) draft.set("/model/tied_embeddings", true);
}

}  // namespace stepcast::scenarios
