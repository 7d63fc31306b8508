// Lifetimes that follow from uses: allocs and frees of a layer of three kernels, by hand, with and without recomputation.
#include "program/blocks/layer.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace stepcast::program {
namespace {

using Words = std::vector<std::string>;

/// forward: a = f(input), b = g(a), output = k(b); backward: d_b = k'(d_output), d_input = f'(d_b, a). So `a` is saved, `b` and the input are not.
struct Chain {
  explicit Chain(LayerMode mode) : layer(builder, "layer", mode) {
    const auto tensor = [&](const char* name, Lives lives = Lives::here) { return layer.tensor(name, 8, Owner::activations, lives); };
    const Slot input = tensor("input", Lives::input), output = tensor("output", Lives::output);
    const Slot d_output = tensor("d_output", Lives::input), d_input = tensor("d_input", Lives::output);
    const Slot a = tensor("a"), b = tensor("b"), d_b = tensor("d_b");
    const auto kernel = [&](const char* op, std::vector<Slot> reads, Slot write) { layer.kernel(op, {}, reads, std::span(&write, 1)); };
    kernel("f", {input}, a);
    kernel("g", {a}, b);
    kernel("k", {b}, output);
    layer.begin_backward();
    kernel("k'", {d_output}, d_b);
    kernel("f'", {d_b, a}, d_input);
    layer.finish();
    buffers = layer.instance("x", {});
  }

  Words words(bool backward) {
    const std::uint32_t begin = builder.position();
    if (backward) layer.backward(buffers);
    else layer.forward(buffers);
    Words result;
    const Program& p = builder.program();
    for (const Op& op : p.slice({begin, builder.position()})) {
      if (op.kind == OpKind::launch) result.push_back(p.kernels[op.id].op);
      if (op.kind == OpKind::alloc) result.push_back("+" + p.buffers[op.id].label);
      if (op.kind == OpKind::free) result.push_back("-" + p.buffers[op.id].label);
    }
    return result;
  }

  Builder builder;
  Layer layer;
  Layer::Instance buffers;
};

TEST_CASE("saved is what the backward reads; the rest goes after its last use, the input when the layer returns") {
  Chain chain({});
  CHECK(chain.words(false) == Words{"+x.a", "f", "+layer.b", "g", "+x.output", "k", "-layer.b", "-x.input"});
  CHECK(chain.words(true) == Words{"+layer.d_b", "k'", "-x.d_output", "+x.d_input", "f'", "-layer.d_b", "-x.a"});
}

TEST_CASE("recomputation with early stop rebuilds `a` alone and keeps the input until the end") {
  Chain chain({.recompute = true});
  CHECK(chain.words(false) == Words{"+x.a", "f", "+layer.b", "g", "-x.a", "+x.output", "k", "-layer.b"});
  CHECK(chain.words(true) == Words{"+x.a", "f", "+layer.d_b", "k'", "-x.d_output", "+x.d_input", "f'", "-layer.d_b", "-x.a", "-x.input"});
}

TEST_CASE("recomputation without early stop rebuilds the output too, and drops it") {
  Chain chain({.recompute = true, .early_stop = false});
  CHECK(chain.words(true) == Words{"+x.a", "f", "+layer.b", "g", "+x.output", "k", "-layer.b", "-x.output", "+layer.d_b", "k'", "-x.d_output", "+x.d_input",
                                   "f'", "-layer.d_b", "-x.a", "-x.input"});
}

TEST_CASE("reentrant checkpointing holds the recomputed output and its gradient until its backward returns") {
  Chain chain({.recompute = true, .early_stop = false, .reentrant = true});
  CHECK(chain.words(true) == Words{"+x.a", "f", "+layer.b", "g", "+x.output", "k", "-layer.b", "+layer.d_b", "k'", "+x.d_input", "f'", "-layer.d_b", "-x.a",
                                   "-x.output", "-x.d_output", "-x.input"});
}

TEST_CASE("inputs that the caller holds no longer than a part of the forward") {
  Builder builder;
  Layer layer(builder, "layer", {});
  const Slot input = layer.tensor("input", 8, Owner::activations, Lives::input), a = layer.tensor("a", 8), b = layer.tensor("b", 8);
  layer.kernel("f", {}, std::span(&input, 1), std::span(&a, 1));
  layer.end_inputs();
  layer.kernel("g", {}, std::span(&a, 1), std::span(&b, 1));
  layer.begin_backward();
  layer.finish();
  layer.forward(layer.instance("x", {}));
  const auto& ops = builder.program().ops;  // alloc a, f, free the input, alloc b, g, free a, b
  REQUIRE(ops.size() == 7);
  CHECK(ops[2].kind == OpKind::free);
  CHECK(builder.program().buffers[ops[2].id].label == "x.input");
}

TEST_CASE("a held tensor stays until the forward returns") {
  Builder builder;
  Layer layer(builder, "layer", {});
  const Slot a = layer.tensor("a", 8), b = layer.tensor("b", 8), c = layer.tensor("c", 8);
  layer.kernel("f", {}, {}, std::span(&a, 1));
  layer.kernel("g", {}, std::span(&a, 1), std::span(&b, 1));
  layer.kernel("h", {}, std::span(&b, 1), std::span(&c, 1));
  layer.hold(a);
  layer.begin_backward();
  layer.finish();
  layer.forward(layer.instance("x", {}));
  CHECK(builder.program().ops.back().kind == OpKind::free);
  CHECK(builder.program().buffers[builder.program().ops.back().id].label == "layer.a");
}

TEST_CASE("a tensor named twice in a launch is one operand; two tensors of one name are a mistake") {
  Builder builder;
  Layer layer(builder, "layer", {});
  const Slot a = layer.tensor("a", 8);
  const Slot reads[] = {a, a};
  layer.kernel("f", {}, reads, std::span(&a, 1));
  layer.begin_backward();
  layer.finish();
  layer.forward(layer.instance("x", {}));
  REQUIRE(builder.program().operands.size() == 1);
  CHECK(builder.program().operands[0].access == Access::read_write);

  Layer twice(builder, "twice", {});
  twice.tensor("a", 8);
  twice.tensor("a", 8);
  twice.begin_backward();
  CHECK_THROWS_AS(twice.finish(), std::logic_error);
}

}  // namespace
}  // namespace stepcast::program
