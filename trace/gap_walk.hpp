// Explains an idle interval of the compute stream by walking backwards along what had to happen before the next kernel could start.
// Private to trace/. Rules: docs/breakdown.md section 4. Test: tests/unit/gap_walk_test.cpp.
#pragma once

#include <vector>

#include "trace/breakdown.hpp"
#include "trace/step_view.hpp"

namespace stepcast::trace {

class GapWalk {
 public:
  explicit GapWalk(const Trace& trace, const StepView& view) : trace_(trace), view_(view) {}

  struct Piece {
    Interval time;
    GapCause cause = GapCause::unexplained;
  };
  /// Cuts `gap` into pieces, in time order and without holes. `next` is the kernel that ended it (null: none is known).
  std::vector<Piece> explain(Interval gap, const Slice* next);

 private:
  [[nodiscard]] const Slice* releaser(SimTime time);
  void take(SimTime from, GapCause cause);
  void take_rest(SimTime from);
  [[nodiscard]] const Slice* running_through(SimTime from) const;
  void wait_for_device(const Slice& work);
  const Slice* follow_host(SimTime host_time);
  [[nodiscard]] const Slice* device_behind(const Slice& block);
  [[nodiscard]] GapCause cause_of(const Slice& work) const;

  const Trace& trace_;
  const StepView& view_;
  SimTime begin_{}, cursor_{};  // the gap is explained from cursor_ on
  std::size_t limit_ = 0;       // device work from here on was looked at before
  std::size_t candidate_ = 0;   // of the last releaser() or device_behind()
  std::vector<Piece> pieces_;   // latest first
};

}  // namespace stepcast::trace
