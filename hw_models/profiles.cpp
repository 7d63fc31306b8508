// See profiles.hpp.
#include "hw_models/profiles.hpp"

#include <algorithm>
#include <mutex>

#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"
#include "hw_models/profile_json.hpp"
#include "hw_models/profile_rules.hpp"
#include "hw_models/text_file.hpp"

namespace stepcast::hw {

namespace {

constexpr std::string_view kSuffix = ".json";

std::string_view stem(std::string_view file) { return file.substr(0, file.size() - kSuffix.size()); }

std::string_view embedded_text(const std::string& name) {
  for (const EmbeddedFile& file : hardware_files()) {
    if (stem(file.name) == name) return file.text;
  }
  throw InputError("hardware", "", "no profile or part is called \"" + printable(name) + "\"");
}

ProfileFile parse(std::string_view text, const std::string& file) { return parse_profile(text, file, embedded_text); }

/// What a compiled-in file says: a constant, worked out when it is first asked for.
const ProfileFile& compiled_in(const EmbeddedFile& file) {
  struct Known {
    std::once_flag once;
    ProfileFile content;
  };
  static std::vector<Known> known(hardware_files().size());
  Known& one = known[static_cast<std::size_t>(&file - hardware_files().data())];
  std::call_once(one.once, [&] { one.content = parse(file.text, std::string(file.name)); });
  return one.content;
}

std::vector<std::string> names_of(Describes wanted) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : hardware_files()) {
    if (compiled_in(file).describes == wanted) names.emplace_back(stem(file.name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string listing(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

constexpr std::size_t kMaxProfileBytes = std::size_t{4} << 20;

Profile parse_as(std::string_view text, const std::string& file, Describes wanted, const std::string& what) {
  ProfileFile result = parse(text, file);
  if (result.describes != wanted) throw InputError(file, "/describes", "a " + what + " is needed here");
  return std::move(result.profile);
}

/// A compiled-in profile lives as long as the program: nobody owns it, and asking for it copies nothing.
std::shared_ptr<const Profile> find(std::string_view name, Describes wanted, const std::string& what) {
  if (is_profile_file(name))
    return std::make_shared<const Profile>(parse_as(read_text_file(std::string(name), kMaxProfileBytes), std::string(name), wanted, what + " profile"));
  for (const EmbeddedFile& file : hardware_files()) {
    if (stem(file.name) != name) continue;
    if (const ProfileFile& found = compiled_in(file); found.describes == wanted) return {std::shared_ptr<const Profile>(), &found.profile};
  }
  const std::vector<std::string> names = names_of(wanted);
  const std::string near = nearest(name, names);
  throw InputError("hardware", "", "unknown " + what + " \"" + printable(name) + "\"",
                   (near.empty() ? "" : "did you mean " + near + "? ") + ("known: " + listing(names)));
}

void replace(Profile& profile, std::string_view key, std::optional<double> value) {
  if (!value) return;
  const ConstantRule& rule = *find_rule(node_rules(), key);
  if (!(*value >= rule.min && *value <= rule.max)) throw InputError("scenario", "/cluster", std::string(key) + " is out of range");
  profile.constants.insert_or_assign(std::string(key), Constant{*value, "scenario", Origin::assumed});
}

/// Constants of a part in place of the node's own where they differ: the scenario's assumption.
void adopt(Profile& node, const std::string& part, const std::string& setting) {
  for (const auto& [key, constant] : parse(embedded_text(part), part + ".json").profile.constants) {
    const auto own = node.constants.find(key);
    if (own != node.constants.end() && own->second.value == constant.value) continue;
    node.constants.insert_or_assign(key, Constant{constant.value, "scenario (" + setting + "): " + constant.source, Origin::assumed});
  }
}

std::string_view part_of(Fabric fabric) {
  switch (fabric) {
    case Fabric::infiniband: return "fabric-infiniband";
    case Fabric::roce: return "fabric-roce";
    case Fabric::efa: return "fabric-efa";
    case Fabric::omni_path: return "fabric-omni-path";
    case Fabric::tcpx: return "fabric-tcpx";
    case Fabric::tcp: return "fabric-tcp";
  }
  return "";
}

/// NVLink that joins all GPUs of the profile's node joins all of the cluster's too.
void set_reach(Profile& node, double profile_gpus, std::optional<NvLink> nvlink) {
  const double gpus = node.at("gpus"), reach = node.at("nvlink_reach");
  const bool all = nvlink ? nvlink == NvLink::nvswitch : reach >= profile_gpus && reach > 1;
  const double wanted = all ? std::max(gpus, 2.0) : nvlink ? (nvlink == NvLink::pairs ? 2.0 : 1.0) : reach;
  if (wanted == reach) return;
  if (nvlink) replace(node, "nvlink_reach", wanted);
  else node.constants.at("nvlink_reach").value = wanted;
}

void check_links(const Cluster& cluster, const ClusterOverrides& overrides) {
  const Profile& node = cluster.node;
  const bool nvlink = node.at("nvlink_reach") > 1;
  if (nvlink && !node.constants.contains("nvlink_rate"))
    throw InputError("scenario", "/cluster/nvlink", "the node \"" + node.name + "\" has no NVLink", "give /cluster/nvlink_rate too");
  if (!nvlink && overrides.nvlink_rate) throw InputError("scenario", "/cluster/nvlink_rate", "has no effect without NVLink", "see /cluster/nvlink");
  if (nvlink && node.at("nvlink_reach") >= cluster.gpus_per_node && overrides.peer_access)
    throw InputError("scenario", "/cluster/peer_access", "has no effect where NVLink joins all GPUs of a node", "see /cluster/nvlink");
  if (overrides.gpudirect && (overrides.fabric == Fabric::tcp || overrides.fabric == Fabric::tcpx))
    throw InputError("scenario", "/cluster/gpudirect", "has no effect on sockets", "leave it out, or choose another /cluster/fabric");
}

std::optional<double> si(const std::optional<BytesPerSecond>& rate) { return rate ? std::optional(rate->si()) : std::nullopt; }

}  // namespace

bool is_profile_file(std::string_view name) { return name.ends_with(kSuffix); }

std::vector<std::string> gpu_names() { return names_of(Describes::gpu); }
std::vector<std::string> node_names() { return names_of(Describes::node); }

std::shared_ptr<const Profile> find_gpu_profile(std::string_view name) { return find(name, Describes::gpu, "GPU"); }
std::shared_ptr<const Profile> find_node_profile(std::string_view name) { return find(name, Describes::node, "cluster node"); }
Profile gpu_profile(std::string_view name) { return *find_gpu_profile(name); }
Profile node_profile(std::string_view name) { return *find_node_profile(name); }

Profile parse_gpu_profile(std::string_view text, const std::string& file) { return parse_as(text, file, Describes::gpu, "GPU profile"); }
Profile parse_node_profile(std::string_view text, const std::string& file) { return parse_as(text, file, Describes::node, "node profile"); }

Cluster make_cluster(std::string_view node, std::int32_t nodes, const ClusterOverrides& overrides) {
  Cluster cluster;
  cluster.node = node_profile(node);
  cluster.gpu = overrides.gpu.value_or(cluster.node.default_gpu);
  cluster.nodes = nodes;
  const double profile_gpus = cluster.node.at("gpus");
  if (overrides.fabric) adopt(cluster.node, std::string(part_of(*overrides.fabric)), "fabric");
  if (overrides.gpudirect == false) adopt(cluster.node, "gpudirect-off", "no GPUDirect");
  replace(cluster.node, "gpus", overrides.gpus_per_node);
  replace(cluster.node, "nics", overrides.nics_per_node);
  replace(cluster.node, "nic_rate", si(overrides.nic_rate));
  replace(cluster.node, "nvlink_rate", si(overrides.nvlink_rate));
  replace(cluster.node, "oversubscription", overrides.oversubscription);
  if (overrides.peer_access) replace(cluster.node, "peer_access", *overrides.peer_access ? 1.0 : 0.0);
  cluster.gpus_per_node = static_cast<std::int32_t>(cluster.node.at("gpus"));
  set_reach(cluster.node, profile_gpus, overrides.nvlink);
  check_links(cluster, overrides);
  if (nodes < 1) throw InputError("scenario", "/cluster/nodes", "at least one node is needed");
  if (nodes > 1 && cluster.node.at("nics") < 1) throw InputError("scenario", "/cluster", "several nodes need at least one NIC per node");
  return cluster;
}

}  // namespace stepcast::hw
