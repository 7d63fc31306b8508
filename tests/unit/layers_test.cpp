// Base files, merge patches and --set: what wins, which file an error names, and chains that cannot be followed.
#include "scenarios/layers.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "hw_models/input_error.hpp"
#include "scenarios/scenario.hpp"

using namespace stepcast;
using namespace stepcast::scenarios;

namespace {

/// A folder of its own that goes away again.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("stepcast-layers-" + std::to_string(std::random_device{}()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

std::string refusal_of_file(const std::string& path, const std::vector<std::string>& sets = {}) {
  try {
    read_scenario(path, sets);
  } catch (const InputError& error) { return error.what(); }
  return "(nothing was refused)";
}

const std::string kRoot = R"({"why": "root's reason", "model": {"preset": "llama-2-7b"}, "cluster": {"node": "dgx-a100", "nodes": 4},
  "batch": {"seq_len": 4096, "micro_batch": 2}, "policy": {"forward_prefetch": true}})";

}  // namespace

TEST_CASE("a variant is a merge patch on its base") {
  const Folder folder;
  folder.write("root.json", kRoot);
  folder.write("sub/middle.json", R"({"base": "../root.json", "batch": {"micro_batch": 4}, "policy": {"forward_prefetch": null}})");
  const std::string leaf = folder.write("leaf.json", R"({"base": "sub/middle.json", "why": "leaf's reason", "batch": {"grad_accum": 8}})");
  const Scenario scenario = read_scenario(leaf);
  CHECK(scenario.name == "leaf");
  CHECK(scenario.why == "leaf's reason");
  CHECK(scenario.batch.seq_len == 4096);
  CHECK(scenario.batch.micro_batch == 4);
  CHECK(scenario.batch.grad_accum == 8);
  CHECK_FALSE(scenario.policy.forward_prefetch);                         // null: back to the default
  CHECK(read_scenario(folder.path() + "/sub/middle.json").why.empty());  // a reason is not inherited
}

TEST_CASE("a built-in scenario can be a base") {
  const Folder folder;
  const std::string path = folder.write("mine.json", R"({"base": "7b-32xa100", "batch": {"micro_batch": 1}})");
  CHECK(read_scenario(path).batch.micro_batch == 1);
  CHECK(read_scenario(path).batch.seq_len == 4096);
}

TEST_CASE("--set comes last and in order") {
  const Folder folder;
  const std::string path = folder.write("s.json", kRoot);
  const std::vector<std::string> sets = {"/batch/micro_batch=3", "/batch/micro_batch=5", "/name=x=y", "/why=\"quoted\"", "/model/name=[7]"};
  CHECK(refusal_of_file(path, sets) == "--set: /model/name: expected a text, found an array");
  const Scenario scenario = read_scenario(path, std::vector<std::string>(sets.begin(), sets.end() - 1));
  CHECK(scenario.batch.micro_batch == 5);
  CHECK(scenario.name == "x=y");
  CHECK(scenario.why == "quoted");
}

TEST_CASE("--set: a word that looks like a number, true or false is a text where the key wants one") {
  const auto read = [](const std::vector<std::string>& sets) { return read_scenario("7b-32xa100", sets); };
  CHECK(read({"/policy/release=2.8"}).policy.release == program::Release::from_2_8);
  CHECK(read({"/policy/release=\"2.8\""}).policy.release == program::Release::from_2_8);
  CHECK(read({"/name=2.10"}).name == "2.10");  // as it was written
  CHECK(read({"/name=1e3"}).name == "1e3");
  CHECK(read({"/name=true", "/why=-5"}).name == "true");
  CHECK(read({"/name=7", "/name=eight"}).name == "eight");
  CHECK(read({"/name=7", "/name=8"}).name == "8");
  CHECK(read({"/cluster/nodes=2"}).cluster.nodes == 2);
  CHECK_THROWS_AS(read({"/policy/release=2.9"}), InputError);         // no such release
  CHECK_THROWS_AS(read({"/policy={\"release\": 2.8}"}), InputError);  // JSON says what it is
  CHECK_THROWS_AS(read({"/name=[7]"}), InputError);
  CHECK_THROWS_AS(read({"/cluster/nodes=\"2\""}), InputError);  // a text is no number
  CHECK_THROWS_AS(read_scenario_text(R"({"base": "7b-32xa100", "policy": {"release": 2.8}})", "s.json", {}), InputError);
}

TEST_CASE("errors name the file that the value came from") {
  const Folder folder;
  const std::string root =
      folder.write("root.json", R"({"model": {"preset": "llama-2-7b", "layrs": 3}, "cluster": {"node": "dgx-a100", "nodes": 4}, "batch": {"seq_len": 4096}})");
  const std::string leaf = folder.write("leaf.json", R"({"base": "root.json", "batch": {"micro_batch": 0}})");
  CHECK(refusal_of_file(leaf) == (std::filesystem::path(folder.path()) / "root.json").string() + ": /model/layrs: unknown key; did you mean \"layers\"?");
  folder.write("root.json", kRoot);
  CHECK(refusal_of_file(leaf).find(leaf + ": /batch/micro_batch: 0 is out of range") == 0);
  CHECK(refusal_of_file(leaf, {"/batch/micro_batch=-1"}).find("--set: /batch/micro_batch: -1 is out of range") == 0);
}

TEST_CASE("chains that cannot be followed") {
  const Folder folder;
  const std::string a = folder.write("a.json", R"({"base": "b.json"})");
  folder.write("b.json", R"({"base": "a.json"})");
  CHECK(refusal_of_file(a).find("the chain of base files is a circle") != std::string::npos);
  const std::string self = folder.write("self.json", R"({"base": "./self.json"})");
  CHECK(refusal_of_file(self).find("the chain of base files is a circle") != std::string::npos);
  for (int i = 0; i < 20; ++i) folder.write("c" + std::to_string(i) + ".json", R"({"base": "c)" + std::to_string(i + 1) + ".json\"}");
  CHECK(refusal_of_file(folder.path() + "/c0.json").find("longer than 16") != std::string::npos);
  CHECK(refusal_of_file(folder.write("missing.json", R"({"base": "nowhere.json"})")).find("nowhere.json: cannot be opened") != std::string::npos);
  CHECK(refusal_of_file(folder.write("unknown.json", R"({"base": "7b-32xa10"})")).find("/base: no scenario \"7b-32xa10\"; did you mean the built-in") !=
        std::string::npos);
  CHECK(refusal_of_file(folder.write("number.json", R"({"base": 3})")).find("/base: expected a text, found a number") != std::string::npos);
  CHECK(refusal_of_file(folder.write("folder.json", R"({"base": "./"})")).find("is a directory") != std::string::npos);
  CHECK(refusal_of_file(folder.path()).find("is a directory") != std::string::npos);
  CHECK(refusal_of_file(folder.write("empty.json", "")).find("is empty") != std::string::npos);
  CHECK(refusal_of_file(folder.write("huge.json", std::string(5 << 20, ' '))).find("is larger than the limit") != std::string::npos);
  CHECK(refusal_of_file("") == "scenario: no scenario \"\"; give the path of a file, or a built-in scenario's name");
}

TEST_CASE("malformed --set") {
  for (const char* set : {"", "=", "x=1", "/batch/micro_batch", "batch/micro_batch=1"}) {
    CAPTURE(set);
    CHECK_THROWS_WITH_AS(read_scenario("7b-32xa100", std::vector<std::string>{set}), doctest::Contains("is not of the form /json/pointer=value"), InputError);
  }
  CHECK(refusal_of_file("7b-32xa100", {"/=1"}).find("--set: /: unknown key") == 0);
  CHECK(refusal_of_file("7b-32xa100", {"/base=x"}) == "--set: /base: can only be given in a file");
  CHECK(refusal_of_file("7b-32xa100", {"/name/x=1"}) == "--set: /name: expected a text, found an object");
  CHECK(refusal_of_file("7b-32xa100", {"/a~1b~0=1"}).find("--set: /a~1b~0: unknown key") == 0);
  CHECK(refusal_of_file("7b-32xa100", {"/name=\xff"}) == "--set: \"/name=?\" is not UTF-8");
  CHECK_NOTHROW(to_json_text(read_scenario_text(kRoot, "\xff\n.json")));
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "/x";
  CHECK(refusal_of_file("7b-32xa100", {deep + "=1"}) == "--set: the pointer has too many parts");
}
