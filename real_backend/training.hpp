// What a training run needs beside the program: hyperparameters, tokens, first values of the parameters. Closed formulas, at any size, so that anybody can hold a run
// against another framework; or drawn from a seed. docs/real_backend.md; test: tests/unit/training_test.cpp.
#pragma once

#include <cstdint>
#include <string_view>

namespace stepcast::real {

/// AdamW as torch.optim.AdamW, on every parameter; the norm of clip_grad_norm_.
struct Hyperparameters {
  double learning_rate = 1e-2, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, max_norm = 1;
};

enum class Source : std::uint8_t { seeded, closed_form };

/// Pure functions of their arguments.
struct Training {
  Source source = Source::seeded;
  std::uint64_t seed = 0;
  std::int64_t vocab = 1, seq_len = 1, micro_batch = 1, ranks = 1;
  Hyperparameters hyper = {};

  /// Token `position` of a sequence of the global batch; the label of a position is the token behind it.
  [[nodiscard]] std::int64_t token(std::int64_t step, std::int64_t sequence, std::int64_t position) const;
  /// Number in the global batch of a micro-batch's first sequence on a rank.
  [[nodiscard]] std::int64_t first_sequence(std::int64_t accumulation, std::int64_t rank) const { return (accumulation * ranks + rank) * micro_batch; }
  /// First value of element `number` (over all parameters of the model), which belongs to the tensor of that name.
  [[nodiscard]] double parameter(std::string_view name, std::int64_t number) const;
};

}  // namespace stepcast::real
