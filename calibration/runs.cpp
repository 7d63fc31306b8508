// See runs.hpp.
#include "calibration/runs.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <stdexcept>

#include "calibration/csv.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::calibration {
namespace {

enum class ColumnKind : std::uint8_t { text, count, number };

struct Column {
  const char* name;
  ColumnKind kind;
};

constexpr Column kColumns[] = {
    {"id", ColumnKind::text},
    {"source", ColumnKind::text},
    {"model", ColumnKind::text},
    {"params_b", ColumnKind::number},
    {"d_model", ColumnKind::count},
    {"n_layers", ColumnKind::count},
    {"n_heads", ColumnKind::count},
    {"n_kv_heads", ColumnKind::count},
    {"head_dim", ColumnKind::count},
    {"ffn_dim", ColumnKind::count},
    {"ffn_kind", ColumnKind::text},
    {"vocab", ColumnKind::count},
    {"seq_len", ColumnKind::count},
    {"gpu", ColumnKind::text},
    {"n_gpus", ColumnKind::count},
    {"gpus_per_node", ColumnKind::count},
    {"interconnect", ColumnKind::text},
    {"framework", ColumnKind::text},
    {"sharding", ColumnKind::text},
    {"tp", ColumnKind::count},
    {"pp", ColumnKind::count},
    {"micro_batch", ColumnKind::count},
    {"grad_accum", ColumnKind::count},
    {"global_batch_seqs", ColumnKind::count},
    {"precision", ColumnKind::text},
    {"grad_reduce_dtype", ColumnKind::text},
    {"act_ckpt", ColumnKind::text},
    {"offload", ColumnKind::text},
    {"attention", ColumnKind::text},
    {"compile", ColumnKind::text},
    {"limit_all_gathers", ColumnKind::text},
    {"backward_prefetch", ColumnKind::text},
    {"forward_prefetch", ColumnKind::text},
    {"mfu", ColumnKind::number},
    {"hfu", ColumnKind::number},
    {"tokens_per_s_per_gpu", ColumnKind::number},
    {"step_time_s", ColumnKind::number},
    {"tflops_per_gpu", ColumnKind::number},
    {"peak_mem_gib", ColumnKind::number},
    {"peak_mem_gb", ColumnKind::number},
    {"mem_kind", ColumnKind::text},
    {"note", ColumnKind::text},
    {"inferred", ColumnKind::text},
    {"tok_s_from", ColumnKind::text},
    {"tier", ColumnKind::text},
};

// Further columns of published tables, which follow from the others and are not read.
constexpr std::string_view kDerived[] = {"derived_step_time_s", "mfu_recomputed", "mfu_rel_diff_pct", "mfu_uniform"};
constexpr std::string_view kRequired[] = {"id", "source", "model", "gpu", "n_gpus", "sharding", "micro_batch", "precision", "act_ckpt"};
constexpr std::string_view kMeasured[] = {"tokens_per_s_per_gpu", "step_time_s", "mfu", "peak_mem_gib", "peak_mem_gb"};

const Column* column_of(std::string_view name) {
  const auto* found = std::find_if(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return c.name == name; });
  return found == std::end(kColumns) ? nullptr : found;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

double parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || !std::isfinite(value) || value <= 0 || value > 1e15) throw std::invalid_argument("is not a number above zero");
  return value;
}

/// Three of them (sequences, micro-batches, GPUs) multiply without overflow.
constexpr double kMostCount = 2'000'000;

double parse_count(std::string_view text) {
  const double value = parse_number(text);
  if (value != std::floor(value)) throw std::invalid_argument("is not a whole number");
  if (value > kMostCount) throw std::invalid_argument("is more than 2 million");
  return value;
}

