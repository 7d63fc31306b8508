// See host.hpp.
#include "hw_models/host.hpp"

namespace stepcast::hw {

std::string_view host_constant(HostWork work) {
  switch (work) {
    case HostWork::none: return "";
    case HostWork::op_forward: return "host_op_forward";
    case HostWork::op_backward: return "host_op_backward";
    case HostWork::op_compiled: return "host_op_compiled";
    case HostWork::op_optimizer: return "host_op_optimizer";
    case HostWork::extra_launch: return "host_extra_launch";
    case HostWork::collective_call: return "host_collective_call";
    case HostWork::fsdp_pre_forward: return "host_fsdp_pre_forward";
    case HostWork::fsdp_post_forward: return "host_fsdp_post_forward";
    case HostWork::fsdp_pre_backward: return "host_fsdp_pre_backward";
    case HostWork::fsdp_post_backward: return "host_fsdp_post_backward";
    case HostWork::fsdp_root_pre_forward: return "host_fsdp_root_pre_forward";
    case HostWork::fsdp_final_callback: return "host_fsdp_final_callback";
    case HostWork::views_unsharded: return "host_views_unsharded";
    case HostWork::views_sharded: return "host_views_sharded";
    case HostWork::event_record: return "host_event_record";
    case HostWork::stream_wait: return "host_stream_wait";
    case HostWork::allocation: return "host_allocation";
    case HostWork::step_begin: return "host_step_begin";
    case HostWork::fsdp2_pre_forward: return "host_fsdp2_pre_forward";
    case HostWork::fsdp2_post_forward: return "host_fsdp2_post_forward";
    case HostWork::fsdp2_pre_backward: return "host_fsdp2_pre_backward";
    case HostWork::fsdp2_post_backward: return "host_fsdp2_post_backward";
    case HostWork::fsdp2_root_pre_forward: return "host_fsdp2_root_pre_forward";
    case HostWork::fsdp2_final_callback: return "host_fsdp2_final_callback";
    case HostWork::dtensor_dispatch: return "host_dtensor_dispatch";
    case HostWork::ddp_pre_forward: return "host_ddp_pre_forward";
    case HostWork::ddp_final_callback: return "host_ddp_final_callback";
    case HostWork::ddp_gradient_hook: return "host_ddp_gradient_hook";
    case HostWork::zero_gradient_hook: return "host_zero_gradient_hook";
    case HostWork::zero_reduction: return "host_zero_reduction";
    case HostWork::zero_pre_module: return "host_zero_pre_module";
    case HostWork::zero_post_module: return "host_zero_post_module";
    case HostWork::zero_backward_epilogue: return "host_zero_backward_epilogue";
    case HostWork::zero_step: return "host_zero_step";
    case HostWork::cpu_adam: return "host_cpu_adam";
    case HostWork::cpu_adam_by_tensor: return "host_cpu_adam_by_tensor";
    case HostWork::cpu_pass: return "host_cpu_pass";
    case HostWork::op_megatron_forward: return "host_op_megatron_forward";
    case HostWork::op_megatron_backward: return "host_op_megatron_backward";
    case HostWork::count_: return "";
  }
  return "";
}

Seconds host_time(const Profile& node, HostWork work) {
  const std::string_view key = host_constant(work);
  if (key.empty()) return {};
  const Seconds price(node.at(key));
  if (!shares_processors(work)) return price;
  return memory_bound_host_time(price, BytesPerSecond(node.at("host_priced_memory_rate")), BytesPerSecond(node.at("host_memory_rate")));
}

Seconds memory_bound_host_time(Seconds price, BytesPerSecond priced, BytesPerSecond memory) { return price * (priced / memory); }

bool shares_processors(HostWork work) { return work == HostWork::cpu_adam || work == HostWork::cpu_adam_by_tensor || work == HostWork::cpu_pass; }

}  // namespace stepcast::hw
