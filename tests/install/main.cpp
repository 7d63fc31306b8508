// A forecast by another program: prints the step time in seconds.
#include <cstdio>

#include "cli/predict.hpp"

int main() {
  const auto scenario = stepcast::scenarios::read_scenario("7b-32xa100");
  std::printf("%.9f\n", stepcast::cli::predict(scenario).report.step_time_s);
}
