// See measured.hpp.
#include "cli/validate/measured.hpp"

#include "cli/validate/row_scenario.hpp"
#include "hw_models/utilisation.hpp"
#include "program/model.hpp"

namespace stepcast::cli {
namespace {

using calibration::MemoryQuantity, calibration::MfuConvention, calibration::Run;

/// Parameters that the convention multiplies by 6.
double parameters(const Run& run, const MfuConvention& convention, const program::ModelShape& model) {
  switch (convention.parameters) {
    case MfuConvention::Parameters::stated: return run.number("params_b") ? *run.number("params_b") * 1e9 : static_cast<double>(program::parameters(model));
    case MfuConvention::Parameters::blocks: return static_cast<double>(model.layers * program::parameters_per_block(model));
    case MfuConvention::Parameters::without_embedding: return static_cast<double>(program::parameters(model) - model.vocab * model.hidden);
    case MfuConvention::Parameters::nominal: return convention.nominal;
    case MfuConvention::Parameters::matmul: break;
  }
  return static_cast<double>(program::matmul_parameters(model));
}

std::optional<MemoryQuantity> quantity_in_words(const std::string& words) {
  if (contains(words, "peak allocated")) return MemoryQuantity::allocated;
  if (contains(words, "reserved")) return MemoryQuantity::reserved;
  if (contains(words, "active")) return MemoryQuantity::active;
  if (contains(words, "nvidia-smi") || contains(words, "GPU memory")) return MemoryQuantity::device;
  return std::nullopt;
}

void add_memory(const Run& run, const calibration::SourceFacts& facts, Measured& m) {
  constexpr double kGib = 1073741824.0;
  const std::string words = run.text("mem_kind");
  const auto gib = run.number("peak_mem_gib"), gb = run.number("peak_mem_gb");
  if (gib) m.peak_memory_bytes = *gib * (contains(words, "GB as printed") ? 1e9 : kGib);
  else if (gb) m.peak_memory_bytes = *gb * 1e9;
  if (!m.peak_memory_bytes) return;
  m.memory_quantity = contains(words, "as printed") && facts.memory ? facts.memory : quantity_in_words(words);
  if (!m.memory_quantity) m.memory_quantity = facts.memory;
}

}  // namespace

bool ran_out_of_memory(const Run& run) {
  const bool timed = run.find("tokens_per_s_per_gpu") || run.find("step_time_s") || run.find("mfu");
  return !timed && contains(lower(run.text("note")), "out of memory");
}

double source_flops_per_token(const Run& run, const std::optional<MfuConvention>& convention, const scenarios::Scenario& scenario) {
  const MfuConvention used = convention.value_or(MfuConvention{});
  const program::ModelShape& model = scenario.model;
  const hw::FlopCounts counts{static_cast<std::int64_t>(parameters(run, used, model)), model.layers, program::query_width(model), scenario.batch.seq_len};
  return hw::model_flops_per_token(counts, used.attention_share).in(flop);
}

Measured measured(const Run& run, const calibration::SourceFacts& facts, const scenarios::Scenario& scenario, double flops_per_token, double peak_flops) {
  Measured m;
  m.mfu = run.number("mfu");
  if (ran_out_of_memory(run)) m.outcome = "out_of_memory";
  const calibration::Cell* rate = run.find("tokens_per_s_per_gpu");
  if (rate) {
    m.tokens_per_s_per_gpu = rate->number;
    m.from = rate->given == calibration::Given::stated ? "stated" : "inferred";
  } else if (const auto step = run.number("step_time_s")) {
    m.tokens_per_s_per_gpu = static_cast<double>(program::tokens(scenario.batch) * scenario.batch.grad_accum) / *step;
    m.from = "step time";
  } else if (m.mfu && flops_per_token > 0) {
    m.tokens_per_s_per_gpu = *m.mfu * peak_flops / flops_per_token;
    m.from = "MFU";
  }
  add_memory(run, facts, m);
  return m;
}

}  // namespace stepcast::cli