/// "key=value (why); key=value; prose": values of known columns for the cells that are blank.
void add_inferred(Run& run) {
  const std::string all = run.text("inferred");
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(';', at), all.size());
    const std::string_view part = trimmed(std::string_view(all).substr(at, end - at));
    at = end + 1;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || !is_column(part.substr(0, equals))) continue;
    const std::string column(part.substr(0, equals));
    const std::string_view value = trimmed(part.substr(equals + 1, part.find(" (") == std::string_view::npos ? part.npos : part.find(" (") - equals - 1));
    if (run.cells.contains(column) || value.empty()) continue;
    try {
      run.cells.emplace(column, make_cell(column, value, Given::inferred));
    } catch (const std::invalid_argument&) { run.notes.push_back("inferred " + std::string(part.substr(0, 100)) + ": not a value, not used"); }
  }
}

void check_header(const CsvTable& table, const std::string& file) {
  const auto has = [&](std::string_view name) { return std::find(table.columns.begin(), table.columns.end(), name) != table.columns.end(); };
  for (const std::string_view name : kRequired) {
    if (has(name)) continue;
    const std::string near = nearest(std::string(name), table.columns);
    throw InputError(file, "line 1", "the column \"" + std::string(name) + "\" is missing", near.empty() ? "" : "is \"" + printable(near) + "\" meant?");
  }
  if (std::none_of(std::begin(kMeasured), std::end(kMeasured), has))
    throw InputError(file, "line 1", "no column holds a measurement", "tokens_per_s_per_gpu, step_time_s, mfu, peak_mem_gib or peak_mem_gb");
}

Run read_run(const CsvTable& table, const CsvRow& row, const std::string& file) {
  Run run;
  run.line = row.line;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string_view text = trimmed(row.cells[c]);
    if (text.empty() || !is_column(table.columns[c])) continue;
    try {
      run.cells.emplace(table.columns[c], make_cell(table.columns[c], text, Given::stated));
    } catch (const std::invalid_argument& error) {
      throw InputError(file, "line " + std::to_string(row.line) + ", column " + table.columns[c], "\"" + printable(text, 60) + "\" " + error.what(),
                       "leave it blank if it is not known");
    }
  }
  run.id = run.text("id");
  if (run.id.empty()) throw InputError(file, "line " + std::to_string(row.line) + ", column id", "is blank", "every row needs a name of its own");
  add_inferred(run);
  return run;
}

}  // namespace

const Cell* Run::find(std::string_view column) const {
  const auto found = cells.find(column);
  return found == cells.end() ? nullptr : &found->second;
}

std::string Run::text(std::string_view column) const {
  const Cell* cell = find(column);
  return cell ? cell->text : "";
}

std::optional<double> Run::number(std::string_view column) const {
  const Cell* cell = find(column);
  return cell ? std::optional(cell->number) : std::nullopt;
}

std::optional<std::int64_t> Run::count(std::string_view column) const {
  const Cell* cell = find(column);
  return cell ? std::optional(static_cast<std::int64_t>(cell->number)) : std::nullopt;
}

bool is_column(std::string_view name) { return column_of(name) != nullptr; }

Cell make_cell(std::string_view column, std::string_view text, Given given) {
  const Column* known = column_of(column);
  if (!known) throw std::invalid_argument("is in no known column");
  Cell cell{std::string(text), 0, given};
  if (known->kind == ColumnKind::count) cell.number = parse_count(text);
  if (known->kind == ColumnKind::number) cell.number = parse_number(text);
  return cell;
}

RunTable read_runs(std::string_view text, const std::string& file) {
  const CsvTable table = parse_csv(text, file);
  check_header(table, file);
  RunTable runs;
  for (const std::string& column : table.columns) {
    if (!is_column(column) && std::find(std::begin(kDerived), std::end(kDerived), column) == std::end(kDerived)) runs.ignored.push_back(column);
  }
  std::map<std::string, std::size_t> lines;
  for (const CsvRow& row : table.rows) {
    runs.runs.push_back(read_run(table, row, file));
    const auto [first, fresh] = lines.emplace(runs.runs.back().id, row.line);
    if (!fresh) {
      throw InputError(file, "line " + std::to_string(row.line) + ", column id",
                       "\"" + printable(first->first, 60) + "\" stands in line " + std::to_string(first->second) + " already");
    }
  }
  return runs;
}

RunTable read_runs_file(const std::string& path) { return read_runs(read_text_file(path, kMaxTableBytes), path); }

}  // namespace stepcast::calibration
