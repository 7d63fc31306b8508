// A job on several processes: the first one hears what the ranks of the others do, as if they were its own, and tells them to stop when the job has failed.
// docs/real_backend.md, "Several processes"; test: tests/unit/launch_test.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "real_backend/device.hpp"
#include "real_backend/failure.hpp"
#include "real_backend/launch/packet.hpp"
#include "real_backend/launch/peers.hpp"
#include "real_backend/rank_result.hpp"

namespace stepcast::real {

/// The first process has ended the job before this one was done with it.
struct JobEnded final : std::runtime_error {
  explicit JobEnded(int code) : std::runtime_error("the first process has ended the job"), exit_code(code) {}
  int exit_code;
};

/// What all ranks of a process share. `traces`: so many ranks send their traces.
struct LinkedJob {
  Failure& failure;
  Counter& progress;
  std::deque<RankResult>& results;  // of all ranks; the first process fills in those of the others
  std::int32_t traces = 1;
  std::size_t parameters = 0;  // of which each rank tells the sums
};

class Link {
 public:
  Link(Peers& peers, LinkedJob job) : peers_(peers), job_(job), ready_(static_cast<std::size_t>(peers.size())) {}

  [[nodiscard]] bool first() const { return peers_.rank() == 0; }
  /// All processes are there, run the same thing (`identity`), and have the first one's clock. Otherwise the job has failed.
  void meet(std::uint64_t identity, Clock& clock, double deadline_s);
  /// Sends what is new here, takes in what has arrived. Called again and again.
  void turn();
  /// On the others: seconds since the first process was heard of, and the exit code with which it has ended the job.
  [[nodiscard]] double silence() const;
  [[nodiscard]] const std::optional<int>& over() const { return over_; }

 private:
  void meet_others(double deadline_s);
  void meet_first(Clock& clock, double deadline_s);
  void tell_first();
  void tell_others();
  void take_from_first(const Letter& letter);
  void take(const Letter& letter);
  void take(const Letter& letter, RankResult& result);
  void take_loss(std::int32_t rank, RankResult& result);
  void take_never_began(RankResult& result) const;
  void take_ready(std::int32_t rank, std::uint64_t identity);
  static void take_step(RankResult& result, PacketReader packet);
  void take_back(std::int32_t rank, RankResult& result, PacketReader packet) const;
  [[nodiscard]] std::string back() const;
  [[nodiscard]] RankResult& own() const { return job_.results[static_cast<std::size_t>(peers_.rank())]; }

  Peers& peers_;
  LinkedJob job_;
  std::vector<bool> ready_;  // by rank
  std::optional<int> over_;
  std::uint64_t identity_ = 0;
  const Clock* clock_ = nullptr;
  std::uint32_t steps_told_ = 0, progress_told_ = 0;
  std::size_t causes_told_ = 0;
  bool back_told_ = false, stop_told_ = false;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now(), spoke_ = heard_;
};

/// A text that the first process has and all get. Others: waits for it. Throws JobEnded, or std::runtime_error if nothing comes within the deadline.
std::string from_first(Peers& peers, const std::string& text, double deadline_s);

/// By another process than the first: its rank has failed before the job began.
void tell_failure(Peers& peers, const std::string& cause);
/// By the first process: all end with this code. By the others: waits for it and returns it; -1 if the first is gone or silent for so long.
void end_all(Peers& peers, int exit_code);
int wait_for_end(Peers& peers, double deadline_s);

}  // namespace stepcast::real
