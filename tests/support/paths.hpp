// Where the project lies. In a file of its own, so that only one object depends on the paths (a compiler cache shares the others).
#pragma once

#include <string>

namespace stepcast::test {

// The project's root, without a slash at the end: tests read golden files, documents and ../shared from there.
std::string source_dir();

// The built command.
std::string binary();

}  // namespace stepcast::test
