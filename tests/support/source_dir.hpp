// Where the project's sources lie: tests read golden files, documents and ../shared from there.
#pragma once

#include <string>

namespace stepcast::test {

// The project's root, without a slash at the end. In a file of its own, so that only one object depends on the path (a compiler cache shares the others).
std::string source_dir();

}  // namespace stepcast::test
