// The loader as a pipeline, by hand. Formula: sim/data_loader.hpp.

#include "sim/data_loader.hpp"

#include <doctest/doctest.h>

using namespace stepcast;
using sim::DataLoader;

namespace {

sim::LoaderSettings settings(std::int32_t workers, std::int32_t prefetch, std::int64_t batch_time, double spread = 0) {
  return {workers, prefetch, SimTime(batch_time), sim::Spread(spread)};
}

}  // namespace

TEST_CASE("without workers each batch is prepared when it is asked for") {
  const auto s = settings(0, 2, 100);
  DataLoader loader(s);
  CHECK(loader.next(SimTime(5)) == SimTime(105));
  CHECK(loader.next(SimTime(500)) == SimTime(600));
}

TEST_CASE("one worker, two batches ahead: it starts at once, a fast consumer is bound by the worker") {
  const auto s = settings(1, 2, 100);
  DataLoader loader(s);
  CHECK(loader.next(SimTime(0)) == SimTime(100));     // first batch ready at 100
  CHECK(loader.next(SimTime(110)) == SimTime(200));   // second at 200
  CHECK(loader.next(SimTime(900)) == SimTime(900));   // third was ready at 300
  CHECK(loader.next(SimTime(901)) == SimTime(901));   // fourth: its slot was free from 200, ready at 400
  CHECK(loader.next(SimTime(902)) == SimTime(1000));  // fifth: slot of the third, taken at 900: ready at 1000
}

TEST_CASE("four workers out of phase deliver four batches per batch time, evenly") {
  const auto s = settings(4, 2, 100);
  DataLoader loader(s);
  for (int i = 0; i < 12; ++i) CHECK(loader.next(SimTime(0)) == SimTime(100 + 25 * i));
}

TEST_CASE("without its stock a loader delivers one batch every batch_time / workers from now on") {
  const auto s = settings(4, 2, 100);
  DataLoader loader(s);
  CHECK(loader.next(SimTime(0)) == SimTime(100));
  CHECK(loader.next(SimTime(1000)) == SimTime(1000));  // eight are ready
  loader.drop_stock(SimTime(1000));
  for (int i = 1; i < 12; ++i) CHECK(loader.next(SimTime(1000)) == SimTime(1000 + 25 * i));
}

TEST_CASE("spread changes each batch and not their mean") {
  const auto s = settings(0, 2, 1'000'000, 0.5);
  DataLoader loader(s, sim::Draws(3, sim::Purpose::batch, 0));
  SimTime now{}, shortest = SimTime::max(), longest{};
  for (int i = 0; i < 20000; ++i) {
    const SimTime ready = loader.next(now);
    shortest = std::min(shortest, ready - now);
    longest = std::max(longest, ready - now);
    now = ready;
  }
  CHECK(static_cast<double>(now.count()) / 20000 == doctest::Approx(1e6).epsilon(0.015));
  CHECK(shortest < SimTime(250'000));
  CHECK(longest > SimTime(3'000'000));
}
