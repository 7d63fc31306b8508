// The mean of several steps. See breakdown.hpp; test: tests/unit/breakdown_test.cpp.
#include <algorithm>
#include <map>

#include "trace/breakdown.hpp"

namespace stepcast::trace {

namespace {

void add(Times& sum, const Times& one) {
  for (const auto part : {&Times::span, &Times::compute, &Times::collective, &Times::exposed, &Times::idle, &Times::host_blocked, &Times::data_wait})
    sum.*part += one.*part;
}

void divide(Times& sum, int count) {
  for (const auto part : {&Times::span, &Times::compute, &Times::collective, &Times::exposed, &Times::idle, &Times::host_blocked, &Times::data_wait})
    sum.*part /= count;
}

void divide(Breakdown& sum, int count) {
  divide(sum.total, count);
  for (Times& phase : sum.phases) divide(phase, count);
  for (CauseTotal& cause : sum.causes) cause = {(cause.count + count - 1) / count, cause.total / count};
  for (SimTime& exposed : sum.exposed_by_kind) exposed /= count;
  for (auto& kernel : sum.kernels) kernel.count /= count, kernel.total /= count;
}

/// Longest first, as of one step.
std::vector<Breakdown::KernelTotal> sorted(const std::map<std::string, Breakdown::KernelTotal>& kernels) {
  std::vector<Breakdown::KernelTotal> list;
  for (const auto& [name, total] : kernels) list.push_back(total);
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.total > b.total; });
  return list;
}

}  // namespace

Breakdown mean_breakdown(const Trace& trace, const RankTrace& rank, int first, int count) {
  Breakdown sum = break_down(trace, rank, first);
  if (count == 1) return sum;
  std::map<std::string, Breakdown::KernelTotal> kernels;
  for (const auto& kernel : sum.kernels) kernels[kernel.name] = kernel;
  for (int step = first + 1; step < first + count; ++step) {
    const Breakdown one = break_down(trace, rank, step);
    sum.end = one.end;
    add(sum.total, one.total);
    for (std::size_t p = 0; p < sum.phases.size(); ++p) add(sum.phases[p], one.phases[p]);
    sum.gaps.insert(sum.gaps.end(), one.gaps.begin(), one.gaps.end());
    for (std::size_t c = 0; c < sum.causes.size(); ++c) sum.causes[c].count += one.causes[c].count, sum.causes[c].total += one.causes[c].total;
    for (std::size_t k = 0; k < sum.exposed_by_kind.size(); ++k) sum.exposed_by_kind[k] += one.exposed_by_kind[k];
    for (const auto& kernel : one.kernels) {
      auto& total = kernels[kernel.name];
      total = {kernel.name, total.count + kernel.count, total.total + kernel.total};
    }
  }
  sum.kernels = sorted(kernels);
  divide(sum, count);
  return sum;
}

}  // namespace stepcast::trace
