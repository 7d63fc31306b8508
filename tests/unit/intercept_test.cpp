// Calls of a framework between those of the model, and the kernels that finish gradients.
#include "program/intercept.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stepcast::program {
namespace {

TEST_CASE("calls are made before and after each of the model's, in order") {
  Builder builder;
  const BufferId a = builder.buffer("a", 8, Owner::activations), b = builder.buffer("b", 8, Owner::activations);
  builder.alloc(a, Stream::compute);
  intercept(
      builder,
      [&] {
        builder.alloc(b, Stream::compute);
        builder.free(b);
      },
      [&](std::span<const Op> calls, std::size_t i) {
        if (calls[i].kind == OpKind::alloc) builder.host_work(hw::HostWork::allocation);
      },
      [&](std::span<const Op> calls, std::size_t i) {
        if (i + 1 == calls.size()) builder.free(a);
      });
  std::string order;
  for (const Op& op : builder.program().ops) order += std::string(name(op.kind)) + " ";
  CHECK(order == "alloc host_work alloc free free ");
}

TEST_CASE("a gradient is ready after the last kernel that writes it") {
  Builder builder;
  const BufferId x = builder.buffer("x", 8, Owner::gradients), y = builder.buffer("y", 8, Owner::gradients), z = builder.buffer("z", 8, Owner::gradients);
  GradientHooks hooks(builder);
  hooks.watch(0, x);
  hooks.watch(1, y);
  const KernelId kernel = builder.kernel({}, "k", "k");
  builder.launch(kernel, Stream::compute, hw::HostWork::op_backward, {out(x)});
  builder.launch(kernel, Stream::compute, hw::HostWork::op_backward, {inout(x), out(y), out(z)});
  builder.launch(kernel, Stream::compute, hw::HostWork::op_backward, {in(x), inout(y)});
  const std::span<const Op> calls = builder.program().ops;
  const auto ready = [&](std::size_t not_yet) {
    std::string text;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      text += "|";
      for (const std::size_t parameter : hooks.ready(calls, i, not_yet)) text += std::to_string(parameter);
    }
    return text;
  };
  CHECK(ready(GradientHooks::kNone) == "||0|1");
  CHECK(ready(0) == "|||1");
}

}  // namespace
}  // namespace stepcast::program
