// Which program this is: what one build of it forecast, another may forecast otherwise. Test: tests/golden/sweep_test.cpp.
#pragma once

#include <string>

namespace stepcast::cli {

/// The version, and the linker's hash of the running program (GNU build id, 40 hexadecimal digits) where it carries one.
std::string build_id();

}  // namespace stepcast::cli
