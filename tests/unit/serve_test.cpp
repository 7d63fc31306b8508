// What `stepcast serve` answers, without sockets: requests, who may ask, settings that contradict each other, and figures that are those of `run`. docs/serve.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/page/run_page.hpp"
#include "cli/predict.hpp"
#include "cli/serve/routes.hpp"
#include "hw_models/embedded.hpp"
#include "hw_models/input_error.hpp"
#include "support/forecast.hpp"

using namespace stepcast;
using Json = nlohmann::ordered_json;

namespace {

const std::vector<std::string> kSmall = {"/model/layers=4", "/run/steps=3"};

cli::Served served(const std::string& scenario, const std::vector<std::string>& sets = kSmall) {
  return {cli::LiveScenario(scenarios::ScenarioTemplate(scenario, sets)), {}, "stepcast run " + scenario};
}

cli::ForecastRequest asked(const std::vector<cli::Setting>& settings) { return {settings, false}; }

cli::HttpAnswer http(const std::string& method, const std::string& target, const std::string& body = "", const std::string& host = "127.0.0.1:8642",
                     const std::string& origin = "", const std::string& type = "application/json") {
  static const cli::Routes kRoutes(served("7b-32xa100"), "127.0.0.1");
  return kRoutes({method, target, host, origin, type, body}, 8642);
}

std::string error_of(const cli::HttpAnswer& answer) { return Json::parse(answer.body).at("error"); }

const Json& control(const Json& answer, const std::string& pointer) {
  const auto& all = answer["controls"];
  return *std::find_if(all.begin(), all.end(), [&](const Json& one) { return one["pointer"] == pointer; });
}

const Json& option(const Json& control, const Json& value) {
  const auto& all = control["options"];
  return *std::find_if(all.begin(), all.end(), [&](const Json& one) { return one["value"] == value; });
}

}  // namespace

TEST_CASE("an answer has the figures, the waterfall and the notices of run") {
  for (const char* scenario : {"7b-32xa100", "01-baseline"}) {
    for (const std::string set : {"/batch/micro_batch=1", "/recompute/mode=full", "/policy/forward_prefetch=true"}) {
      const Json answer = cli::answer(served(scenario), asked({{set.substr(0, set.find('=')), set.ends_with("=1")     ? Json(1)
                                                                                              : set.ends_with("full") ? Json("full")
                                                                                                                      : Json(true)}}));
      const cli::Prediction run = test::forecast(scenario, {kSmall[0], kSmall[1], set});
      CHECK(answer["set"] == Json::array({set}));
      CHECK(answer["run"] == std::string("stepcast run ") + scenario + " --set " + set);
      CHECK(answer["figures"]["step_time_s"] == run.report.step_time_s);
      CHECK(answer["figures"]["mfu"] == run.report.mfu);
      CHECK(answer["figures"]["tokens_per_s_per_gpu"] == run.report.tokens_per_s_per_gpu);
      CHECK(answer["figures"]["peak_reserved_bytes"] == run.report.peak_reserved_bytes);
      CHECK(answer["notices"] == run.report.warnings);
      REQUIRE(answer["sections"][0]["kind"] == "waterfall");
      CHECK(answer["sections"][0] == cli::waterfall_section(run));
      CHECK(answer["sections"][1] == cli::timeline_section(run, 1000));
    }
  }
}

TEST_CASE("a prediction of the last step alone reports what a whole one does") {
  for (const std::vector<std::string>& sets : {std::vector<std::string>{},
                                               {"/run/ranks=explicit", "/run/jitter/kernel=0.02", "/cluster/nodes=1"},
                                               {"/run/steps=1"},
                                               {"/batch/micro_batch=64"},
                                               {"/policy/framework=ddp"}}) {
    std::vector<std::string> all = kSmall;
    all.insert(all.end(), sets.begin(), sets.end());
    const scenarios::Scenario scenario = scenarios::read_scenario("7b-32xa100", all);
    const cli::Prediction whole = cli::predict(scenario), last = cli::predict_last_step(scenario);
    CHECK(cli::json_of(last) == cli::json_of(whole));
    CHECK(to_json(cli::live_page(last)) == to_json(cli::live_page(whole)));
  }
}

TEST_CASE("out of memory is an answer: what held it, and what would fit if that is asked for") {
  const Json answer = cli::answer(served("7b-32xa100"), {{{"/batch/micro_batch", 64}, {"/batch/seq_len", 16384}}, false});
  CHECK(answer["outcome"] == "out_of_memory");
  REQUIRE(answer["sections"].size() == 1);
  CHECK(answer["sections"][0]["title"] == "What held the memory");
  const Json more = cli::answer(served("7b-32xa100"), {{{"/batch/micro_batch", 64}, {"/batch/seq_len", 16384}}, true});
  REQUIRE(more["sections"].size() == 2);
  CHECK(more["sections"][1]["title"] == "What would fit");
}

