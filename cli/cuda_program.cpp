// See cuda_program.hpp.
#include "cli/cuda_program.hpp"

#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace stepcast::cli {
namespace {

constexpr const char* kProgram = "stepcast-cuda";

bool asks_for_cuda(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--device=cuda" || (argument == "--device" && i + 1 < argc && std::string_view(argv[i + 1]) == "cuda")) return true;
  }
  return false;
}

}  // namespace

void hand_over_to_cuda(int argc, char** argv) {
  if (!asks_for_cuda(argc, argv)) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error || self.filename() == kProgram) return;
  execv((self.parent_path() / kProgram).c_str(), argv);
}

}  // namespace stepcast::cli
