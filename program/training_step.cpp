// The loop over micro-batches. See training_step.hpp.
#include "program/training_step.hpp"

namespace stepcast::program {

TrainingStep::TrainingStep(const StepSpec& spec, Builder& builder, Work& work) : spec_(spec), builder_(builder), work_(work) {
  for (std::size_t s = 0; s < kStreams; ++s) tails_[s] = builder.event(std::string("tail of ") + name(static_cast<Stream>(s)));
}

void TrainingStep::step() {
  builder_.mark_new(MarkKind::step, true, -1, "step");
  builder_.host_work(hw::HostWork::step_begin);
  zero_grad();
  for (std::int64_t i = 0; i < spec_.batch.grad_accum; ++i) micro_batch(i);
  builder_.mark_new(MarkKind::optimizer, true, -1, "optimizer");
  optimizer();
  optimizer_state_ = true;
  if (spec_.sync_each_step) synchronize("step done");
  builder_.mark_new(MarkKind::optimizer, false, -1, "optimizer");
  builder_.mark_new(MarkKind::step, false, -1, "step");
}

void TrainingStep::micro_batch(std::int64_t number) {
  micro_batch_ = number;
  sync_gradients_ = !spec_.policy.no_sync || last_micro_batch();
  builder_.next_batch();
  in_backward_ = false;
  builder_.mark_new(MarkKind::forward, true, -1, "forward");
  forward();
  if (spec_.sync_each_phase) synchronize("forward done");
  builder_.mark_new(MarkKind::forward, false, -1, "forward");
  in_backward_ = true;
  builder_.mark_new(MarkKind::backward, true, -1, "backward");
  backward();
  work_.after_backward();
  if (spec_.sync_each_phase) synchronize("backward done");
  builder_.mark_new(MarkKind::backward, false, -1, "backward");
}

/// The host waits for what the compute stream has been given.
void TrainingStep::synchronize(const char* event) {
  const EventId done = builder_.event(event);
  builder_.record(done, Stream::compute);
  builder_.host_wait(done, WaitReason::synchronize);
}

void TrainingStep::stream_wait(Stream waiter, Stream tail) {
  const EventId event = tails_[static_cast<std::size_t>(tail)];
  builder_.record(event, tail);
  builder_.wait(waiter, event);
}

void TrainingStep::name_unit(const std::string& name, std::int32_t index) {
  const auto mark = [&](bool begin, const char* phase) { return builder_.mark(MarkKind::unit, begin, index, phase + name); };
  unit_marks_.push_back({{mark(true, "forward "), mark(true, "backward ")}, {mark(false, "forward "), mark(false, "backward ")}});
}

}  // namespace stepcast::program
