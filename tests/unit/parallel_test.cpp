// Work on several threads: each piece once, exceptions thrown, one call of `done` at a time. cli/validate/parallel.hpp; run by ThreadSanitizer.
#include "cli/validate/parallel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <stdexcept>

#include "cli/report/validate.hpp"

using namespace stepcast;

TEST_CASE("every piece is done once, whatever the number of threads") {
  for (const unsigned threads : {1u, 2u, 7u, 64u}) {
    std::vector<int> done(50);
    std::size_t calls = 0, last = 0;
    cli::for_each_index(
        done.size(), threads, [&](std::size_t i) { ++done[i]; },
        [&](std::size_t finished) {
          ++calls;
          last = finished;
        });
    CHECK(std::all_of(done.begin(), done.end(), [](int n) { return n == 1; }));
    CHECK(calls == 50);
    CHECK(last == 50);
  }
  cli::for_each_index(0, 4, [](std::size_t) { FAIL("no piece"); });
}

TEST_CASE("an exception ends the work and reaches the caller") {
  std::atomic<int> begun{0};
  const auto work = [&](std::size_t i) {
    ++begun;
    if (i == 3) throw std::runtime_error("three");
  };
  CHECK_THROWS_WITH(cli::for_each_index(100'000, 3, work), "three");
  CHECK(begun < 100'000);
}

TEST_CASE("rows are judged alike on one thread and on several") {
  std::string table =
      "id,source,model,gpu,n_gpus,sharding,micro_batch,precision,act_ckpt,tokens_per_s_per_gpu,d_model,n_layers,n_heads,ffn_dim,ffn_kind,vocab,seq_len,"
      "framework\n";
  for (int i = 1; i <= 12; ++i)
    table += "r" + std::to_string(i) + ",x,m,a100-80gb,8,FULL_SHARD," + std::to_string(i) + ",bf16,none,1000,512,2,8,2048,swiglu,1000,256,fsdp1\n";
  const auto runs = calibration::read_runs(table, "t.csv").runs;
  const calibration::Sources sources;
  const std::string alone = cli::to_csv(cli::judge(runs, sources, 1));
  CHECK(alone == cli::to_csv(cli::judge(runs, sources, 4)));
  CHECK(std::count(alone.begin(), alone.end(), '\n') == 13);
}
