// How large a scenario may be. The limits keep every product that the simulator forms (bytes, FLOPs, ops) inside 63 bits and a program inside memory;
// they are far above any real training run. Used by sections.hpp and validate.cpp; test: tests/unit/scenario_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast::scenarios {

inline constexpr std::size_t kMaxScenarioBytes = std::size_t{4} << 20;
inline constexpr int kMaxBaseChain = 16;

inline constexpr std::int64_t kMaxHidden = 1 << 18, kMaxLayers = 4096, kMaxHeads = 1 << 12, kMaxHeadDim = 1 << 12, kMaxFfn = 1 << 20, kMaxVocab = 1 << 24,
                              kMaxExperts = 1024;
inline constexpr std::int64_t kMaxSequence = 1 << 22, kMaxMicroBatch = 1 << 16, kMaxAccumulation = 4096;
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 24;            // micro_batch * seq_len
inline constexpr std::int64_t kMaxScores = std::int64_t{1} << 50;            // micro_batch * heads * seq_len^2, which unfused attention stores
inline constexpr std::int64_t kMaxUnitPasses = std::int64_t{1} << 16;        // layers * grad_accum: ops of a step
inline constexpr std::int64_t kMaxTracedUnitPasses = std::int64_t{1} << 18;  // the same over the active steps and traced ranks: slices of the trace
inline constexpr std::int64_t kMaxRanks = 65536, kMaxExplicitRanks = 4096, kMaxNodes = 65536, kMaxGpusPerNode = 1024, kMaxNics = 1024;
inline constexpr std::int64_t kMaxUnitParameters = std::int64_t{1} << 50;
inline constexpr std::int64_t kMaxZeroSize = std::int64_t{1} << 44;  // elements of a bucket, live parameters, distances
inline constexpr std::int64_t kMaxTrainMetrics = 16;
inline constexpr std::int64_t kMaxSteps = 10000;
inline constexpr std::int64_t kMaxMemory = std::int64_t{1} << 47;  // bytes of one device
inline constexpr std::int64_t kMaxSampleBytes = std::int64_t{1} << 30;
inline constexpr double kMaxSpread = 1;                             // standard deviation of a logarithm
inline constexpr double kMinSlowScale = 0.1, kMaxSlowScale = 1000;  // of one rank against the others
inline constexpr double kMaxSeconds = 1000;                         // one phase, collective or batch

}  // namespace stepcast::scenarios
