// Data files compiled into the program by cmake/embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace stepcast {

struct EmbeddedFile {
  std::string_view name;  // file name without folder
  std::string_view text;
};

std::span<const EmbeddedFile> hardware_files();  // hw_models/data
std::span<const EmbeddedFile> scenario_files();  // scenarios/data
std::span<const EmbeddedFile> web_files();       // the template of the report page (web/), or none

}  // namespace stepcast
