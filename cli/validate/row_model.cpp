// Columns of the model, the batch and the recomputation. See row_scenario.hpp.
#include <algorithm>
#include <cmath>

#include "cli/validate/row_scenario.hpp"

namespace stepcast::cli {
namespace {

using calibration::Cell;
using calibration::Run;

void put_count(const Run& run, const char* column, const char* pointer, Settings& settings) {
  if (const Cell* cell = run.find(column)) settings.put(pointer, static_cast<std::int64_t>(cell->number), weight_of(*cell));
}

/// Heads from their width, feed-forward of a GELU block as four times the width.
void put_derived_sizes(const Run& run, Settings& settings) {
  const auto hidden = run.count("d_model"), width = run.count("head_dim");
  if (hidden && width && *hidden % *width == 0) settings.put("/model/heads", *hidden / *width, Weight::fallback);
  if (hidden && run.text("ffn_kind") == "gelu") settings.put("/model/ffn", 4 * *hidden, Weight::fallback);
}

void require_shape(const Settings& settings) {
  std::string missing;
  for (const char* key : {"hidden", "layers", "heads", "ffn", "vocab"}) {
    if (!settings.find(std::string("/model/") + key)) missing += (missing.empty() ? "" : ", ") + std::string(key);
  }
  if (!settings.find("/batch/seq_len")) missing += (missing.empty() ? "" : ", ") + std::string("seq_len");
  if (!missing.empty()) throw NotExpressible("the shape of the model is not known: " + missing);
}

/// Share of the forward that is recomputed, from the row's own ratio of HFU to MFU: recomputation adds to 3 forwards.
std::optional<double> recomputed_share(const Run& run) {
  const auto mfu = run.number("mfu"), hfu = run.number("hfu");
  if (!mfu || !hfu) return std::nullopt;
  return std::clamp(3 * (*hfu / *mfu - 1), 0.0, 1.0);
}

/// Recomputation of a part of the blocks. MFU and HFU have two digits, so a share is known to about 0.05.
void put_share(double share, Settings& settings, Weight weight) {
  constexpr double kKnown = 0.05;
  const bool part = share > kKnown && share < 1 - kKnown;
  settings.put("/recompute/mode", part ? "share" : share > 0.5 ? "full" : "none", weight);
  if (part) settings.put("/recompute/share", std::round(100 * share) / 100, weight);
}

}  // namespace

void put_model(const Run& run, Settings& settings, Notes&) {
  put_count(run, "d_model", "/model/hidden", settings);
  put_count(run, "n_layers", "/model/layers", settings);
  put_count(run, "n_heads", "/model/heads", settings);
  put_count(run, "n_kv_heads", "/model/kv_heads", settings);
  put_count(run, "head_dim", "/model/head_dim", settings);
  put_count(run, "ffn_dim", "/model/ffn", settings);
  put_count(run, "vocab", "/model/vocab", settings);
  put_count(run, "seq_len", "/batch/seq_len", settings);
  put_derived_sizes(run, settings);
  require_shape(settings);
  const bool gelu = run.text("ffn_kind") == "gelu";
  settings.put("/model/style", gelu ? "gpt" : "llama", Weight::fallback);
  if (gelu && !settings.find("/model/positions")) settings.put("/model/max_positions", *settings.find("/batch/seq_len"), Weight::fallback);
  if (!run.text("model").empty()) settings.put("/model/name", run.text("model").substr(0, 80), Weight::stated);
}

void put_batch(const Run& run, Settings& settings, Notes& notes) {
  put_count(run, "micro_batch", "/batch/micro_batch", settings);
  put_count(run, "grad_accum", "/batch/grad_accum", settings);
  const auto micro = run.count("micro_batch"), accumulation = run.count("grad_accum"), global = run.count("global_batch_seqs"), gpus = run.count("n_gpus");
  if (!micro && !(global && gpus && *global % (*gpus * accumulation.value_or(1)) == 0)) throw NotExpressible("the micro-batch is not known");
  const std::int64_t size = micro ? *micro : *global / (*gpus * accumulation.value_or(1));
  if (!micro) {
    settings.put("/batch/micro_batch", size, Weight::fallback);
    notes.push_back("micro-batch of " + std::to_string(size) + " from the global batch");
  }
  if (!accumulation) {
    const bool whole = global && gpus && *global % (size * *gpus) == 0;
    settings.put("/batch/grad_accum", whole ? *global / (size * *gpus) : 1, Weight::fallback);
    if (!whole) notes.emplace_back("no accumulation assumed");
  } else if (global && gpus && size * *accumulation * *gpus != *global) {
    notes.emplace_back("micro-batch, accumulation and GPUs do not multiply to the global batch");
  }
}

void put_recompute(const Run& run, Settings& settings, Notes& notes) {
  const Cell* cell = run.find("act_ckpt");
  if (!cell) {
    notes.emplace_back("no recomputation assumed");
    return;
  }
  const Weight weight = weight_of(*cell);
  if (cell->text == "none" || cell->text == "full") settings.put("/recompute/mode", cell->text, weight);
  else if (cell->text.starts_with("selective-layer")) settings.put("/recompute/mode", "every_k", weight);
  else if (cell->text == "selective-fraction" && recomputed_share(run)) put_share(*recomputed_share(run), settings, weight);
  else if (contains(cell->text, "selective") && !settings.find("/recompute/mode")) settings.put("/recompute/mode", "per_op", Weight::loose);
}

}  // namespace stepcast::cli
