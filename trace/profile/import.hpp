// Trace files -> profiles: what is where (files, gzip, zip archives, folders), and the reading of one.
// Document: docs/diagnose.md, "What is read". Tests: tests/unit/profile_files_test.cpp, profile_reader_test.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trace/profile/byte_source.hpp"
#include "trace/profile/profile.hpp"

namespace stepcast::trace::profile {

/// One trace: a file or a member of an archive, not opened yet.
struct Input {
  std::string label;
  std::function<std::unique_ptr<ByteSource>()> open;
};

/// The traces at `path`: the file itself, the members of a zip archive, or those of a folder by name. Throws InputError where there is none.
std::vector<Input> inputs_at(const std::string& path);

/// Reads a whole trace. Throws InputError where it holds no events.
Profile import_profile(ByteSource& source, const std::string& label);

}  // namespace stepcast::trace::profile
