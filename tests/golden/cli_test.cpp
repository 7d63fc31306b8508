// The built `stepcast` as a user meets it: exit codes, one line on stderr for bad input, nothing left behind, JSON on stdout. docs/commands.md.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.hpp"
#include "support/place.hpp"

namespace fs = std::filesystem;
using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;
using Json = nlohmann::ordered_json;

namespace {

/// A small scenario with fixed costs: 4 blocks on 2 x 4 ranks.
Json small() {
  return Json::parse(R"({
    "model": {"layers": 4},
    "cluster": {"nodes": 2, "gpus_per_node": 4},
    "batch": {"micro_batch": 1, "seq_len": 100},
    "run": {"steps": 4},
    "fixed_costs": {"embedding_forward": "1 ms", "block_forward": "10 ms", "head_forward": "2 ms", "head_backward": "4 ms", "block_backward": "20 ms",
                    "embedding_backward": "1 ms", "optimizer": "5 ms", "all_gather_block": "3 ms", "all_gather_root": "2 ms", "reduce_scatter_block": "3 ms",
                    "reduce_scatter_root": "2 ms"}})");
}

const char* kBuiltIn = "7b-32xa100";

}  // namespace

TEST_CASE("help and version go to standard output with exit code 0") {
  const Place place;
  for (const char* arguments : {"--help", "run --help", "show --help", "check --help", "compare --help", "demo --help", "replay --help", "validate --help",
                                "sweep --help", "--version"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 0, arguments);
    CHECK(!r.out.empty());
    CHECK(r.err.empty());
  }
  CHECK(has(place.run("run --help").out, "stepcast run 7b-32xa100"));
}

TEST_CASE("a command line that isn't understood is exit code 2 and one line") {
  const Place place;
  for (const char* arguments : {"",
                                "frobnicate",
                                "run",
                                "run --nonsense x",
                                "run a b",
                                "compare",
                                "compare 7b-32xa100",
                                "run --model x.json",
                                "run --cluster dgx-a100-4",
                                "run 7b-32xa100 --seed -1",
                                "run 7b-32xa100 --set",
                                "run no-such-scenario",
                                "run no-such-file.json",
                                "run 7b-32xa100 --set nonsense",
                                "run 7b-32xa100 --set /no/such=1",
                                "replay",
                                "replay no-such-file",
                                "replay a b",
                                "run --model no.json --cluster dgx-a100-4",
                                "show --model no.json --cluster dgx-a100-4"}) {
    const Outcome r = place.run(arguments);
    CHECK_MESSAGE(r.code == 2, arguments);
    CHECK_MESSAGE(one_line(r.err), arguments << ": " << r.err);
    CHECK_MESSAGE(r.out.empty(), arguments);
  }
}

