// Facts of the machine that stepcast runs on. Test: tests/golden/train_cli_test.cpp.
#pragma once

#include <cstdint>
#include <string>

namespace stepcast::cli {

struct HostMachine {
  std::string processor;  // as the system names it
  unsigned threads = 1;
  std::int64_t memory_bytes = 0;
};

HostMachine host_machine();

}  // namespace stepcast::cli
