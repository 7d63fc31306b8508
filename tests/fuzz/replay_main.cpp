// Replays a fuzzer's corpus without libFuzzer, so that past crashes stay tests under every compiler. Usage: fuzz_NAME FOLDER|FILE...
// The input is handed over in a heap block of exactly its size, so that a sanitizer sees a read beyond its end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Paths = std::vector<std::filesystem::path>;

Paths files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  Paths files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), {});
  if (!in) {
    std::fprintf(stderr, "can't read %s\n", path.c_str());
    return false;
  }
  const std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  std::fprintf(stderr, "%s (%zu bytes)\n", path.c_str(), input.size());  // before the call: a crash must name its input
  LLVMFuzzerTestOneInput(input.data(), input.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) try {
  int replayed = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& file : files_of(argv[i])) {
      if (!replay(file)) return 1;
      ++replayed;
    }
  }
  std::fprintf(stderr, "%d inputs replayed\n", replayed);
  return replayed > 0 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "exception escaped the fuzzer: %s\n", error.what());
  return 1;
}
