// Files of allocator traces: what is read, what is refused and where, and the first difference. Format: docs/caching_allocator.md, "Histories".
#include "memory/history.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "hw_models/input_error.hpp"
#include "memory/sizes.hpp"

using namespace stepcast;
using namespace stepcast::memory;
using nlohmann::json;

namespace {

/// 3 MiB on an empty card: a segment of 20 MiB, 17 MiB of it left over.
json traces() {
  return json::parse(R"({
    "fields": ["allocated", "active", "reserved", "inactive_split", "segments", "device_mallocs", "device_frees", "retries", "ooms"],
    "traces": [{"id": "first", "device_bytes": 104857600, "streams": 2, "settings": {},
      "ops": [{"op": "malloc", "id": 0, "size": 3145728, "stream": 0}, {"op": "free", "id": 0}],
      "oom": [],
      "after": [[3145728, 3145728, 20971520, 17825792, 1, 1, 0, 0, 0], [0, 0, 20971520, 0, 1, 1, 0, 0, 0]]}]})");
}

std::vector<History> read(const json& document) { return parse_histories(document.dump(), "t.json"); }

std::optional<Difference> check(const json& document) {
  const std::vector<History> histories = read(document);
  const History& h = histories.front();
  return first_difference(h, replay(h, h.settings, *h.device_bytes, "t.json"));
}

}  // namespace

TEST_CASE("a trace gives its recorded counters") {
  const auto histories = read(traces());
  REQUIRE(histories.size() == 1);
  CHECK(histories[0].id == "first");
  CHECK(histories[0].ops.size() == 2);
  CHECK(histories[0].recorded.size() == 2);
  CHECK(!check(traces()));
}

TEST_CASE("the first difference names operation, field and both values") {
  json document = traces();
  document["traces"][0]["after"][1][2] = 1;
  document["traces"][0]["after"][1][6] = 9;
  const auto difference = check(document);
  REQUIRE(difference);
  CHECK(difference->op == 1);
  CHECK(difference->field == std::string("reserved"));
  CHECK(difference->expected == 1);
  CHECK(difference->got == 20 * kMiB);
}

TEST_CASE("only the fields that the file names are compared, in any order") {
  json document = traces();
  document["fields"] = {"ooms", "reserved"};
  document["traces"][0]["after"] = {{0, 20 * kMiB}, {0, 20 * kMiB}};
  CHECK(!check(document));
  document["traces"][0]["after"][0][0] = 1;
  CHECK(check(document)->field == std::string("ooms"));
}

TEST_CASE("bad traces are refused with file and place") {
  const auto refused = [](const char* pointer, const json& value, const std::string& message) {
    json document = traces();
    document[json::json_pointer(pointer)] = value;
    try {
      read(document);
      FAIL_CHECK(message << ": accepted");
    } catch (const InputError& error) { CHECK(std::string(error.what()).substr(0, message.size()) == message); }
  };
  refused("/traces/0/device_bytes", -1, "t.json: /traces/0/device_bytes: -1 is out of range");
  refused("/traces/0/device_bytes", 1e300, "t.json: /traces/0/device_bytes: ");
  refused("/traces/0/streams", 65, "t.json: /traces/0/streams: 65 is out of range");
  refused("/traces/0/settings/max_split_size", 20 * kMiB, "t.json: /traces/0/settings/max_split_size: 20971520 is out of range");
  refused("/traces/0/settings/roundup_power2_divisions", 3, "t.json: /traces/0/settings/roundup_power2_divisions: must be a power of two");
  refused("/traces/0/settings/max_split_siz", 1, "t.json: /traces/0/settings/max_split_siz: unknown key; did you mean \"max_split_size\"?");
  refused("/traces/0/ops/1/op", "fre", "t.json: /traces/0/ops/1/op: unknown value \"fre\"; did you mean \"free\"?");
  refused("/traces/0/ops/1/stream", 0, "t.json: /traces/0/ops/1/stream: unknown key");
  refused("/traces/0/ops/0/stream", 2, "t.json: /traces/0/ops/0/stream: 2 is out of range");
  refused("/traces/0/ops/0/size", "3 MiB", "t.json: /traces/0/ops/0/size: expected a whole number, found a text");
  refused("/traces/0/ops/0/size", -5, "t.json: /traces/0/ops/0/size: -5 is out of range");
  refused("/traces/0/ops", json::array(), "t.json: /traces/0/ops: is empty");
  refused("/traces/0/oom", {1}, "t.json: /traces/0/oom/0: 1 is not the index of a malloc");
  refused("/traces/0/oom", {7}, "t.json: /traces/0/oom/0: 7 is not the index of a malloc");
  refused("/traces/0/after/1", {1}, "t.json: /traces/0/after/1: expected an array of 9 numbers");
  refused("/traces/0/after/1/3", "x", "t.json: /traces/0/after/1/3: expected a whole number");
  refused("/traces/0/after", json::array({json::array()}), "t.json: /traces/0/after: has 1 entries for 2 operations");
  refused("/fields/0", "alocated", "t.json: /fields: unknown counter \"alocated\"");
  refused("/fields/0", "active", "t.json: /fields: \"active\" is there twice");
  refused("/extra", 1, "t.json: /extra: unknown key");
  refused("/traces", json::object(), "t.json: /traces: expected an array");
  refused("/traces", json::array(), "t.json: holds no operation");
  CHECK_THROWS_AS(parse_histories("{}", "t.json"), InputError);
  CHECK_THROWS_AS(parse_histories("", "t.json"), InputError);
  CHECK_THROWS_AS(parse_histories("[]", "t.json"), InputError);
  CHECK_THROWS_WITH_AS(parse_histories(std::string("PK\3\4", 4), "t.pt"),
                       "t.pt: is an archive of torch.save; give the file that torch.cuda.memory._dump_snapshot writes", InputError);
}

TEST_CASE("operations that contradict each other are refused where they stand") {
  json document = traces();
  document["traces"][0]["ops"][1]["id"] = 4;
  CHECK_THROWS_WITH_AS(check(document), "t.json: /traces/0/ops/1: id 4 is not allocated", InputError);
}
