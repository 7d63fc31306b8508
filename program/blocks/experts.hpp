// A mixture of experts as Hugging Face's Mixtral runs it eagerly (modeling_mixtral.py, MixtralSparseMoeBlock): a router, and then one expert after the other on the tokens that
// are routed to it. The host must know how many these are before it can launch an expert's kernels: there torch.compile breaks the graph, so that every expert is a graph of
// its own. Routing is taken as even. docs/kernels.md.
#pragma once

#include <vector>

#include "program/blocks/feed_forward.hpp"

namespace stepcast::program {

inline constexpr std::uint32_t kTopKKernels = 2;  // selection, sort of what was selected (ATen/native/cuda/TensorTopK.cu); the same under Inductor

/// Tokens of one expert where `assignments` (tokens times active experts) are spread evenly; the first experts take one more of what is left over.
constexpr std::int64_t expert_rows(std::int64_t assignments, std::int64_t experts, std::int64_t expert) {
  return assignments / experts + (expert < assignments % experts ? 1 : 0);
}

class Experts {
 public:
  explicit Experts(Writer& writer);
  Slot forward(Slot x);
  Slot backward(Slot gradient);

  // --- in graphs that break at every expert
  Slot forward_compiled(Slot x);
  /// Of the routed tokens and of the router's input, with the gradients of all weights.
  std::vector<Slot> input_gradients_compiled(Slot gradient);

 private:
  struct Expert {
    std::string prefix;
    std::int64_t rows;
    FeedForward network;
    Slot tokens = kNoSlot, weights = kNoSlot, result = kNoSlot;  // indices of its tokens, their routing weights, the network's output
  };
  void route(Slot x);
  void find_tokens(Expert& expert);
  void run(Expert& expert, Slot x, Slot sum);
  /// The gradient of the expert's tokens, scattered to all tokens.
  Slot backward_of(Expert& expert, Slot gradient);
  Slot routing_backward();
  void route_compiled(Slot x);
  void run_compiled(Expert& expert, Slot x, Slot sum);
  Slot backward_of_compiled(Expert& expert, Slot gradient);
  void weight_gradient_compiled(const Expert& expert, Slot gradient);
  Slot routing_backward_compiled();
  Slot add_to(Slot sum, Slot gradient, const std::string& name);
  [[nodiscard]] Slot per_token(const std::string& name, std::int64_t elements, std::int64_t element) {
    return w_.activation("router." + name, w_.size.tokens * elements * element);
  }

  Writer& w_;
  std::int64_t count_, active_;
  Linear router_;
  std::vector<Expert> experts_;
  Slot x_ = kNoSlot, probabilities_ = kNoSlot, chosen_ = kNoSlot, chosen_ids_ = kNoSlot, total_ = kNoSlot, weights_ = kNoSlot, mask_ = kNoSlot;
  Slot d_weights_ = kNoSlot;
};

}  // namespace stepcast::program