TEST_CASE("bad scenarios are exit code 2 with one line that names the file, and leave nothing in --out") {
  const Place place;
  const auto changed = [](const std::string& pointer, const Json& value) {
    Json j = small();
    j[Json::json_pointer(pointer)] = value;
    return j.dump();
  };
  std::string deep = "{\"model\":";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  fs::create_directory(place / "folder.json");
  struct Bad {
    std::string name, text;
  };
  const std::vector<Bad> files = {
      {"unknown-key.json", changed("/batch/micro_bach", 1)},
      {"duplicate-key.json", R"({"batch": {"seq_len": 1, "seq_len": 2}})"},
      {"missing-unit.json", changed("/fixed_costs/optimizer", 5)},
      {"negative.json", changed("/cluster/nodes", -1)},
      {"negative-time.json", changed("/fixed_costs/optimizer", "-5 ms")},
      {"nan.json", R"({"batch": {"seq_len": NaN}})"},
      {"nan-text.json", changed("/fixed_costs/optimizer", "nan ms")},
      {"huge-number.json", changed("/batch/seq_len", 1e30)},
      {"beyond-double.json", R"({"batch": {"seq_len": 1e999}})"},
      {"huge-time.json", changed("/fixed_costs/optimizer", "1e30 s")},
      {"zero-gpus.json", changed("/cluster/gpus_per_node", 0)},
      {"fraction.json", changed("/batch/micro_batch", 1.5)},
      {"heads.json", R"({"model": {"style": "llama", "hidden": 4096, "layers": 2, "heads": 30, "kv_heads": 30, "ffn": 11008, "vocab": 32000},
                         "cluster": {"node": "dgx-a100", "nodes": 1}, "batch": {"seq_len": 2048}})"},
      {"unknown-gpu.json", R"({"model": {"preset": "llama-2-7b"}, "cluster": {"node": "dgx-a100", "gpu": "b100", "nodes": 1}, "batch": {"seq_len": 2048}})"},
      {"empty.json", ""},
      {"blank.json", " \n"},
      {"null.json", "null"},
      {"array.json", "[1, 2]"},
      {"deep.json", deep},
      {"latin1.json", "{\"name\": \"caf\xe9\"}"},
      {"nul.json", std::string("{\0}", 3)},
      {"binary.json", std::string("\x7f"
                                  "ELF\x02\x01\x01\0\0\0\xff\xfe",
                                  12)},
      {"trailing.json", small().dump() + "x"},
      {"cycle.json", R"({"base": "cycle.json"})"},
      {"no-base.json", R"({"base": "not-there.json"})"},
  };
  for (const Bad& bad : files) place.file(bad.name, bad.text);
  std::vector<std::string> names = {"folder.json"};
  for (const Bad& bad : files) names.push_back(bad.name);
  for (const std::string& name : names) {
    for (const std::string& command : {"run " + name + " --out out", "show " + name, "check " + name, "compare " + std::string(kBuiltIn) + " " + name}) {
      const Outcome r = place.run(command);
      CHECK_MESSAGE(r.code == 2, command << " -> " << r.code << " " << r.err);
      CHECK_MESSAGE(one_line(r.err), command << ": " << r.err);
      CHECK_MESSAGE(has(r.err, name == "no-base.json" ? "not-there.json" : name), command << ": " << r.err);
      CHECK_MESSAGE(r.out.empty(), command);
      CHECK_MESSAGE(!fs::exists(place / "out"), command);
    }
  }
}

TEST_CASE("a huge file is refused without reading it all") {
  const Place place;
  const std::string name = place.file("huge.json", "{");
  fs::resize_file(place / name, std::uintmax_t{1} << 32);  // sparse
  const Outcome r = place.run("run huge.json");
  CHECK(r.code == 2);
  CHECK_MESSAGE(one_line(r.err), r.err);
}

