// Questions about a run that are answered by simulations: what would hide the communication, what fits, what would reach an MFU. docs/questions.md, "What must be true";
// test: tests/unit/must_be_true_test.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/levers.hpp"

namespace stepcast::cli {

struct QuestionSettings {
  double exposed_below = 0.01;  // share of the step
  double target_mfu = 0;        // 0: not asked
  unsigned threads = 1;
};

/// Which factor makes some communication's exposed share small enough.
struct HiddenAnswer {
  std::string what;  // "all-gather", "communication"
  std::string lever;
  double share_now = 0, share_then = 0;
  Crossing crossing;
};

struct BatchAnswer {
  std::int64_t micro_batch = 0;    // the largest that fits while one more does not; 0: not even one sequence
  Report report;                   // of it
  std::int64_t missing_bytes = 0;  // what one more would need more than there is; 0: the largest that a scenario may have
};

/// Which factor, or which micro-batch, reaches the MFU.
struct TargetAnswer {
  std::string lever;
  Crossing crossing;
};
struct TargetBatchAnswer {
  std::int64_t micro_batch = 0;  // the smallest above the scenario's that reaches it; 0: none tried
  std::int64_t tried_to = 0;
  Report report;                   // of it; where none reaches it, of the best tried
  std::int64_t missing_bytes = 0;  // what it needs more than there is; 0: it fits
};

struct Answers {
  QuestionSettings asked;
  bool ran = false;  // the scenario itself; if not, only what fits is answered
  double mfu_now = 0;
  std::vector<HiddenAnswer> hidden;
  BatchAnswer largest;
  std::vector<TargetAnswer> target;
  std::optional<TargetBatchAnswer> target_batch;  // nothing where the MFU is reached already
};

/// `now`: the report of the scenario. Throws InputError for fixed costs.
Answers must_be_true(const scenarios::Scenario& scenario, const Report& now, const QuestionSettings& settings);

/// An answer in words. Several changes of the machine may answer one question; some questions have none.
struct AnswerLine {
  std::string question, change, answer;
};
std::vector<AnswerLine> lines_of(const Answers& answers);

nlohmann::ordered_json to_json(const Answers& answers);
std::string to_text(const Answers& answers);

}  // namespace stepcast::cli
