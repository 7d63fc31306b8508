// Progress of long work on one line of standard error, where a person may be looking, with the time that is left. Test: tests/unit/sweep_test.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace stepcast::cli {

/// "sweep: 120 of 1,000 points, 14 s left". `elapsed_s` for `done` of `total`.
std::string progress_text(const std::string& what, std::size_t done, std::size_t total, double elapsed_s);
/// Called with how much is done; empty unless standard error is a terminal.
std::function<void(std::size_t)> progress(const std::string& what, std::size_t total);
/// The same where nobody knows how much there is: "tune: 120 simulations". The line is left when the function is destroyed.
std::function<void(std::size_t)> open_progress(const std::string& what);

}  // namespace stepcast::cli
