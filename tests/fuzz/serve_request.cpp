// Any bytes as a request of `stepcast serve`: the body is read or refused with a line, what is read holds together or is refused with a line, and a Host header that is
// taken for our own names an address, localhost or us.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cli/serve/routes.hpp"
#include "hw_models/input_error.hpp"

namespace {

using namespace stepcast;

void check_line(const InputError& error) {
  if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cli::LiveScenario kLive(scenarios::ScenarioTemplate("7b-32xa100"));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (cli::is_own_host(text, 80, "us.example") && text.find_first_of("0123456789:") == std::string_view::npos && text.size() != 9 && text.size() != 10)
    std::abort();
  try {
    const cli::ForecastRequest request = cli::read_request(text);
    const cli::Settled settled = kLive.settle(request.settings);
    if (!(scenarios::read_scenario("7b-32xa100", settled.sets) == settled.scenario)) std::abort();
  } catch (const InputError& error) { check_line(error); }
  return 0;
}
