// How files spell the values of enums. The spelling follows PyTorch's and the field's names. Test: tests/unit/scenario_test.cpp.
#pragma once

#include "hw_models/strict_json.hpp"
#include "program/spec.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast::scenarios {

inline constexpr EnumName<program::BlockStyle> kBlockStyles[] = {{program::BlockStyle::llama, "llama"}, {program::BlockStyle::gpt, "gpt"}};
inline constexpr EnumName<program::FfnKind> kFfnKinds[] = {
    {program::FfnKind::swiglu, "swiglu"}, {program::FfnKind::gelu, "gelu"}, {program::FfnKind::geglu, "geglu"}};
inline constexpr EnumName<program::BlockLayout> kBlockLayouts[] = {
    {program::BlockLayout::sequential, "sequential"}, {program::BlockLayout::parallel, "parallel"}, {program::BlockLayout::sandwich, "sandwich"}};
inline constexpr EnumName<program::NormKind> kNorms[] = {{program::NormKind::rms_norm, "rms_norm"}, {program::NormKind::layer_norm, "layer_norm"}};
inline constexpr EnumName<program::Positions> kPositions[] = {
    {program::Positions::rope, "rope"}, {program::Positions::learned, "learned"}, {program::Positions::alibi, "alibi"}, {program::Positions::none, "none"}};
inline constexpr EnumName<program::LoraTargets> kLoraTargets[] = {
    {program::LoraTargets::query_value, "query_value"}, {program::LoraTargets::attention, "attention"}, {program::LoraTargets::all_linear, "all_linear"}};
inline constexpr EnumName<program::Framework> kFrameworks[] = {{program::Framework::fsdp1, "fsdp1"}, {program::Framework::fsdp2, "fsdp2"},
                                                               {program::Framework::ddp, "ddp"},     {program::Framework::zero1, "zero1"},
                                                               {program::Framework::zero2, "zero2"}, {program::Framework::zero3, "zero3"}};
inline constexpr EnumName<program::Sharding> kShardings[] = {{program::Sharding::full_shard, "FULL_SHARD"},
                                                             {program::Sharding::shard_grad_op, "SHARD_GRAD_OP"},
                                                             {program::Sharding::no_shard, "NO_SHARD"},
                                                             {program::Sharding::hybrid_shard, "HYBRID_SHARD"},
                                                             {program::Sharding::hybrid_shard_zero2, "_HYBRID_SHARD_ZERO2"}};
inline constexpr EnumName<program::BackwardPrefetch> kBackwardPrefetches[] = {
    {program::BackwardPrefetch::pre, "BACKWARD_PRE"}, {program::BackwardPrefetch::post, "BACKWARD_POST"}, {program::BackwardPrefetch::none, "NONE"}};
inline constexpr EnumName<program::CpuOffload> kCpuOffloads[] = {
    {program::CpuOffload::none, "none"}, {program::CpuOffload::optimizer, "optimizer"}, {program::CpuOffload::parameters, "parameters"}};
inline constexpr EnumName<hw::Dtype> kDtypes[] = {{hw::Dtype::fp64, "fp64"}, {hw::Dtype::fp32, "fp32"}, {hw::Dtype::bf16, "bf16"}, {hw::Dtype::fp16, "fp16"}};
inline constexpr EnumName<program::Matmul> kMatmuls[] = {{program::Matmul::param, "param"},
                                                         {program::Matmul::tf32, "tf32"},
                                                         {program::Matmul::fp8_tensorwise, "fp8-tensorwise"},
                                                         {program::Matmul::fp8_delayed, "fp8-delayed"},
                                                         {program::Matmul::fp8_rowwise, "fp8-rowwise"},
                                                         {program::Matmul::fp8_blockwise, "fp8-blockwise"}};
