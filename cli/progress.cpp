// See progress.hpp.
#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "cli/report/table.hpp"

namespace stepcast::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLines{100};

}  // namespace

std::string progress_text(const std::string& what, std::size_t done, std::size_t total, double elapsed_s) {
  std::string text = fmt::format("{}: {} of {} points", what, count_text(static_cast<double>(done)), count_text(static_cast<double>(total)));
  if (done > 0 && done < total) text += fmt::format(", {:.0f} s left", elapsed_s / static_cast<double>(done) * static_cast<double>(total - done));
  return text;
}

std::function<void(std::size_t)> progress(const std::string& what, std::size_t total) {
  if (isatty(STDERR_FILENO) == 0) return {};
  return [what, total, begin = Clock::now(), shown = Clock::time_point()](std::size_t done) mutable {
    const auto now = Clock::now();
    if (done < total && now - shown < kBetweenLines) return;
    shown = now;
    const std::string text = progress_text(what, done, total, std::chrono::duration<double>(now - begin).count());
    std::fprintf(stderr, "\r%-70s%s", text.c_str(), done == total ? "\n" : "");
  };
}

std::function<void(std::size_t)> open_progress(const std::string& what) {
  if (isatty(STDERR_FILENO) == 0) return {};
  const std::shared_ptr<void> line(nullptr, [](void*) { std::fputs("\n", stderr); });
  return [what, line, shown = Clock::time_point()](std::size_t done) mutable {
    const auto now = Clock::now();
    if (now - shown < kBetweenLines) return;
    shown = now;
    std::fprintf(stderr, "\rstepcast: %s: %s simulations", what.c_str(), count_text(static_cast<double>(done)).c_str());
  };
}

}  // namespace stepcast::cli
