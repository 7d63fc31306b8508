// DeepSpeed's ZeRO stage 3: what is fetched, prefetched and released around modules, against orders written out by hand; buckets; memory.
#include <doctest/doctest.h>

#include "program/build.hpp"
#include "program/check.hpp"
#include "program/model.hpp"
#include "program/zero_stage3.hpp"
#include "tests/support/ledger.hpp"
#include "tests/support/schedule.hpp"
#include "tests/support/specs.hpp"

namespace stepcast::program {
namespace {

using test::of;
using Words = std::vector<std::string>;

using test::kSquare, test::kTable, test::kWide;

StepSpec zero3(std::int64_t layers = 1) {
  StepSpec spec = test::reference_step();
  spec.model.layers = layers;
  spec.policy.framework = Framework::zero3;
  spec.policy.overlap_comm = true;
  spec.optimizer.implementation = OptimizerImpl::fused;
  return spec;
}

/// "q" of "b0.q.weight.gathered"; of several in one call "q+3".
std::string short_name(const std::string& label) {
  std::string name = label.starts_with("b") && label.find('.') < 4 ? label.substr(label.find('.') + 1) : label;
  const std::size_t plus = name.find('+');
  const std::string count = plus == std::string::npos ? "" : name.substr(plus, name.find('.', plus) - plus);
  return name.substr(0, name.find('.')) + count;
}

/// Gathers and releases of a step, in order: "+q", "-q".
Words gathers(const StepSpec& spec, std::size_t step) {
  const Program p = build_program(spec, 3);
  Words words;
  for (const Op& op : p.slice(p.steps[step])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].label == "all_gather parameters")
      words.push_back("+" + short_name(p.buffers[p.operands_of(op).back().buffer].label));
    if (op.kind == OpKind::free && p.buffers[op.id].label.ends_with(".gathered")) words.push_back("-" + short_name(p.buffers[op.id].label));
  }
  return words;
}

TEST_CASE("the first micro-batch fetches module by module and releases at once, for the trace is not known") {
  CHECK(gathers(zero3(), 0) == Words{"+embedding", "-embedding", "+q",    "-q",    "+k",  "-k",    "+v",    "-v",         "+out",
                                     "-out",       "+gate",      "-gate", "+up",   "-up", "+down", "-down", "+head",      "-head",  // forward
                                     "+head",      "-head",      "+down", "-down", "+up", "-up",   "+gate", "-gate",      "+out",
                                     "-out",       "+v",         "-v",    "+k",    "-k",  "+q",    "-q",    "+embedding", "-embedding"});
}

TEST_CASE("later ones prefetch along the trace up to the bucket, in one call, and keep what is used again soon") {
  StepSpec spec = zero3();
  spec.policy.stage3_prefetch_bucket_size = 2 * kSquare + 1;  // q, k and v make it full
  spec.policy.stage3_max_reuse_distance = 0;
  // The fetch of the embedding takes q, k, v along; that of the block's norms out and gate, which fills the bucket; q's up, k's down, v's the head. Out's finds head to out on their
  // way and takes q, k, v again, which have been released; gate's the embedding.
  const Words forward = gathers(spec, 1);
  CHECK(Words(forward.begin(), forward.begin() + 14) ==
        Words{"+embedding", "+q+3", "-embedding", "+out+2", "+up", "-q", "+down", "-k", "+head", "-v", "+v+3", "-out", "+embedding", "-gate"});
  // Without a prefetch bucket nothing comes early; within the distance nothing is released between forward and backward.
  spec.policy.stage3_prefetch_bucket_size = 0;
  CHECK(gathers(spec, 1) == gathers(spec, 0));
  spec.policy.stage3_max_reuse_distance = 1'000'000'000;
  const Words kept = gathers(spec, 1);
  CHECK(test::count_prefix(kept, "+") == 9);  // each module once
  CHECK(Words(kept.begin() + 9, kept.end()) == Words{"-head", "-down", "-up", "-gate", "-out", "-v", "-k", "-q", "-embedding"});
}

