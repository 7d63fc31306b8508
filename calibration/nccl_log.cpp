// The lines of a log. What a row means (which collective, which ranks) is nccl_meaning.cpp. Columns: nccl-tests src/common.cu and util.cu of 2.0 to 2.17.
#include "calibration/nccl_log.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::size_t kMaxPrefix = 4;  // words before the table's first column: "[1,0]<stdout>:", "0:", a time stamp
constexpr std::size_t kMaxFailures = 4;
constexpr std::array<std::string_view, 20> kTypes{"int8",  "uint8",  "char", "int32",    "uint32", "int",    "int64",    "uint64",   "half",    "float16",
                                                  "float", "double", "bf16", "bfloat16", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2", "fp8e4m3", "fp8e5m2"};
constexpr std::array<std::string_view, 8> kReductions{"sum", "prod", "min", "max", "avg", "mulsum", "none", "all"};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

Words words_of(std::string_view line) {
  Words words;
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && is_space(line[at])) ++at;
    const std::size_t begin = at;
    while (at < line.size() && !is_space(line[at])) ++at;
    if (at > begin) words.push_back(line.substr(begin, at - begin));
  }
  return words;
}

/// mpirun --tag-output writes no blank between its tag and the line.
std::string_view without_tag(std::string_view line) {
  for (const std::string_view tag : {"<stdout>:", "<stderr>:", "<stddiag>:"}) {
    const std::size_t at = line.find(tag);
    if (at < 24) return line.substr(at + tag.size());
  }
  return line;
}

