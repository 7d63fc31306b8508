// Any bytes as a sweep file, as an axis and as what a stopped sweep left: accepted, or one line of InputError. An accepted grid can be counted through.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "cli/sweep/store.hpp"
#include "hw_models/input_error.hpp"
#include "planner/sweep_file.hpp"

namespace {

using namespace stepcast;

template <class Action>
void guarded(const Action& action) {
  try {
    action();
  } catch (const InputError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

void walk(const planner::Grid& grid) {
  for (const std::size_t i : {std::size_t{0}, grid.size() / 2, grid.size() - 1}) {
    if (grid.sets(i).size() != grid.axes().size()) std::abort();
  }
}

void read_store(std::string_view text) {
  std::string path = (std::filesystem::temp_directory_path() / "stepcast-fuzz-XXXXXX").string();
  const int file = mkstemp(path.data());
  if (file < 0) std::abort();
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  guarded([&] {
    if (written) cli::SweepStore store(path, "0.1.0");
  });
  std::remove(path.c_str());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  guarded([&] { walk(planner::Grid(planner::read_sweep(text, "fuzz.json").axes)); });
  guarded([&] { walk(planner::Grid(std::vector<planner::Axis>{planner::parse_axis(text)})); });
  read_store(text);
  return 0;
}
