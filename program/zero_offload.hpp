// ZeRO-Offload: a rank's own reduced gradients on their way to the host. docs/zero.md, "Offload". Test: tests/unit/offload_test.cpp.
#pragma once

#include <cstdint>
#include <span>

#include "program/builder.hpp"
#include "program/spec.hpp"

namespace stepcast::program {

class HostGradients {
 public:
  /// Copies and kernels on `stream`, behind the reduction.
  HostGradients(const StepSpec& spec, Builder& builder, Stream stream) : spec_(spec), builder_(builder), stream_(stream) {}

  /// `own` elements of the `bucket`-th bucket of a micro-batch, held by `sources`. `adds`: to the sum over earlier micro-batches; `last`: none follows.
  void add(std::size_t bucket, std::span<const BufferId> sources, std::int64_t own, bool adds, bool last);

 private:
  void launch(KernelId id, std::span<const BufferId> reads, std::span<const BufferId> updates);

  const StepSpec& spec_;
  Builder& builder_;
  Stream stream_;
};

}  // namespace stepcast::program
