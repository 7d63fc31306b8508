// Names of the enumerations of a program, as they stand in its text form.
#include "program/program.hpp"

namespace stepcast::program {

const char* name(Owner owner) {
  static constexpr const char* names[] = {"parameters", "gradients", "optimizer", "activations", "all_gather", "reduction", "loss", "input", "workspace"};
  return names[static_cast<std::size_t>(owner)];
}

const char* name(Function function) {
  static constexpr const char* names[] = {"zero",
                                          "copy",
                                          "pack",
                                          "add",
                                          "sum",
                                          "scale",
                                          "load_input",
                                          "embedding",
                                          "embedding_backward",
                                          "add_positions",
                                          "positions_backward",
                                          "norm",
                                          "norm_backward",
                                          "gemm",
                                          "column_sum",
                                          "rope",
                                          "attention",
                                          "attention_backward",
                                          "gated",
                                          "gated_backward",
                                          "gelu",
                                          "gelu_backward",
                                          "cross_entropy",
                                          "cross_entropy_backward",
                                          "sum_of_squares",
                                          "clip_coefficient",
                                          "scale_by",
                                          "adamw"};
  return names[static_cast<std::size_t>(function)];
}

const char* name(Stream stream) {
  static constexpr const char* names[] = {"compute", "pre_unshard", "unshard",        "post_backward", "all_reduce",
                                          "copy_in", "all_gather",  "reduce_scatter", "nccl"};
  return names[static_cast<std::size_t>(stream)];
}

const char* name(Communicator communicator) {
  static constexpr const char* names[] = {"shard", "replica", "sub_shard"};
  return names[static_cast<std::size_t>(communicator)];
}

const char* name(OpKind kind) {
  static constexpr const char* names[] = {"launch", "collective",    "record",    "wait",       "host_wait", "alloc",
                                          "free",   "record_stream", "host_work", "next_batch", "mark"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace stepcast::program
