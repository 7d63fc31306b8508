// Inside of history.cpp: the readers of the kinds of file. Tests as of history.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "memory/history.hpp"

namespace stepcast::memory {

/// {"fields", "traces": [{"id", "device_bytes", "streams", "settings", "ops", "oom", "after"}]}, strictly. Throws InputError.
std::vector<History> read_traces(const nlohmann::json& document, const std::string& file);

/// The dictionary of torch.cuda.memory._snapshot(). Its keys are PyTorch's, so that unknown ones are left alone; unknown actions are counted as a warning.
/// Throws InputError for entries that have another type or contradict each other.
std::vector<History> read_snapshot(const nlohmann::json& document, const std::string& file, bool limit_given);

/// What read_snapshot needs of a pickled snapshot: dictionaries, lists, tuples, texts, numbers, true, false and None, without the stack frames. Every opcode that
/// would look up or call Python code is refused. Throws InputError naming the byte.
nlohmann::json read_snapshot_pickle(std::string_view bytes, const std::string& file);

}  // namespace stepcast::memory
