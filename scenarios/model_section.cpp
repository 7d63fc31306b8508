// See model_section.hpp.
#include "scenarios/model_section.hpp"

#include <fmt/format.h>

#include "hw_models/text_file.hpp"
#include "scenarios/fields.hpp"
#include "scenarios/presets.hpp"
#include "scenarios/sections.hpp"

namespace stepcast::scenarios {
namespace {

/// GPT-2's block: one projection for q, k and v, biases everywhere, LayerNorm, GELU, learned positions, head tied to the embedding (openai/gpt-2, src/model.py).
program::ModelShape gpt_style() {
  program::ModelShape shape;
  shape.style = program::BlockStyle::gpt;
  shape.ffn_kind = program::FfnKind::gelu;
  shape.norm = program::NormKind::layer_norm;
  shape.positions = program::Positions::learned;
  shape.tied_embeddings = shape.attention_bias = shape.output_bias = shape.ffn_bias = shape.norm_bias = shape.fused_qkv = true;
  return shape;
}

/// Sizes for fixed-cost scenarios that give none: small, since nothing is computed from them.
program::ModelShape fixed_cost_shape() {
  program::ModelShape shape;
  shape.hidden = shape.head_dim = 64;
  shape.heads = shape.kv_heads = 1;
  shape.ffn = shape.vocab = 256;
  return shape;
}

void require_sizes(Reader& reader) {
  for (const char* key : {"hidden", "layers", "heads", "ffn", "vocab"}) {
    if (!reader.has(key)) reader.fail(key, "is missing", "give a preset, or every size of the model");
  }
}

/// What follows from the sizes where the file does not say.
void derive(Reader& reader, bool fresh, program::ModelShape& shape) {
  if (fresh && !reader.has("kv_heads")) shape.kv_heads = shape.heads;
  if (reader.has("head_dim") || !(fresh || reader.has("hidden") || reader.has("heads"))) return;
  if (shape.hidden % shape.heads != 0) {
    reader.fail("heads", fmt::format("{} does not divide hidden = {}", shape.heads, shape.hidden), "change heads or hidden, or give head_dim");
  }
  shape.head_dim = shape.hidden / shape.heads;
}

Preset find_preset(Reader& reader) {
  const std::string name = reader.text("preset");
  const std::vector<std::string> known = preset_names();
  if (std::find(known.begin(), known.end(), name) != known.end()) return preset(name);
  std::string list;
  for (const std::string& one : known) list += (list.empty() ? "" : ", ") + one;
  const std::string near = nearest(name, known);
  reader.fail("preset", "unknown model \"" + printable(name) + "\"", (near.empty() ? "" : "did you mean \"" + near + "\"? ") + ("known: " + list));
}

}  // namespace

program::ModelShape read_shape(Reader reader, std::optional<program::ModelShape> start) {
  const bool fresh = !start;
  if (fresh) require_sizes(reader);
  program::BlockStyle style = program::BlockStyle::llama;
  reader.maybe("style", style, kBlockStyles);
  program::ModelShape shape = start ? *start : style == program::BlockStyle::gpt ? gpt_style() : program::ModelShape{};
  FieldReader fields(std::move(reader));
  describe(fields, shape);
  derive(fields.reader(), fresh, shape);
  fields.finish();
  return shape;
}

Model read_model(Reader reader, bool fixed_costs) {
  Model model;
  std::optional<program::ModelShape> start;
  if (reader.has("preset")) {
    Preset found = find_preset(reader);
    model.name = std::move(found.name);
    start = found.model;
  } else if (fixed_costs && !reader.has("hidden")) {
    if (!reader.has("layers")) reader.fail("layers", "is missing");
    start = fixed_cost_shape();
  }
  reader.maybe("name", model.name);
  model.shape = read_shape(std::move(reader), start);
  return model;
}

}  // namespace stepcast::scenarios
