// The build defines both for this file alone.
#include "support/paths.hpp"

namespace stepcast::test {

std::string source_dir() { return STEPCAST_SOURCE_DIR; }

std::string binary() { return STEPCAST_BINARY; }

}  // namespace stepcast::test