TEST_CASE("every value of every control is either forecast or refused with a reason, from every framework") {
  for (const char* framework : {"fsdp1", "fsdp2", "ddp", "zero2", "zero3"}) {
    const cli::LiveScenario live(
        scenarios::ScenarioTemplate("7b-32xa100", std::vector<std::string>{"/model/layers=2", std::string("/policy/framework=") + framework}));
    const Json all = live.controls(live.settle({}), {});
    CHECK(all.size() == cli::controls().size());
    for (const Json& one : all) {
      CHECK(one["value"] == one["base"]);
      CHECK_FALSE(option(one, one["value"]).contains("refused"));
      for (const Json& entry : one["options"]) {
        const std::string pointer = one["pointer"];
        if (!entry.contains("refused")) {
          const cli::Settled settled = live.settle({{pointer, entry["value"]}});
          CHECK(scenarios::to_json(settled.scenario).at(Json::json_pointer(pointer)) == entry["value"]);  // spelled as the format spells it
        } else {
          CHECK_FALSE(entry["refused"].get<std::string>().empty());
        }
      }
    }
  }
}

TEST_CASE("a control that the combination leaves no choice says why") {
  const Json answer = cli::answer(served("7b-32xa100"), {});
  CHECK(option(control(answer, "/policy/reshard_after_forward"), false)["refused"].get<std::string>().find("belongs to \"fsdp2\"") != std::string::npos);
  CHECK(option(control(answer, "/recompute/every"), 4)["refused"].get<std::string>().find("every_k") != std::string::npos);
  CHECK_FALSE(option(control(answer, "/policy/backward_prefetch"), "NONE").contains("refused"));
  const Json two = cli::answer(served("7b-32xa100"), asked({{"/policy/framework", "fsdp2"}}));
  CHECK_FALSE(option(control(two, "/policy/reshard_after_forward"), false).contains("refused"));
  CHECK(option(control(two, "/policy/backward_prefetch"), "NONE").contains("refused"));
}

TEST_CASE("a value of the scenario that is no stop of a slider becomes one, in order") {
  const Json answer = cli::answer(served("7b-32xa100", {"/model/layers=2", "/batch/micro_batch=3"}), {});
  const Json& slider = control(answer, "/batch/micro_batch");
  CHECK(slider["options"][2]["value"] == 3);
  CHECK(slider["options"][3]["value"] == 4);
  CHECK(slider["options"].size() == 8);
}

TEST_CASE("what contradicts a leading setting is taken back: the reader's older settings and the scenario's own; the newest never is") {
  const cli::Served base = served("7b-32xa100", {"/model/layers=2", "/policy/backward_prefetch=NONE", "/policy/limit_all_gathers=false"});
  const cli::Settled settled = base.scenario.settle({{"/policy/forward_prefetch", true}, {"/kernels/loss", "fused"}, {"/policy/framework", "fsdp2"}});
  CHECK(settled.scenario.policy.framework == program::Framework::fsdp2);
  CHECK(settled.scenario.kernels.loss == program::Loss::fused);
  std::vector<std::string> back = settled.taken_back;
  std::sort(back.begin(), back.end());
  CHECK(back == std::vector<std::string>{"/policy/backward_prefetch", "/policy/forward_prefetch", "/policy/limit_all_gathers"});
  std::vector<std::string> sets = {"/model/layers=2", "/policy/backward_prefetch=NONE", "/policy/limit_all_gathers=false"};
  sets.insert(sets.end(), settled.sets.begin(), settled.sets.end());
  CHECK(scenarios::read_scenario("7b-32xa100", sets) == settled.scenario);
  CHECK_THROWS_AS((void)base.scenario.settle({{"/policy/framework", "fsdp2"}, {"/policy/backward_prefetch", "BACKWARD_POST"}}), InputError);
  // Leaving the framework again brings back what was the scenario's.
  CHECK(base.scenario.settle({}).scenario.policy.backward_prefetch == program::BackwardPrefetch::none);
}

TEST_CASE("a setting that is asked for twice has its last value") {
  const cli::Settled settled = served("7b-32xa100").scenario.settle({{"/batch/micro_batch", 4}, {"/batch/grad_accum", 2}, {"/batch/micro_batch", 1}});
  CHECK(settled.sets == std::vector<std::string>{"/batch/grad_accum=2", "/batch/micro_batch=1"});
}