inline constexpr EnumName<program::Wrap> kWraps[] = {
    {program::Wrap::blocks, "blocks"},         {program::Wrap::embedding_and_head, "embedding_and_head"}, {program::Wrap::model, "model"},
    {program::Wrap::size_based, "size_based"}, {program::Wrap::attention_and_ffn, "attention_and_ffn"},   {program::Wrap::linears, "linears"}};
inline constexpr EnumName<program::Release> kReleases[] = {
    {program::Release::before_2_1, "before-2.1"}, {program::Release::from_2_1, "2.1-2.7"}, {program::Release::from_2_8, "2.8"}};
inline constexpr EnumName<program::RecomputeMode> kRecomputeModes[] = {{program::RecomputeMode::none, "none"},
                                                                       {program::RecomputeMode::full, "full"},
                                                                       {program::RecomputeMode::every_k, "every_k"},
                                                                       {program::RecomputeMode::share, "share"},
                                                                       {program::RecomputeMode::per_op, "per_op"}};
inline constexpr EnumName<program::RecomputeOps> kRecomputeOps[] = {{program::RecomputeOps::attention, "attention"},
                                                                    {program::RecomputeOps::all_but_attention, "all_but_attention"},
                                                                    {program::RecomputeOps::all_but_matmul, "all_but_matmul"},
                                                                    {program::RecomputeOps::all_but_every_second_matmul, "all_but_every_second_matmul"}};
inline constexpr EnumName<program::Nesting> kNestings[] = {{program::Nesting::inside, "inside"}, {program::Nesting::outside, "outside"}};
inline constexpr EnumName<program::KernelSet> kKernelSets[] = {{program::KernelSet::pytorch_eager, "pytorch-eager"},
                                                               {program::KernelSet::pytorch_compile, "pytorch-compile"},
                                                               {program::KernelSet::native, "native"},
                                                               {program::KernelSet::megatron, "megatron"}};
inline constexpr EnumName<program::Attention> kAttentions[] = {{program::Attention::flash1, "flash1"},       {program::Attention::flash2, "flash2"},
                                                               {program::Attention::flash3, "flash3"},       {program::Attention::triton, "triton"},
                                                               {program::Attention::efficient, "efficient"}, {program::Attention::unfused, "unfused"}};
inline constexpr EnumName<program::RopeKernels> kRopes[] = {
    {program::RopeKernels::rotate_half, "rotate_half"}, {program::RopeKernels::complex, "complex"}, {program::RopeKernels::fused, "fused"}};
inline constexpr EnumName<program::Loss> kLosses[] = {
    {program::Loss::eager_fp32, "eager_fp32"}, {program::Loss::fused, "fused"}, {program::Loss::fused_fp32, "fused_fp32"}, {program::Loss::chunked, "chunked"}};
inline constexpr EnumName<program::OptimizerImpl> kOptimizerImpls[] = {
    {program::OptimizerImpl::for_loop, "for_loop"}, {program::OptimizerImpl::foreach, "foreach"}, {program::OptimizerImpl::fused, "fused"}};
inline constexpr EnumName<hw::NvLink> kNvLinks[] = {{hw::NvLink::nvswitch, "nvswitch"}, {hw::NvLink::pairs, "pairs"}, {hw::NvLink::none, "none"}};
inline constexpr EnumName<hw::Fabric> kFabrics[] = {{hw::Fabric::infiniband, "infiniband"}, {hw::Fabric::roce, "roce"}, {hw::Fabric::efa, "efa"},
                                                    {hw::Fabric::omni_path, "omni-path"},   {hw::Fabric::tcpx, "tcpx"}, {hw::Fabric::tcp, "tcp"}};
inline constexpr EnumName<Ranks> kRanks[] = {{Ranks::folded, "folded"}, {Ranks::explicit_ranks, "explicit"}};
inline constexpr EnumName<FlopsConvention> kFlopsConventions[] = {
    {FlopsConvention::full_attention, "full_attention"}, {FlopsConvention::causal_attention, "causal_attention"}, {FlopsConvention::parameters_only, "6p"}};

}  // namespace stepcast::scenarios
