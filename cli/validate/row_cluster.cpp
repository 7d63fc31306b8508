// Columns of the cluster: GPUs, nodes and the network in words. See row_scenario.hpp.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "cli/validate/row_scenario.hpp"
#include "hw_models/profiles.hpp"

namespace stepcast::cli {
namespace {

using calibration::Run;

constexpr std::int64_t kGpusPerNode = 8;

/// The number that ends at `end` (blanks skipped), or nothing. "1600" of "... 1600 Gb".
std::optional<std::pair<double, std::size_t>> number_before(std::string_view text, std::size_t end) {
  while (end > 0 && text[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) || text[begin - 1] == '.')) --begin;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (begin == end || error != std::errc() || stop != text.data() + end || !(value > 0 && value < 1e6)) return std::nullopt;
  return std::pair(value, begin);
}

/// The count of "4 x 100 Gb/s", given where 100 begins.
std::int64_t count_before(std::string_view text, std::size_t begin) {
  while (begin > 0 && text[begin - 1] == ' ') --begin;
  if (begin == 0 || text[begin - 1] != 'x') return 0;
  const auto count = number_before(text, begin - 1);
  return count && count->first == std::floor(count->first) && count->first < 100 ? static_cast<std::int64_t>(count->first) : 0;
}

/// Puts the network of the row where it differs from the profile's.
void put_network(const NetworkWords& words, std::int64_t gpus_per_node, Weight weight, Settings& settings) {
  const hw::Profile profile = hw::node_profile(settings.find("/cluster/node")->get<std::string>());
  std::int64_t nics = words.per_gpu ? gpus_per_node : words.nics;
  const double total = nics > 0 ? words.gbit * static_cast<double>(nics) : words.gbit;
  const double known = profile.at("nics") * profile.at("nic_rate") * 8e-9;
  if (std::abs(total - known) <= 0.01 * known) return;
  if (nics == 0) nics = std::clamp<std::int64_t>(std::llround(total / 100), 1, gpus_per_node);
  settings.put("/cluster/nics_per_node", nics, weight);
  settings.put("/cluster/nic_rate", std::to_string(std::llround(1000 * total / static_cast<double>(nics))) + " Mb/s", weight);
}

}  // namespace

std::optional<NetworkWords> network_words(std::string_view text) {
  for (std::size_t at = text.find('b'); at != std::string_view::npos; at = text.find('b', at + 1)) {
    if (at == 0 || (text[at - 1] != 'G' && text[at - 1] != 'T')) continue;
    const auto rate = number_before(text, at - 1);
    if (!rate) continue;
    return NetworkWords{count_before(text, rate->second), rate->first * (text[at - 1] == 'T' ? 1000 : 1), contains(text, "per GPU")};
  }
  return std::nullopt;
}

void put_cluster(const Run& run, Settings& settings, Notes& notes) {
  const auto gpus = run.count("n_gpus");
  if (!gpus) throw NotExpressible("the number of GPUs is not known");
  if (!settings.find("/cluster/gpu")) throw NotExpressible("no profile for the GPU \"" + run.text("gpu") + "\"");
  const std::int64_t per_node = std::min(*gpus, run.count("gpus_per_node").value_or(kGpusPerNode));
  if (*gpus % per_node != 0) throw NotExpressible(std::to_string(*gpus) + " GPUs do not fill nodes of " + std::to_string(per_node));
  settings.put("/cluster/gpus_per_node", per_node, Weight::stated);
  settings.put("/cluster/nodes", *gpus / per_node, Weight::stated);
  if (*gpus == per_node) return;
  const calibration::Cell* network = run.find("interconnect");
  const auto words = network ? network_words(network->text) : std::nullopt;
  if (words) put_network(*words, per_node, weight_of(*network), settings);
  else notes.push_back("network of the node profile " + settings.find("/cluster/node")->get<std::string>());
}

}  // namespace stepcast::cli