TEST_CASE("requests are read strictly") {
  const cli::ForecastRequest request =
      cli::read_request(R"({"settings": [{"pointer": "/batch/micro_batch", "value": 4}, {"pointer": "/host/scale", "value": 1}], "remedies": true})");
  CHECK(request.settings.size() == 2);
  CHECK(request.remedies);
  for (const char* bad :
       {"", "[]", "{", R"({"setting": []})", R"({"settings": {}})", R"({"settings": [1]})", R"({"settings": [{"pointer": "/batch/micro_batch"}]})",
        R"({"settings": [{"value": 4}]})", R"({"settings": [{"pointer": "/batch/micro_batch", "value": 5}]})",
        R"({"settings": [{"pointer": "/batch/micro_batch", "value": "4"}]})", R"({"settings": [{"pointer": "/cluster/node", "value": "/etc/x.json"}]})",
        R"({"settings": [{"pointer": "/batch/micro_batch", "value": 4, "x": 1}]})", R"({"settings": [{"pointer": "/batch/micro_batch", "value": null}]})",
        R"({"remedies": 1})"})
    CHECK_THROWS_AS_MESSAGE((void)cli::read_request(bad), InputError, bad);
}

TEST_CASE("a set text is read back as the value") {
  CHECK(cli::set_text("/a", 4) == "/a=4");
  CHECK(cli::set_text("/a", true) == "/a=true");
  CHECK(cli::set_text("/a", "NONE") == "/a=NONE");
  CHECK(cli::set_text("/a", "2.8") == "/a=\"2.8\"");
  CHECK(cli::set_text("/a", "100 ms") == "/a=100 ms");
  CHECK(cli::shell_word("/a=100 ms") == "'/a=100 ms'");
  CHECK(cli::shell_word("it's") == "'it'\\''s'");
  CHECK(cli::shell_word("") == "''");
}

TEST_CASE("only who opened this server's address may ask") {
  for (const char* host : {"127.0.0.1:8642", "localhost:8642", "LOCALHOST:8642", "[::1]:8642", "192.168.1.7:8642"})
    CHECK_MESSAGE(cli::is_own_host(host, 8642, "127.0.0.1"), host);
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:8643", "evil.example:8642", "localhost.evil.example:8642", "127.0.0.1.evil.example:8642", "1.2.3:8642",
                           ":8642", "localhost:", "localhost:8642x", "[::1]", "[evil]:8642", "...:8642", "1...:8642", "256.1.1.1:8642", "[]:8642", "[.]:8642"})
    CHECK_FALSE_MESSAGE(cli::is_own_host(host, 8642, "127.0.0.1"), host);
  CHECK(cli::is_own_host("build-7.lan:8642", 8642, "build-7.lan"));
  CHECK(cli::is_own_host("localhost", 80, "127.0.0.1"));
  CHECK(http("GET", "/api/forecast").status == 200);
  CHECK(http("GET", "/api/forecast", "", "evil.example:8642").status == 403);
  CHECK(http("POST", "/api/forecast", "{}", "127.0.0.1:8642", "http://127.0.0.1:8642").status == 200);
  CHECK(http("POST", "/api/forecast", "{}", "127.0.0.1:8642", "http://evil.example").status == 403);
  CHECK(http("POST", "/api/forecast", "{}", "127.0.0.1:8642", "null").status == 403);
  CHECK(http("POST", "/api/forecast", "{}", "127.0.0.1:8642", "", "text/plain").status == 415);  // what a form of another page can send
  CHECK(http("POST", "/api/forecast", "{}", "127.0.0.1:8642", "", "application/json; charset=utf-8").status == 200);
}

TEST_CASE("what can't be answered is a status and a line") {
  CHECK(http("GET", "/etc/passwd").status == 404);
  CHECK(http("DELETE", "/api/forecast").status == 405);
  CHECK(http("POST", "/", "{}").status == 405);
  CHECK(http("POST", "/api/forecast", std::string(cli::kMaxRequestBytes + 1, ' ')).status == 413);
  const cli::HttpAnswer unknown = http("POST", "/api/forecast", R"({"settings": [{"pointer": "/batch/micro_bath", "value": 4}]})");
  CHECK(unknown.status == 400);
  CHECK(error_of(unknown) == "request: /settings/0/pointer: \"/batch/micro_bath\" is no control of the page; the answer to GET /api/forecast lists them");
  const cli::HttpAnswer refused = http("POST", "/api/forecast", R"({"settings": [{"pointer": "/policy/reshard_after_forward", "value": false}]})");
  CHECK(refused.status == 400);
  CHECK(error_of(refused) == "--set: /policy/reshard_after_forward: belongs to \"fsdp2\"; for \"fsdp1\" sharding decides: \"FULL_SHARD\" or \"SHARD_GRAD_OP\"");
}

TEST_CASE("the page holds the first answer") {
  const cli::HttpAnswer page = http("GET", "/");
  CHECK(page.status == 200);
  if (web_files().empty()) {
    MESSAGE("skipped: this build has no page");
    CHECK(page.body.empty());
    return;
  }
  CHECK(page.content_type == "text/html; charset=utf-8");
  CHECK(page.body.find("\"schema\":\"stepcast.serve/1\"") != std::string::npos);
  CHECK(page.body.find("connect-src 'self'") != std::string::npos);
  for (const char* place : {"%DATA%", "%CONNECT%", "%NOSCRIPT%", "%SCRIPT_HASH%"}) CHECK(page.body.find(place) == std::string::npos);
}
