// What is known of a scenario while configuration files are read: a document as a user would write it, and counts that only a cluster or a batch completes. Private to this folder.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scenarios/import/settings.hpp"

namespace stepcast::scenarios {

struct Draft {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  std::optional<std::int64_t> global_batch;         // sequences of all ranks per optimizer step
  std::optional<std::int64_t> machines, processes;  // of the launch
  bool own_model = false;                           // the files say which model

  template <class T>
  void set(const char* pointer, const T& value) {
    document[nlohmann::ordered_json::json_pointer(pointer)] = value;
  }
  template <class T>
  void maybe(const char* pointer, const std::optional<T>& value) {
    if (value) set(pointer, *value);
  }
};

void import_accelerate(Settings& settings, Draft& draft);
void import_torchtitan(Settings& settings, Draft& draft);
void import_deepspeed(Settings& settings, Draft& draft);
void import_llm_foundry(Settings& settings, Draft& draft);
void import_torchtune(Settings& settings, Draft& draft);
void import_lingua(Settings& settings, Draft& draft);
void import_kempner_forge(Settings& settings, Draft& draft);
void import_fms_fsdp(Settings& settings, Draft& draft);
void import_llama_cookbook(Settings& settings, Draft& draft);
void import_aws_fsdp(Settings& settings, Draft& draft);

/// A model of the draft by a name that frameworks use and the built-in model that it means; refused, with a hint, where there is none.
void set_model(Settings& settings, const char* key, const std::string& name, Draft& draft);

/// A model of the draft from the sizes below `model`, in Meta's terms; without all that are needed --model is.
void set_llama_sizes(Settings& settings, Draft& draft);

inline constexpr std::int64_t kMaxLoaderWorkers = 1024, kMaxLoaderPrefetch = 1024;  // as sections.hpp has them

}  // namespace stepcast::scenarios
