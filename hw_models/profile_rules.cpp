// See profile_rules.hpp. Limits are wide: they catch slips of unit, not unusual machines.
#include "hw_models/profile_rules.hpp"

#include <algorithm>
#include <array>

namespace stepcast::hw {

namespace {

constexpr ConstantRule flop_rate(std::string_view name, bool required = true) { return {name, Dimension::flop_rate, 1e9, 1e17, required}; }
constexpr ConstantRule byte_rate(std::string_view name, bool required = true) { return {name, Dimension::rate, 1e6, 1e15, required}; }
constexpr ConstantRule size(std::string_view name) { return {name, Dimension::size, 0, 1e14, true}; }
constexpr ConstantRule time(std::string_view name) { return {name, Dimension::time, 0, 100, true}; }
constexpr ConstantRule share(std::string_view name) { return {name, std::nullopt, 1e-3, 1, true}; }
constexpr ConstantRule optional_share(std::string_view name) { return {name, std::nullopt, 1e-3, 1, false}; }
constexpr ConstantRule number(std::string_view name, double min, double max, bool required = true) { return {name, std::nullopt, min, max, required}; }

constexpr auto kGpuRules = std::to_array<ConstantRule>({
    flop_rate("peak_bf16", false),
    flop_rate("peak_fp16", false),
    flop_rate("peak_tf32", false),
    flop_rate("peak_fp32"),
    flop_rate("peak_fp64"),
    flop_rate("peak_fp8", false),
    byte_rate("dram_bandwidth"),
    number("processors", 1, 4096),
    number("shared_processors", 1, 4096, false),
    size("device_memory"),
    size("memory_outside_pool"),
    share("gemm_efficiency"),
    share("sustained_clock"),
    optional_share("gemm_fp8_ratio"),
    number("gemm_half_depth", 0, 4096),
    number("gemm_wave_weight", 0, 3),
    time("gemm_fixed_time"),
    share("gemm_dram_efficiency"),
    number("gemm_misaligned_ratio", 1, 20),
    number("gemm_even_columns_ratio", 1, 20),
    number("gemm_even_depth_ratio", 1, 20),
    number("gemm_odd_ratio", 1, 20),
    share("batched_gemm_dram_efficiency"),
    share("attention_forward_share"),
    flop_rate("attention_flash1_rate_64", false),
    flop_rate("attention_flash1_rate_128", false),
    number("attention_flash1_half_length", 0, 1e6, false),
    number("attention_flash1_causal_stretch", 0.1, 100, false),
    flop_rate("attention_flash2_rate_64", false),
    flop_rate("attention_flash2_rate_128", false),
    number("attention_flash2_half_length", 0, 1e6, false),
    number("attention_flash2_causal_stretch", 0.1, 100, false),
    flop_rate("attention_flash3_rate_64", false),
    flop_rate("attention_flash3_rate_128", false),
    number("attention_flash3_half_length", 0, 1e6, false),
    number("attention_flash3_causal_stretch", 0.1, 100, false),
    flop_rate("attention_triton_rate_64", false),
    flop_rate("attention_triton_rate_128", false),
    number("attention_triton_half_length", 0, 1e6, false),
    number("attention_triton_causal_stretch", 0.1, 100, false),
    flop_rate("attention_efficient_rate_64", false),
    flop_rate("attention_efficient_rate_128", false),
    number("attention_efficient_half_length", 0, 1e6, false),
    number("attention_efficient_causal_stretch", 0.1, 100, false),
    time("memory_fixed_time"),
    share("efficiency_elementwise"),
    share("efficiency_normalization"),
    share("efficiency_softmax"),
    share("efficiency_indexing"),
    share("efficiency_copy"),
    share("efficiency_optimizer"),
    number("nccl_slowdown_gemm", 0, 5),
    number("nccl_slowdown_attention", 0, 5),
    number("nccl_slowdown_memory", 0, 5),
    time("launch_latency"),
    time("device_malloc"),
    time("device_malloc_per_gib"),
    time("device_free"),
    time("allocator_flush"),
});

constexpr auto kNodeRules = std::to_array<ConstantRule>({
    number("gpus", 1, 1024),
    number("nics", 0, 1024),
    byte_rate("nic_rate"),
    byte_rate("nic_limit"),
    number("nvlink_reach", 1, 1024),
    byte_rate("nvlink_rate", false),
    byte_rate("pcie_rate"),
    number("gpus_per_host_bridge", 1, 1024),
    number("peer_access", 0, 1),
    share("pcie_ring_efficiency"),
    share("host_bounce_efficiency"),
    number("oversubscription", 1, 1000),
    share("all_gather_efficiency"),
    share("reduce_scatter_efficiency"),
    share("all_reduce_efficiency"),
    share("network_efficiency"),
    time("bulk_start"),
    time("bulk_nvlink_hop"),
    time("bulk_pcie_hop"),
    time("bulk_network_hop"),
    time("middle_start"),
    time("middle_nvlink_hop"),
    time("middle_pcie_hop"),
    time("middle_network_hop"),
    byte_rate("middle_ring_rate"),
    byte_rate("middle_tree_rate"),
    byte_rate("middle_network_rate"),
    byte_rate("tree_pair_rate"),
    byte_rate("tree_rate"),
    {"nvls_efficiency", std::nullopt, 1e-3, 1, false},
    {"nvls_latency", Dimension::time, 0, 100, false},
    time("arrival_skew"),
    time("small_start"),
    time("small_nvlink_hop"),
    time("small_pcie_hop"),
    time("small_network_hop"),
    byte_rate("small_rate"),
    byte_rate("small_network_rate"),
    time("host_op_forward"),
    time("host_op_backward"),
    time("host_op_compiled"),
    time("host_op_optimizer"),
    time("host_op_megatron_forward"),
    time("host_op_megatron_backward"),
    time("host_extra_launch"),
    time("host_collective_call"),
    time("host_fsdp_pre_forward"),
    time("host_fsdp_post_forward"),
    time("host_fsdp_pre_backward"),
    time("host_fsdp_post_backward"),
    time("host_fsdp_root_pre_forward"),
    time("host_fsdp_final_callback"),
    time("host_views_unsharded"),
    time("host_views_sharded"),
    time("host_event_record"),
    time("host_stream_wait"),
    time("host_allocation"),
    time("host_step_begin"),
    time("host_fsdp2_pre_forward"),
    time("host_fsdp2_post_forward"),
    time("host_fsdp2_pre_backward"),
    time("host_fsdp2_post_backward"),
    time("host_fsdp2_root_pre_forward"),
    time("host_fsdp2_final_callback"),
    time("host_dtensor_dispatch"),
    time("host_ddp_pre_forward"),
    time("host_ddp_final_callback"),
    time("host_ddp_gradient_hook"),
    time("host_copy_start"),
    byte_rate("host_copy_pageable_rate"),
    time("host_zero_gradient_hook"),
    time("host_zero_reduction"),
    time("host_zero_pre_module"),
    time("host_zero_post_module"),
    time("host_zero_backward_epilogue"),
    time("host_zero_step"),
    byte_rate("host_memory_rate"),
    byte_rate("host_priced_memory_rate"),
    time("host_cpu_adam"),
    time("host_cpu_adam_by_tensor"),
    time("host_cpu_pass"),
});

}  // namespace

std::span<const ConstantRule> gpu_rules() { return kGpuRules; }
std::span<const ConstantRule> node_rules() { return kNodeRules; }

const ConstantRule* find_rule(std::span<const ConstantRule> rules, std::string_view name) {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const ConstantRule& rule) { return rule.name == name; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace stepcast::hw
