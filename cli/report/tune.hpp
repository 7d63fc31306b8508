// What `tune` found, as JSON and as text. docs/tune.md; test: tests/unit/tune_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/tune/advice.hpp"

namespace stepcast::cli {

/// A point among the best, or of the front of step time against headroom.
struct TunePoint {
  std::string words;
  std::vector<std::string> sets;
  double step_time_s = 0, tokens_per_s_per_gpu = 0, mfu = 0;
  std::int64_t peak_reserved_bytes = 0, headroom_bytes = 0;
};

/// The best of a cluster of another size at the same global batch.
struct ScaleRow {
  std::int64_t nodes = 0, gpus = 0;
  std::string refusal;             // why there is none, where the rules of a scenario say so
  std::optional<TunePoint> point;  // absent too where nothing fits
};

struct TuneResult {
  std::string scenario;
  std::vector<TunePoint> best, front;  // fastest first
  std::size_t points = 0, evaluated = 0, refused = 0, pruned_by_memory = 0, pruned_by_time = 0, not_reached = 0;
  double gap = 0;
  std::vector<Decision> decisions;
  std::vector<Elasticity> elasticities;
  std::vector<Trial> robustness;
  std::vector<ScaleRow> scale;
  std::vector<std::pair<std::string, std::string>> settings;
};

nlohmann::ordered_json to_json(const TuneResult& result);
std::string to_text(const TuneResult& result);

}  // namespace stepcast::cli
