// The events of one rank in Kineto's form: host thread, streams, arrows between them. Private to trace/. Test: tests/unit/chrome_writer_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/json_out.hpp"
#include "trace/trace.hpp"

namespace stepcast::trace {

/// CUPTI numbers the default stream 7; streams made later have higher numbers.
inline constexpr int kFirstStream = 7;

class ChromeLanes {
 public:
  /// `device`: number of the GPU, which is also its process number in the file; `pid`: number of the host process and its thread.
  ChromeLanes(const Trace& trace, const RankTrace& rank, int device, int pid, JsonOut& out);
  void write();

 private:
  struct Call {
    std::uint64_t op = 0;           // External id of the op around it, 0 = none
    bool made = false;              // a call on the host carries the number
    bool launches = false;          // something on the device does
    const Slice* kernel = nullptr;  // that, if it is a kernel
  };
  struct Range {  // a slice, or an annotation over several slices of a stream
    SimTime begin{}, end{};
    const Slice* slice = nullptr;
    int depth = 0;  // of ranges with equal times the lower one lies outside
    std::string name{};
  };

  void split_lanes();
  void write_host();
  void write_host_slice(const Slice& slice, const Slice* kernel);
  void write_operator(const Slice& kernel, std::string_view op);
  [[nodiscard]] const Slice* kernel_launched_in(std::size_t place) const;
  void write_block(const Slice& slice);
  void write_launch(const Slice& slice, std::string_view name);
  void write_range(const Slice& slice, std::string_view category, std::string_view name, const Slice* kernel);
  void write_stream(std::size_t lane);
  void annotate(const std::vector<const Slice*>& work, bool phases, std::vector<Range>& out) const;
  void write_device_slice(const Slice& slice, int stream);
  void write_collective(const Slice& slice);
  void write_annotation(const Range& range, int stream);
  void arrow(const Slice& slice, int stream);
  JsonOut& event(const char* category, std::string_view name, int pid, int tid, SimTime begin, SimTime end);
  [[nodiscard]] std::string_view name_of(const Slice& slice) const;

  const Trace& trace_;
  const RankTrace& rank_;
  const int device_, pid_;
  JsonOut& out_;
  std::vector<const Slice*> host_;
  std::vector<std::vector<const Slice*>> streams_;
  std::unordered_map<std::uint32_t, Call> calls_;        // by correlation
  std::vector<std::pair<SimTime, std::uint64_t>> open_;  // host ops around the place of writing: end, External id
  std::vector<std::string> collective_names_;
  std::uint64_t external_ = 0, sequence_ = 0;
};

}  // namespace stepcast::trace