TEST_CASE("no more is prefetched than may be live") {
  StepSpec spec = zero3(4);
  spec.policy.stage3_prefetch_bucket_size = 1'000'000'000;
  spec.policy.stage3_max_live_parameters = 300'000'000;
  const auto live_peak = [](const StepSpec& s) {
    const Program p = build_program(s, 3);
    std::int64_t live = 0, peak = 0;
    for (const Op& op : p.slice(p.steps[2])) {
      const bool whole = (op.kind == OpKind::alloc || op.kind == OpKind::free) && p.buffers[op.id].label.ends_with(".gathered");
      if (whole) live += (op.kind == OpKind::alloc ? 1 : -1) * p.buffers[op.id].bytes / 2;
      peak = std::max(peak, live);
    }
    CHECK(live == 0);
    return peak;
  };
  CHECK(live_peak(spec) <= 300'000'000 + kTable + kWide + 3 * kSquare);  // the last parameter that is prefetched may overshoot, and so does what is due
  const std::int64_t limited = live_peak(spec);
  spec.policy.stage3_max_live_parameters = 1'000'000'000;
  CHECK(live_peak(spec) > limited);
}

TEST_CASE("kernels read the gathered parameter of their module; small ones stay") {
  const Program p = build_program(zero3(), 1);
  int read = 0;
  for (const Op& op : p.slice(p.steps[0])) {
    if (op.kind != OpKind::launch) continue;
    const std::string& name = p.kernels[op.id].op;
    if (name != "aten::mm down" && name != "aten::mul weight") continue;
    for (const Operand& operand : p.operands_of(op)) {
      const std::string& label = p.buffers[operand.buffer].label;
      if (label != "b0.down.weight.gathered" && label != "persistent_parameters") continue;
      ++read;
      CHECK((name == "aten::mm down") == label.starts_with("b0"));
    }
  }
  CHECK(read == 1 + 3);
}

TEST_CASE("with a threshold of zero norms are gathered with their block") {
  StepSpec spec = zero3();
  spec.policy.stage3_param_persistence_threshold = 0;
  const Words all = gathers(spec, 0);
  CHECK(Words(all.begin(), all.begin() + 4) == Words{"+embedding", "-embedding", "+norm1+2", "+q"});
  CHECK(check(build_program(spec, 3)).empty());
}

TEST_CASE("gradients: reduce-scattered bucket by bucket, the rest at the end, where the host waits") {
  StepSpec spec = zero3();
  spec.policy.reduce_bucket_size = 150'000'000;
  const Program p = build_program(spec, 2);
  std::vector<std::int64_t> elements;
  for (const Op& op : p.slice(p.steps[1])) {
    if (op.kind == OpKind::collective && p.collectives[op.id].label == "reduce_scatter bucket") elements.push_back(p.collectives[op.id].shape.bytes / 2);
  }
  CHECK(elements == std::vector<std::int64_t>{kTable + 4096, 3 * kWide + 4096, 4 * kSquare + 4096, kTable});
  CHECK(test::count_of(test::words(p, p.steps[1], {OpKind::host_wait}), "host waits reductions drained") == 1);
  spec.policy.reduce_scatter = false;
  const Program plain = build_program(spec, 2);
  CHECK(test::count_of(test::words(plain, plain.steps[1], {OpKind::collective}), "AR") == 4 + 1);  // and the norm
}

TEST_CASE("memory: everything is partitioned but small parameters: 18 P / N and the bucket") {
  StepSpec spec = zero3(2);
  spec.policy.reduce_bucket_size = 50'000'000;
  const std::int64_t part = parameters(spec.model) / 32, small = (2 * 2 + 1) * 4096;
  CHECK(ZeroStage3::partition_of(spec) == part);  // all sizes divide by 32
  auto l = test::ledger(build_program(spec, 3));
  CHECK(of(l.at_end["optimizer"], Owner::parameters) == 2 * part + 4 * part + 2 * small);
  CHECK(of(l.at_end["optimizer"], Owner::optimizer) == 8 * part);
  CHECK(of(l.at_end["optimizer"], Owner::gradients) == 2 * part);
  CHECK(of(l.at_end["optimizer"], Owner::reduction) == 2 * 50'000'000);
  CHECK(of(l.at_end["optimizer"], Owner::all_gather) == 0);
  CHECK(of(l.peak["optimizer"], Owner::gradients) == 2 * part + 2 * part + 4 * part);
}

TEST_CASE("one rank gathers nothing; tied embeddings are gathered for the head too") {
  StepSpec spec = zero3();
  spec.world = {1, 1};
  CHECK(gathers(spec, 1).empty());
  CHECK(check(build_program(spec, 3)).empty());
  spec = zero3();
  spec.model = test::gpt2_xl();
  spec.model.layers = 2;
  spec.batch.seq_len = 1024;
  spec.policy.stage3_prefetch_bucket_size = spec.policy.stage3_max_reuse_distance = 0;
  CHECK(test::count_of(gathers(spec, 1), "+embedding") == 4);  // embedding and head, forward and backward
  CHECK(check(build_program(spec, 3)).empty());
}

}  // namespace
}  // namespace stepcast::program
