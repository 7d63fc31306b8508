// The hardware that stepcast knows: GPU and node profiles by name, compiled in from data/*.json, and clusters made of them.
// docs/models.md, "Hardware profiles". Test: tests/model/profiles_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/hardware.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

std::vector<std::string> gpu_names();
std::vector<std::string> node_names();

/// The profile of that name, or in the file of that name if it ends with ".json". Throws InputError, with the nearest name.
Profile gpu_profile(std::string_view name);
Profile node_profile(std::string_view name);
/// The same without a copy of a compiled-in one.
std::shared_ptr<const Profile> find_gpu_profile(std::string_view name);
std::shared_ptr<const Profile> find_node_profile(std::string_view name);
/// Whether a name means a file: it ends with ".json".
bool is_profile_file(std::string_view name);

/// Reads a profile's text (format of data/*.json); its "include" names may be compiled-in parts. Throws InputError.
Profile parse_gpu_profile(std::string_view text, const std::string& file);
Profile parse_node_profile(std::string_view text, const std::string& file);

/// Which GPUs of a node NVLink joins: all, bridges between two, none (PCIe).
enum class NvLink : std::uint8_t { nvswitch, pairs, none };
/// Transport between nodes; each has a part "fabric-NAME" of constants.
enum class Fabric : std::uint8_t { infiniband, roce, efa, omni_path, tcpx, tcp };

/// What a scenario may say against the node profile. Rates per direction; nvlink_rate per GPU, nic_rate per NIC.
struct ClusterOverrides {
  std::optional<std::string> gpu{};
  std::optional<std::int32_t> gpus_per_node{}, nics_per_node{};
  std::optional<BytesPerSecond> nic_rate{}, nvlink_rate{};
  std::optional<double> oversubscription{};
  std::optional<NvLink> nvlink{};
  std::optional<Fabric> fabric{};
  std::optional<bool> gpudirect{};
  std::optional<bool> peer_access{};
};

/// `nodes` nodes of a kind, with overrides in place of the profile's constants (source "scenario"). Throws InputError on an unknown name, a value out of
/// range, or several nodes without a network.
Cluster make_cluster(std::string_view node, std::int32_t nodes, const ClusterOverrides& overrides = {});

}  // namespace stepcast::hw
