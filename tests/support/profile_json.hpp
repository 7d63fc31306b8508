// Small profiles written by hand: events as JSON text, read back as a Profile.
#pragma once

#include <fmt/format.h>

#include <string>

#include "trace/profile/import.hpp"

namespace stepcast::test {

class ProfileJson {
 public:
  /// A complete event with extra members or arguments as JSON text.
  ProfileJson& event(const std::string& category, const std::string& name, double ts, double dur, int tid, const std::string& arguments = "") {
    return raw(fmt::format(R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})", category, name,
                           category == "kernel" || category.starts_with("gpu_") ? 0 : 100, tid, ts, dur, arguments));
  }
  ProfileJson& kernel(const std::string& name, double ts, double dur, int stream, int correlation) {
    const char* category = name.starts_with("Memcpy") ? "gpu_memcpy" : name.starts_with("Memset") ? "gpu_memset" : "kernel";
    return event(category, name, ts, dur, stream, fmt::format(R"("device":0,"stream":{},"correlation":{})", stream, correlation));
  }
  ProfileJson& call(const std::string& name, double ts, double dur, int correlation, int tid = 1) {
    return event("cuda_runtime", name, ts, dur, tid, fmt::format(R"("correlation":{})", correlation));
  }
  ProfileJson& op(const std::string& name, double ts, double dur, int tid = 1) { return event("cpu_op", name, ts, dur, tid); }
  ProfileJson& range(const std::string& name, double ts, double dur, int tid = 1) { return event("user_annotation", name, ts, dur, tid); }
  ProfileJson& raw(const std::string& text) {
    events_ += (events_.empty() ? "" : ",\n") + text;
    return *this;
  }
  [[nodiscard]] std::string text(const std::string& headers = "") const { return "{" + headers + "\"traceEvents\":[" + events_ + "]}"; }
  [[nodiscard]] trace::profile::Profile read(const std::string& headers = "") const { return read_text(text(headers)); }
  static trace::profile::Profile read_text(const std::string& text) {
    trace::profile::MemorySource source(text);
    return trace::profile::import_profile(source, "test");
  }

 private:
  std::string events_;
};

}  // namespace stepcast::test
