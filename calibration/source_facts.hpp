// What is known about the sources of measurements beyond the columns of their tables: software, defaults, conventions. One data file, calibration/data/sources.json; each fact
// carries the sentence that it rests on and its kind, and holds for a whole source (or for every row of a kind), never for one row. Test: tests/unit/source_facts_test.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/runs.hpp"
#include "hw_models/units.hpp"

namespace stepcast::calibration {

/// Columns and what their cells must contain: one of the texts, somewhere; of the id, at its beginning. True of a run if all columns agree.
struct Condition {
  std::vector<std::pair<std::string, std::vector<std::string>>> columns;
  [[nodiscard]] bool holds(const Run& run) const;
};

enum class FactKind : std::uint8_t { stated, inferred, assumed };
const char* name(FactKind kind);

/// Settings by JSON pointer of a scenario, and cells (by column) for where the table has none.
struct Fact {
  Condition when;
  std::vector<std::pair<std::string, nlohmann::json>> settings;
  std::vector<std::pair<std::string, Cell>> cells;
  std::string source;
  FactKind kind = FactKind::assumed;
};

/// What a source divides by to get its MFU. Without one: 6 P + 12 L d T of the weights in matrix products, and the peak of the GPU's profile.
struct MfuConvention {
  enum class Parameters : std::uint8_t { stated, matmul, blocks, without_embedding, nominal };
  Parameters parameters = Parameters::matmul;
  double nominal = 0;          // parameters, of `nominal`
  double attention_share = 1;  // of all pairs of tokens that is counted
  FlopsPerSecond peak{};       // that it divides by; 0: the GPU profile's
};

/// Which of the forecast's peaks a source's memory column is.
enum class MemoryQuantity : std::uint8_t { allocated, active, reserved, device };

/// A source, with the facts that hold for all tables first.
struct SourceFacts {
  std::string name;
  bool known = false;  // false: no entry matches, `name` is the row's own source
  std::vector<const Fact*> facts;
  std::optional<MfuConvention> mfu;
  std::optional<MemoryQuantity> memory;
};

class Sources {
 public:
  /// The compiled-in file.
  Sources();
  /// Throws InputError on anything that is not understood.
  Sources(std::string_view text, const std::string& file);
  /// Facts that hold for the run, in order; later ones override. The pointers live as long as this object.
  [[nodiscard]] SourceFacts of(const Run& run) const;
  [[nodiscard]] std::vector<std::string> names() const;
  /// All facts, for a test that every setting exists.
  [[nodiscard]] std::vector<const Fact*> all() const;

 private:
  struct Source {
    std::string name;
    Condition when;
    std::vector<Fact> facts;
    std::optional<MfuConvention> mfu;
    std::optional<MemoryQuantity> memory;
  };
  void read(std::string_view text, const std::string& file);
  static Source read_source(const nlohmann::json& json, const std::string& file, const std::string& pointer);

  std::vector<Fact> common_;
  std::vector<Source> sources_;
};

/// The run with the facts' cells where its own are blank.
Run completed(Run run, const SourceFacts& facts);

}  // namespace stepcast::calibration