TEST_CASE("fixed costs: the step time is what can be summed by hand") {
  const Place place;
  place.file("small.json", small().dump());
  const Outcome r = place.run("run small.json --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(r.err.empty());
  const Json j = Json::parse(r.out);
  // Between two ends of the optimizer: all_gather root 2 (it waits for the optimizer), embedding 1 beside the first block's all_gather of 3 (so 2 more are exposed),
  // 4 x 10 forward, head 2 + 4, 4 x 20 backward (its gathers hidden), embedding 1 beside reduce_scatter of block 0 (3), then the root's (2), optimizer 5.
  CHECK(j["step_time_s"].get<double>() == doctest::Approx(0.001 * (2 + 3 + 40 + 6 + 80 + 3 + 2 + 5)).epsilon(1e-9));
  CHECK(j["tokens_per_s_per_gpu"].get<double>() == doctest::Approx(100 / j["step_time_s"].get<double>()));
  CHECK(j["mfu"].is_null());
  CHECK(j["exposed_comm_s"].get<double>() == doctest::Approx(0.001 * (2 + 2 + 2 + 2)).epsilon(1e-9));
  CHECK(j["ranks"] == 8);
  CHECK(j["collectives"]["all_gather"]["calls"] == 9);      // root, 4 blocks forward, 4 backward
  CHECK(j["collectives"]["reduce_scatter"]["calls"] == 5);  // 4 blocks, root
}

TEST_CASE("run, show, check and compare work on the built-in scenario") {
  const Place place;
  const Outcome run = place.run("run 7b-32xa100 --json");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  const Json report = Json::parse(run.out);
  CHECK(report["outcome"] == "ok");
  CHECK(report["mfu"].get<double>() > 0.2);
  CHECK(report["mfu"].get<double>() < 0.7);
  CHECK(report["mfu_6p"].get<double>() < report["mfu"].get<double>());
  CHECK(report["peak_reserved_bytes"].get<std::int64_t>() >= report["peak_allocated_bytes"].get<std::int64_t>());
  double owners = 0;
  for (const auto& [owner, bytes] : report["memory"].items()) owners += bytes.get<double>();
  CHECK(std::abs(owners / report["peak_allocated_bytes"].get<double>() - 1) < 0.01);  // the allocator rounds up
  // 6 P per token and 2 x 4096 tokens: 6 * 6738415616 * 8192, and 12 * 32 * 4096 * 4096 per token for attention.
  CHECK(report["model_flops_per_step"].get<double>() == doctest::Approx(8192.0 * (6.0 * 6738415616.0 + 12.0 * 32 * 4096 * 4096)));

  const Outcome show = place.run("show 7b-32xa100 --json");
  REQUIRE_MESSAGE(show.code == 0, show.err);
  const Json shown = Json::parse(show.out);
  CHECK(shown["parameters"] == 6738415616);
  CHECK(shown["parameters_per_block"] == 202383360);
  CHECK(shown["units"].size() == 33);
  CHECK(shown["step"]["collectives"]["all_gather"]["calls"] == 65);  // root once, 32 blocks forward and backward

  const Outcome resolved = place.run("show 7b-32xa100 --resolved");
  REQUIRE(resolved.code == 0);
  place.file("resolved.json", resolved.out);
  const Outcome again = place.run("run resolved.json --json");
  REQUIRE_MESSAGE(again.code == 0, again.err);
  CHECK(Json::parse(again.out)["step_time_s"] == report["step_time_s"]);

  const Outcome check = place.run("check 7b-32xa100");
  CHECK_MESSAGE(check.code == 0, check.out);
  CHECK(has(check.out, "clean"));
}

TEST_CASE("compare: scenarios and report files, with the settings and the reasons") {
  const Place place;
  place.file("a.json", small().dump());
  Json slow = small();
  slow["fixed_costs"]["all_gather_block"] = "30 ms";
  place.file("b.json", slow.dump());
  REQUIRE(place.run("run b.json --out saved").code == 0);
  const Outcome text = place.run("compare a.json b.json");
  REQUIRE_MESSAGE(text.code == 0, text.err);
  CHECK(has(text.out, "/fixed_costs/all_gather_block"));
  CHECK(has(text.out, "idle: all_gather"));
  const Outcome r = place.run("compare a.json saved/report.json --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json step = Json::parse(r.out)["differences"][0]["step_time"];
  CHECK(step["parts"][0]["part"] == "idle: all_gather");
  double sum = 0;
  for (const Json& part : step["parts"]) sum += part["delta_s"].get<double>();
  CHECK(sum == doctest::Approx(step["delta_s"].get<double>()));
  CHECK(place.run("compare saved/report.json a.json --set /run/steps=3").code == 2);
}

TEST_CASE("--out: three files and the page, replaced when they are ours, kept when they are not") {
  const Place place;
  place.file("small.json", small().dump());
  const Outcome first = place.run("run small.json --out new/folder");
  REQUIRE_MESSAGE(first.code == 0, first.err);
  for (const char* name : {"report.json", "report.txt", "trace.json.gz"}) CHECK(fs::file_size(place / "new" / "folder" / name) > 100);
  const bool has_page = fs::exists(place / "new" / "folder" / "report.html");
  CHECK(first.err.find("this build has no report page") == (has_page ? std::string::npos : std::size_t{10}));              // behind "stepcast: "
  CHECK(std::distance(fs::directory_iterator(place / "new" / "folder"), fs::directory_iterator{}) == (has_page ? 4 : 3));  // no temporary file is left
  CHECK(place.run("run small.json --out new/folder").code == 0);

  fs::create_directory(place / "mine");
  place.file("mine/report.txt", "my own words");
  const Outcome refused = place.run("run small.json --out mine");
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "report.txt is there and was not written by stepcast"));
  CHECK(read(place / "mine/report.txt") == "my own words");
  CHECK(place.run("run small.json --out mine --force").code == 0);
  CHECK(read(place / "mine/report.txt") != "my own words");

  place.file("file", "x");
  CHECK(place.run("run small.json --out file").code == 2);
  CHECK(place.run("run small.json --out file/below").code == 2);
}

