// See store.hpp. Format: a header line, then {"key":"16 hexadecimal digits","point":{...}} lines.
#include "cli/sweep/store.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::cli {
namespace {

constexpr std::string_view kBefore = "{\"key\":\"", kBetween = "\",\"point\":", kAfter = "}";
constexpr std::size_t kDigits = 16;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

SweepStore::SweepStore() : file_(std::tmpfile(), std::fclose) {
  if (!file_) fail("can't make a temporary file");
}

SweepStore::SweepStore(const std::string& path, const std::string& build)
    : header_(fmt::format("{{\"schema\":\"stepcast.sweep_points/1\",\"build\":\"{}\"}}\n", build)), file_(nullptr, std::fclose) {
  std::error_code error;
  const bool old = std::filesystem::exists(path, error);
  if (old) read_back(path);
  file_.reset(std::fopen(path.c_str(), old ? "r+b" : "w+b"));
  if (!file_) throw InputError(printable(path), "", "can't be written");
  if (old && ftruncate(fileno(file_.get()), end_) != 0) fail("can't cut the unfinished line off");
  if (!old) write(header_);
}

/// Every whole line; `end_` is behind the last. Line by line: the file is far larger than what is kept of it.
void SweepStore::read_back(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || file.eof() || line + "\n" != header_)
    throw InputError(printable(path), "line 1", "is not the unfinished sweep of this build of stepcast", "choose another folder for --out, or remove the file");
  end_ = static_cast<long>(header_.size());
  for (int number = 2; std::getline(file, line) && !file.eof(); ++number) {
    const std::string place = "line " + std::to_string(number);
    const Json json = parse_json(line, printable(path) + ": " + place);
    const bool fits = json.is_object() && json.size() == 2 && json.contains("key") && json.contains("point") && json["key"].is_string() &&
                      json["point"].is_object() && line.starts_with(kBefore) && line.find(kBetween) == kBefore.size() + kDigits;
    const std::string digits = fits ? json["key"].get<std::string>() : "";
    if (digits.size() != kDigits || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
      throw InputError(printable(path), place, "is not a point of a sweep");
    const std::size_t head = kBefore.size() + kDigits + kBetween.size();
    places_[std::stoull(digits, nullptr, 16)] = {end_ + static_cast<long>(head), line.size() - head - kAfter.size()};
    end_ += static_cast<long>(line.size()) + 1;
  }
}

void SweepStore::write(const std::string& line) {
  if (std::fseek(file_.get(), end_, SEEK_SET) != 0 || std::fwrite(line.data(), 1, line.size(), file_.get()) != line.size() || std::fflush(file_.get()) != 0)
    fail("can't keep a point of the sweep");
  end_ += static_cast<long>(line.size());
}

void SweepStore::add(std::uint64_t key, const std::string& point) {
  const std::string line = fmt::format("{}{:016x}{}{}{}\n", kBefore, key, kBetween, point, kAfter);
  const std::scoped_lock lock(mutex_);
  const long begin = end_;
  write(line);
  places_[key] = {begin + static_cast<long>(kBefore.size() + kDigits + kBetween.size()), point.size()};
}

std::string SweepStore::get(std::uint64_t key) const {
  const std::scoped_lock lock(mutex_);
  const Place& place = places_.at(key);
  std::string text(place.length, ' ');
  if (std::fseek(file_.get(), place.offset, SEEK_SET) != 0 || std::fread(text.data(), 1, text.size(), file_.get()) != text.size())
    fail("can't read a point of the sweep back");
  return text;
}

}  // namespace stepcast::cli
