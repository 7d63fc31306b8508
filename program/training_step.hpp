// What all frameworks share: a training step as zero_grad, its micro-batches and the optimizer, with the marks of a trace; the marks of units; waits of one stream for
// another. A framework fills in forward and backward. Test: tests/unit/build_test.cpp and those of every framework.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/spec.hpp"
#include "program/work.hpp"

namespace stepcast::program {

class TrainingStep {
 public:
  virtual ~TrainingStep() = default;
  /// zero_grad, all micro-batches, optimizer.
  void step();

 protected:
  /// `work` makes the launches of the model. All must outlive this object.
  TrainingStep(const StepSpec& spec, Builder& builder, Work& work);

  virtual void zero_grad() = 0;
  virtual void forward() = 0;
  virtual void backward() = 0;
  /// What is left of it when the backward is over.
  virtual void optimizer() {
    if (!spec_.optimizer.in_backward) work_.optimizer();
  }

  /// `waiter` waits for all that is on `tail` by now.
  void stream_wait(Stream waiter, Stream tail);
  /// Units in the order in which they are named; opened and closed by number.
  void name_unit(const std::string& name, std::int32_t index);
  void open_unit(std::size_t number) { builder_.mark(unit_marks_[number].begin[in_backward_]); }
  void close_unit(std::size_t number) { builder_.mark(unit_marks_[number].end[in_backward_]); }

  [[nodiscard]] bool last_micro_batch() const { return micro_batch_ + 1 == spec_.batch.grad_accum; }
  /// Fixed-cost mode: launches of the model and collectives alone.
  [[nodiscard]] bool scheduled_only() const { return builder_.detail() == Detail::schedule; }

  const StepSpec& spec_;
  Builder& builder_;
  Work& work_;
  std::int64_t micro_batch_ = 0;
  bool sync_gradients_ = true;  // whether this micro-batch's gradients are reduced
  bool in_backward_ = false, optimizer_state_ = false;

 private:
  void micro_batch(std::int64_t number);
  void synchronize(const char* event);

  struct UnitMarks {
    std::array<MarkId, 2> begin{}, end{};  // by in_backward_
  };
  std::vector<UnitMarks> unit_marks_;
  std::array<EventId, kStreams> tails_{};
};

}  // namespace stepcast::program
