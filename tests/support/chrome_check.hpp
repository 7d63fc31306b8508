// What every Chrome/Kineto file that we write must satisfy, whatever made the trace. Test: tests/unit/chrome_writer_test.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stepcast::test {

/// One line per violation, empty if there is none: complete events have names, begins that never go back within a lane, no negative length, and nest;
/// every device event has a correlation with exactly one launch call and one arrow, whose ends are where the call and the work begin.
std::vector<std::string> check_chrome(const nlohmann::json& file);

}  // namespace stepcast::test
