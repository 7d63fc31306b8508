// The loader as a pipeline, by hand. Formula: sim/data_loader.hpp.

#include "sim/data_loader.hpp"

#include <doctest/doctest.h>

using namespace stepcast;
using sim::DataLoader;

TEST_CASE("without workers each batch is prepared when it is asked for") {
  DataLoader loader({0, 2, SimTime(100)});
  CHECK(loader.next(SimTime(5)) == SimTime(105));
  CHECK(loader.next(SimTime(500)) == SimTime(600));
}

TEST_CASE("one worker, two batches ahead: it starts at once, a fast consumer is bound by the worker") {
  DataLoader loader({1, 2, SimTime(100)});
  CHECK(loader.next(SimTime(0)) == SimTime(100));     // first batch ready at 100
  CHECK(loader.next(SimTime(110)) == SimTime(200));   // second at 200
  CHECK(loader.next(SimTime(900)) == SimTime(900));   // third was ready at 300
  CHECK(loader.next(SimTime(901)) == SimTime(901));   // fourth: its slot was free from 200, ready at 400
  CHECK(loader.next(SimTime(902)) == SimTime(1000));  // fifth: slot of the third, taken at 900: ready at 1000
}

TEST_CASE("four workers prepare four batches side by side") {
  DataLoader loader({4, 2, SimTime(100)});
  for (int i = 0; i < 4; ++i) CHECK(loader.next(SimTime(0)) == SimTime(100));
  CHECK(loader.next(SimTime(0)) == SimTime(200));
}
