// The file around the events: what the profiled machine was, the names of processes and threads, memory. Forms: profiles of PyTorch 2.x (schemaVersion 1).
// Test: tests/unit/chrome_writer_test.cpp.
#include "trace/chrome_writer.hpp"

#include <algorithm>
#include <ostream>

#include "trace/chrome_lanes.hpp"
#include "trace/json_out.hpp"
#include "trace/output_file.hpp"

namespace stepcast::trace {

namespace {

constexpr int kFirstPid = 1000;           // host processes; GPUs have the numbers from 0
constexpr int kGpuSortIndex = 5'000'000;  // as Kineto: below all host processes

void write_devices(const Trace& trace, JsonOut& out) {
  out.print("\"deviceProperties\":[");
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    out.print("{}{{\"id\":{},\"name\":", i == 0 ? "" : ",", i).string(trace.device_name).print(",\"totalGlobalMem\":{}}}", trace.device_memory_bytes);
  }
  out.print("],\n");
}

void write_head(const Trace& trace, JsonOut& out) {
  out.print("{{\"schemaVersion\":1,\n");
  write_devices(trace, out);
  out.print("\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{},\"world_size\":{}}},\n", trace.ranks.empty() ? 0 : trace.ranks.front().rank,
            trace.world_size);
  out.print("\"profile_memory\":1,\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0,\n\"traceName\":\"stepcast\",\"traceEvents\":[");
}

void write_label(JsonOut& out, const char* what, int pid, int tid, const char* key, std::string_view text) {
  out.next_event()
      .print("{{\"name\":\"{}\",\"ph\":\"M\",\"ts\":0.000,\"pid\":{},\"tid\":{},\"args\":{{\"{}\":", what, pid, tid, key)
      .string(text)
      .print("}}}}");
}

void write_sort_index(JsonOut& out, const char* what, int pid, int tid, int index) {
  out.next_event().print("{{\"name\":\"{}\",\"ph\":\"M\",\"ts\":0.000,\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}", what, pid, tid, index);
}

void write_process(JsonOut& out, int pid, const std::string& name, const std::string& label, int sort_index) {
  write_label(out, "process_name", pid, 0, "name", name);
  write_label(out, "process_labels", pid, 0, "labels", label);
  write_sort_index(out, "process_sort_index", pid, 0, sort_index);
}

void write_thread(JsonOut& out, int pid, int tid, const std::string& name) {
  write_label(out, "thread_name", pid, tid, "name", name);
  write_sort_index(out, "thread_sort_index", pid, tid, tid);
}

void write_names(const Trace& trace, const RankTrace& rank, int device, int pid, JsonOut& out) {
  const std::string process = fmt::format("rank {}", rank.rank);
  write_process(out, pid, process, "CPU", pid);
  write_thread(out, pid, pid, fmt::format("thread {} (main)", pid));
  write_process(out, device, process, fmt::format("GPU {}", device), kGpuSortIndex + device);
  std::vector<bool> used(trace.streams.size());
  for (const Slice& slice : rank.slices) {
    if (slice.lane >= 0 && static_cast<std::size_t>(slice.lane) < used.size()) used[static_cast<std::size_t>(slice.lane)] = true;
  }
  for (std::size_t lane = 0; lane < used.size(); ++lane) {
    const int stream = kFirstStream + static_cast<int>(lane);
    if (used[lane]) write_thread(out, device, stream, fmt::format("stream {} {}", stream, trace.streams[lane]));
  }
}

/// An instant for each allocation and free, and a counter that viewers draw as a curve.
void write_memory(const RankTrace& rank, int device, int pid, JsonOut& out) {
  for (const MemorySample& sample : rank.memory) {
    const std::int64_t time = to_nanoseconds(sample.time);
    if (sample.delta != 0) {
      out.next_event()
          .print("{{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":{},\"tid\":{},\"ts\":", pid, pid)
          .microseconds(time);
      out.print(",\"args\":{{\"Total Reserved\":{},\"Total Allocated\":{},\"Bytes\":{},\"Addr\":{},\"Device Id\":{},\"Device Type\":1}}}}", sample.reserved,
                sample.allocated, sample.delta, sample.address, device);
    }
    out.next_event().print("{{\"ph\":\"C\",\"name\":\"GPU {} memory\",\"pid\":{},\"tid\":0,\"ts\":", device, device).microseconds(time);
    out.print(",\"args\":{{\"Allocated\":{},\"Reserved\":{}}}}}", sample.allocated, sample.reserved);
  }
}

}  // namespace

void write_chrome(const Trace& trace, std::ostream& stream) {
  JsonOut out(stream);
  write_head(trace, out);
  for (std::size_t i = 0; i < trace.ranks.size(); ++i) {
    const int device = static_cast<int>(i), pid = kFirstPid + static_cast<int>(i);
    write_names(trace, trace.ranks[i], device, pid, out);
    ChromeLanes(trace, trace.ranks[i], device, pid, out).write();
    write_memory(trace.ranks[i], device, pid, out);
  }
  out.print("\n]}}\n");
  out.flush();
}

void write_chrome_gz(const Trace& trace, const std::string& path) {
  GzipFile file(path);
  write_chrome(trace, file.stream());
  file.commit();
}

}  // namespace stepcast::trace
