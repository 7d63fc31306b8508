// The path of the sources, which the build defines for this file alone.
#include "support/source_dir.hpp"

namespace stepcast::test {

std::string source_dir() { return STEPCAST_SOURCE_DIR; }

}  // namespace stepcast::test