template <class T>
std::optional<T> number(std::string_view word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> whole(std::string_view word) { return number<std::int64_t>(word); }

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

/// Index of the first column: two whole numbers and a type, after a few words of prefix.
std::optional<std::size_t> row_begin(const Words& words) {
  for (std::size_t i = 0; i <= kMaxPrefix && i + 2 < words.size(); ++i) {
    const auto bytes = whole(words[i]);
    const auto count = whole(words[i + 1]);
    if (bytes && count && *bytes >= 0 && *count >= 0 && among(kTypes, words[i + 2])) return i;
  }
  return std::nullopt;
}

bool not_measured(std::string_view word) { return word == "N/A" || word == "n/a"; }

/// Four columns: time, algbw, busbw, error or #wrong. False: they aren't such.
bool read_timing(const Words& words, std::size_t at, bool counts_wrong, std::optional<NcclTiming>& timing, bool& wrong) {
  if (not_measured(words[at])) return true;
  const auto time = number<double>(words[at]), algbw = number<double>(words[at + 1]), busbw = number<double>(words[at + 2]);
  const auto check = number<double>(words[at + 3]);
  if (!time || !algbw || !busbw || (!check && !not_measured(words[at + 3])) || *time < 0 || *algbw < 0 || *busbw < 0) return false;
  timing = NcclTiming{*time, *algbw, *busbw};
  wrong = wrong || (counts_wrong && check.value_or(0) > 0);
  return true;
}

std::optional<NcclRow> read_row(const Words& words, std::size_t begin, bool counts_wrong) {
  NcclRow row;
  row.bytes = *whole(words[begin]);
  row.count = *whole(words[begin + 1]);
  row.type = words[begin + 2];
  std::size_t at = begin + 3;
  if (at < words.size() && among(kReductions, words[at])) row.redop = words[at++];
  if (row.redop == "none") row.redop.clear();
  const std::size_t left = words.size() - at;
  if (left == 9 || left == 5) {  // with a root
    row.root = whole(words[at++]);
    if (!row.root) return std::nullopt;
  } else if (left != 8 && left != 4) {
    return std::nullopt;
  }
  if (!read_timing(words, at, counts_wrong, row.out_of_place, row.wrong)) return std::nullopt;
  if (at + 8 == words.size() && !read_timing(words, at + 4, counts_wrong, row.in_place, row.wrong)) return std::nullopt;
  return row;
}

/// Place of a word from `from` on; the number of words if it isn't there.
std::size_t index_of(const Words& words, std::string_view word, std::size_t from) {
  while (from < words.size() && words[from] != word) ++from;
  return from;
}

/// "# Rank 0 Group 0 Pid 25 on node0 device 0 [0x10] NVIDIA A100-SXM4-40GB"
bool read_rank(const Words& words, NcclRun& run) {
  const std::size_t rank = index_of(words, "Rank", 0), on = index_of(words, "on", rank), device = index_of(words, "device", on);
  if (device == words.size() || rank + 1 >= on || on + 2 != device) return false;
  const auto number_of_rank = whole(words[rank + 1]);
  if (!number_of_rank || *number_of_rank < 0) return false;
  run.ranks.insert(*number_of_rank);
  run.hosts.emplace(words[on + 1]);
  std::size_t bus = device;
  while (bus < words.size() && !words[bus].ends_with(']')) ++bus;
  if (!run.gpu.empty()) return true;
  for (std::size_t word = bus + 1; word < words.size(); ++word) run.gpu += (run.gpu.empty() ? "" : " ") + printable(words[word], 40);
  return true;
}

/// "node1:13226:13226 [0] NCCL INFO comm 0x7fcb rank 0 nranks 8 ...": NCCL_DEBUG=INFO names each rank's host.
void read_communicator(const Words& words, NcclRun& run) {
  const std::size_t rank = index_of(words, "rank", index_of(words, "comm", 0));
  if (rank + 4 > words.size() || words[rank + 2] != "nranks") return;
  const auto number_of_rank = whole(words[rank + 1]), nranks = whole(words[rank + 3]);
  if (!number_of_rank || !nranks || *number_of_rank < 0 || *number_of_rank >= *nranks) return;
  run.nranks = std::max(run.nranks.value_or(0), *nranks);
  run.ranks.insert(*number_of_rank);
  run.hosts.emplace(words.front().substr(0, words.front().find(':')));
}

/// "all_reduce" in "# Collective test starting: all_reduce_perf" or in a command that the log repeats.
void read_collective(const Words& words, NcclRun& run) {
  constexpr std::string_view kSuffix = "_perf";
  for (std::string_view word : words) {
    if (const std::size_t slash = word.find_last_of('/'); slash != std::string_view::npos) word.remove_prefix(slash + 1);
    if (word.size() <= kSuffix.size() || !word.ends_with(kSuffix) || !run.collective.empty()) continue;
    word.remove_suffix(kSuffix.size());
    run.collective = printable(word, 40);
  }
}

bool is_failure(std::string_view line) {
  return line.find("Test NCCL failure") != std::string_view::npos || line.find("Test CUDA failure") != std::string_view::npos ||
         line.find("Test failure") != std::string_view::npos;
}

void read_other_line(std::string_view line, const Words& words, NcclRun& run) {
  ++run.lines_without_data;
  read_collective(words, run);
  if (!read_rank(words, run)) read_communicator(words, run);
  if (is_failure(line) && run.failures.size() < kMaxFailures) run.failures.push_back(printable(line));
}

}  // namespace

bool looks_like_nccl_log(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const Words words = words_of(without_tag(text.substr(at, end - at)));
    if (const auto begin = row_begin(words); begin && read_row(words, *begin, false)) return true;
    at = end + 1;
  }
  return false;
}

NcclRun parse_nccl_log(std::string_view text) {
  NcclRun run;
  bool counts_wrong = false;  // the column "#wrong" counts elements; the older "error" is a largest difference
  std::size_t number_of_line = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = without_tag(text.substr(at, end - at));
    at = end + 1;
    ++number_of_line;
    const Words words = words_of(line);
    if (std::find(words.begin(), words.end(), "#wrong") != words.end()) counts_wrong = true;
    const auto begin = row_begin(words);
    if (!begin) {
      read_other_line(line, words, run);
    } else if (auto row = read_row(words, *begin, counts_wrong)) {
      row->line = number_of_line;
      run.rows.push_back(std::move(*row));
    } else if (run.damaged++ == 0) {
      run.first_damaged = number_of_line;
    }
  }
  return run;
}

}  // namespace stepcast::calibration