TEST_CASE("out of memory is a result: exit code 4, with the request that failed") {
  const Place place;
  const Outcome r = place.run("run 7b-32xa100 --set /batch/micro_batch=64 --json --out out");
  REQUIRE_MESSAGE(r.code == 4, r.err);
  const Json j = Json::parse(r.out);
  CHECK(j["outcome"] == "out_of_memory");
  CHECK(j["step_time_s"].is_null());
  CHECK(j["out_of_memory"]["requested_bytes"].get<std::int64_t>() > 0);
  CHECK(fs::exists(place / "out/report.json"));
  const Json& oom = j["out_of_memory"];
  CHECK(has(oom["message"], "CUDA out of memory. Tried to allocate "));
  CHECK(oom["by_owner"]["activations"].get<std::int64_t>() > oom["limit_bytes"].get<std::int64_t>() / 2);
  bool fits = false;
  for (const Json& remedy : oom["remedies"]) fits = fits || (remedy["outcome"] == "ok" && remedy["set"][0] == "/batch/micro_batch=2");
  CHECK(fits);
  const std::string text = place.run("run 7b-32xa100 --set /batch/micro_batch=64").out;
  for (const char* part : {"OUT OF MEMORY", "PyTorch would say:", "What held the memory", "What would fit", "/batch/micro_batch=2 /batch/grad_accum=32"})
    CHECK_MESSAGE(has(text, part), part);
}

TEST_CASE("a loader that can't keep up sets the pace, evenly") {
  const Place place;
  const std::string slow = "run 7b-32xa100 --set '/loader/batch_time=30 s' --set /loader/workers=2 --set /loader/prefetch_factor=1";
  const Outcome r = place.run(slow + " --set /run/steps=9 --json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  const Json report = Json::parse(r.out);
  CHECK(report["data_wait_s"].get<double>() > 5);
  CHECK(report["bound"] == "data");
  CHECK(report["step_time_s"].get<double>() == doctest::Approx(15).epsilon(1e-6));  // two workers, 30 s each
  const Json other = Json::parse(place.run(slow + " --set /run/steps=6 --json").out);
  CHECK(other["step_time_s"].get<double>() == doctest::Approx(15).epsilon(1e-6));  // however many steps
}

TEST_CASE("seeds: the first is the report, all of them are listed; without anything to draw they are refused") {
  const Place place;
  const std::string noisy = "run 7b-32xa100 --set /model/layers=2 --set /cluster/nodes=1 --set /run/ranks=explicit --set /run/jitter/rank_speed=0.05 --json";
  const Json one = Json::parse(place.run(noisy + " --seed 3").out), three = Json::parse(place.run(noisy + " --seed 3 --seeds 3").out);
  CHECK(one["step_time_s"] == three["step_time_s"]);
  CHECK(three["seeds"]["first"] == 3);
  REQUIRE(three["seeds"]["step_times_s"].size() == 3);
  CHECK(three["seeds"]["step_times_s"][0] == one["step_time_s"]);
  CHECK(three["seeds"]["step_times_s"][1] == Json::parse(place.run(noisy + " --seed 4").out)["step_time_s"]);
  CHECK(three["seeds"]["step_times_s"][1] != one["step_time_s"]);
  const Outcome refused = place.run("run 7b-32xa100 --seeds 3");
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "nothing is drawn"));
}

TEST_CASE("the same scenario gives the same bytes") {
  const Place place;
  const std::string first = place.run("run 7b-32xa100 --json").out;
  CHECK(first == place.run("run 7b-32xa100 --json").out);
  CHECK(!first.empty());
}

TEST_CASE("demo runs scenarios in order and says where the report of the last one is") {
  const Place place;
  place.file("a.json", small().dump());
  Json slow = small();
  slow["why"] = "Gathers take thirty milliseconds.";
  slow["fixed_costs"]["all_gather_block"] = "30 ms";
  place.file("b.json", slow.dump());
  const Outcome r = place.run("demo a.json b.json");
  REQUIRE_MESSAGE(r.code == 0, r.err);
  CHECK(has(r.out, "Gathers take thirty milliseconds."));
  CHECK(has(r.out, "out/demo/report.txt"));
  CHECK(fs::exists(place / "out/demo/trace.json.gz"));
  CHECK(Json::parse(read(place / "out/demo/report.json"))["scenario"]["name"] == "b");
  const Outcome json = place.run("demo a.json b.json --json");
  REQUIRE(json.code == 0);
  CHECK(Json::parse(json.out)["stages"].size() == 2);
}

TEST_CASE("a full disk or a closed pipe is exit code 3, told in one line") {
  const Place place;
  place.file("small.json", small().dump());
  if (!fs::exists("/dev/full")) return;
  const std::string command = "cd '" + (place / ".").string() + "' && '" + stepcast::test::binary() + "' run small.json --json >/dev/full 2>.err";
  const int status = std::system(command.c_str());
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(one_line(read(place / ".err")));
}
