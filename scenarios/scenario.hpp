// A scenario: model, cluster, policy, batch and all else that a forecast depends on. Every default is the initialiser of a member here or in program/spec.hpp.
// For users: docs/scenario.md. Sections as files: sections.hpp. Test: tests/unit/scenario_test.cpp; fuzzed by tests/fuzz/scenario.cpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hw_models/profiles.hpp"
#include "hw_models/units.hpp"
#include "program/spec.hpp"

namespace stepcast::scenarios {

/// Absent optionals: as the node profile says.
struct Cluster {
  std::string node;  // name of a node profile; empty only with fixed costs
  std::string gpu;   // name of a GPU profile; where the file has none, what the node profile carries
  std::int32_t gpus_per_node = 8;
  std::int32_t nodes = 1;
  std::optional<hw::NvLink> nvlink;           // which GPUs of a node NVLink joins
  std::optional<BytesPerSecond> nvlink_rate;  // per GPU and direction
  std::optional<bool> peer_access;            // between GPUs over PCIe
  std::optional<hw::Fabric> fabric;           // transport between nodes
  std::optional<bool> gpudirect;              // adapters read and write GPU memory
  std::optional<std::int32_t> nics_per_node;
  std::optional<BytesPerSecond> nic_rate;  // per NIC and direction
  std::optional<double> oversubscription;  // ratio of the NICs' rate to what the fabric carries, at least 1
  bool operator==(const Cluster&) const = default;
};

/// PyTorch's caching allocator (PYTORCH_CUDA_ALLOC_CONF and set_per_process_memory_fraction).
struct Allocator {
  std::optional<std::int64_t> max_split_size;  // bytes; absent: no limit
  bool expandable_segments = false;
  std::int64_t roundup_power2_divisions = 0;        // 0: off
  double garbage_collection_threshold = 0;          // ratio of the memory limit; 0: off
  std::optional<double> memory_fraction;            // of the device
  std::optional<std::int64_t> device_memory;        // bytes; absent: as the GPU profile says
  std::optional<std::int64_t> memory_outside_pool;  // bytes of context, NCCL and workspaces; absent: as the GPU profile says
  bool operator==(const Allocator&) const = default;
};

/// torch.utils.data.DataLoader, and the copy of its batches to the device.
struct Loader {
  std::int32_t workers = 8;          // 0: the training process prepares each batch itself
  std::int32_t prefetch_factor = 2;  // batches in flight per worker
  program::Input input;
  Seconds batch_time;            // that one worker takes to prepare one micro-batch, on average
  double batch_time_spread = 0;  // standard deviation of its logarithm
  bool operator==(const Loader&) const = default;
};

struct Host {
  double scale = 1;                              // ratio by which every host cost is multiplied
  std::int32_t launch_queue_depth = 1024;        // launches in flight before the driver blocks
  std::int32_t cuda_device_max_connections = 8;  // hardware queues
  bool sync_each_step = false;                   // loss.item() at the end of each step
  bool sync_each_phase = false;                  // timers around the forward and backward of each micro-batch
  Seconds gc_period, gc_pause;                   // Python's garbage collector: from one collection to the next, and how long one takes; zero: none
  bool gc_synchronised = false;                  // all ranks collect at the same times
  bool operator==(const Host&) const = default;
};

enum class Ranks : std::uint8_t { folded, explicit_ranks };
enum class FlopsConvention : std::uint8_t { full_attention, causal_attention, parameters_only };

/// Random differences between ranks and steps. Standard deviations of the logarithm of each time; mean distance and length of pauses of the host.
struct Jitter {
  double kernel = 0, host = 0, collective = 0;
  double rank_speed = 0;  // of the speed of each rank's kernels, constant over the run
  Seconds pause_period, pause;
  bool operator==(const Jitter&) const = default;
};

/// Ratios by which the times of one rank are longer than those of the others.
struct SlowRank {
  std::int32_t rank = -1;
  double compute_scale = 1, host_scale = 1, nic_scale = 1;
  bool operator==(const SlowRank&) const = default;
};

/// `steps` training steps, of which the last `active` are traced (as torch.profiler.schedule: wait, warm-up, active).
struct Run {
  std::int32_t steps = 5, wait = 1, warmup = 1, active = 3;
  std::int64_t seed = 0;
  Ranks ranks = Ranks::folded;
  std::int32_t traced_ranks = 8;  // the first so many of explicit ranks, as far as there are so many and the trace stays small: see traced_ranks()
  FlopsConvention flops_convention = FlopsConvention::full_attention;
  Jitter jitter;
  std::vector<SlowRank> slow_ranks;
  bool operator==(const Run&) const = default;
};

/// Fixed-cost mode: the time of each phase and collective, in place of the hardware models.
struct FixedCosts {
  Seconds embedding_forward, block_forward, head_forward, head_backward, block_backward, embedding_backward, optimizer;
  Seconds all_gather_block, all_gather_root, reduce_scatter_block, reduce_scatter_root, all_reduce_block;
  Seconds host_per_kernel, host_per_collective;
  bool operator==(const FixedCosts&) const = default;
};

struct Scenario {
  std::string name, why;
  std::string model_name;  // label of the model: the preset's name, or /model/name
  program::ModelShape model;
  Cluster cluster;
  program::Policy policy;
  program::Batch batch;
  program::Precision precision;
  program::Recompute recompute;
  program::KernelChoice kernels;
  program::Optimizer optimizer;
  Allocator allocator;
  Loader loader;
  Host host;
  Run run;
  std::optional<FixedCosts> fixed_costs;
  bool operator==(const Scenario&) const = default;
};

/// `--set /json/pointer=value` texts, applied in order after the file.
using Sets = std::span<const std::string>;

/// Reads a scenario file, or a built-in scenario by name ("7b-32xa100"), with its chain of base files. Throws InputError on anything that is not understood,
/// out of range, contradictory or not supported yet.
Scenario read_scenario(const std::string& path_or_name, Sets sets = {});
/// The same for a text; `file` is its name in messages, and a "base" is sought beside it.
Scenario read_scenario_text(std::string_view text, const std::string& file, Sets sets = {});
/// Names of the built-in scenarios, sorted.
std::vector<std::string> scenario_names();

/// The whole scenario with every key written out; reading it gives an equal scenario.
nlohmann::ordered_json to_json(const Scenario& scenario);
std::string to_json_text(const Scenario& scenario);

/// What the program builder needs. With fixed costs the kernel set is KernelSet::fixed.
program::StepSpec step_spec(const Scenario& scenario);
/// The cluster's hardware with the scenario's overrides. Throws InputError; not for fixed-cost scenarios, which have no hardware.
hw::Cluster hardware(const Scenario& scenario);
/// The GPU's profile with the scenario's overrides. Throws InputError; not for fixed-cost scenarios.
hw::Profile gpu(const Scenario& scenario);
/// All ranks of the cluster.
inline std::int32_t ranks(const Scenario& scenario) { return scenario.cluster.nodes * scenario.cluster.gpus_per_node; }
/// How many of them, from the first on, are in the trace: of folded ranks the one; no more than can be traced (limits.hpp).
std::int32_t traced_ranks(const Scenario& scenario);
/// Something is drawn that differs from rank to rank.
bool is_random(const Scenario& scenario);
/// Steps differ from each other: a step time is a mean.
bool steps_vary(const Scenario& scenario);

}  // namespace stepcast::scenarios
