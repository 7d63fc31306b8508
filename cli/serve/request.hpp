// What the page asks for: settings in the order in which they were chosen. Strict, as every input: docs/serve.md, "Requests". Test: tests/unit/serve_test.cpp; fuzzed by
// tests/fuzz/serve_request.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::cli {

inline constexpr std::size_t kMaxRequestBytes = std::size_t{64} << 10;

struct Setting {
  std::string pointer;
  nlohmann::json value;
};

struct ForecastRequest {
  std::vector<Setting> settings;  // the newest last; only of controls
  bool remedies = false;          // if memory runs out: what would fit, which takes longer
};

/// {"settings": [{"pointer": "/batch/micro_batch", "value": 4}], "remedies": true}. Throws InputError.
ForecastRequest read_request(std::string_view body);

/// "/batch/micro_batch=4", as --set takes it.
std::string set_text(const std::string& pointer, const nlohmann::json& value);

}  // namespace stepcast::cli
