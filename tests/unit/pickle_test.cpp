// The pickle reader: what Python's own pickler writes, every way of being cut off or inconsistent, and opcodes that would run code.
// tests/unit/data/snapshot/*.pickle: pickle.dumps of one snapshot with CPython 3.11; snapshot.json is the same as JSON.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "hw_models/input_error.hpp"
#include "memory/history_formats.hpp"
#include "memory/sizes.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using namespace stepcast::memory;
using nlohmann::json;

namespace {

std::string data(const std::string& name) {
  std::ifstream file(test::source_dir() + "/tests/unit/data/snapshot/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A pickle of protocol 4 with the given opcodes, and the end.
template <std::size_t N>
std::string pickle(const char (&opcodes)[N]) {
  return "\x80\x04" + std::string(opcodes, N - 1) + ".";
}

json read(const std::string& bytes) { return read_snapshot_pickle(bytes, "p"); }

std::string refusal(const std::string& bytes) {
  try {
    return "accepted: " + read(bytes).dump();
  } catch (const InputError& error) { return error.what(); }
}

}  // namespace

TEST_CASE("pickles of every protocol give the history that the JSON gives") {
  const History expected = parse_histories(data("snapshot.json"), "j").front();
  CHECK(expected.recorded.size() == 1);
  for (const char* name : {"protocol2.pickle", "protocol4.pickle", "protocol5.pickle"}) {
    const std::string bytes = data(name);
    REQUIRE_MESSAGE(bytes.size() > 500, name);
    const History history = parse_histories(bytes, name).front();
    REQUIRE(history.ops.size() == 1);
    CHECK(history.ops[0].size == 3 * kMiB);
    CHECK(history.recorded.front().counters == expected.recorded.front().counters);
    CHECK(history.warnings == expected.warnings);
    CHECK(!first_difference(history, replay(history, history.settings, kMaxBytes, name)));
  }
}

TEST_CASE("a pickle that is cut off anywhere is refused in one line") {
  for (const char* name : {"protocol2.pickle", "protocol4.pickle"}) {
    const std::string bytes = data(name);
    for (std::size_t size = 1; size < bytes.size(); ++size) {
      const std::string message = refusal(bytes.substr(0, size));
      REQUIRE_MESSAGE(message.substr(0, 7) == "p: byte", size << ": " << message);
      REQUIRE(message.find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("numbers, texts and containers") {
  CHECK(read(pickle("N")) == json(nullptr));
  CHECK(read(pickle("\x88")) == json(true));
  CHECK(read(pickle("K\xff")) == json(255));
  CHECK(read(pickle("M\x01\x02")) == json(513));
  CHECK(read(pickle("J\xfe\xff\xff\xff")) == json(-2));
  CHECK(read(pickle("\x8a\x00")) == json(0));
  CHECK(read(pickle("\x8a\x01\x80")) == json(-128));
  CHECK(read(pickle("\x8a\x06\x00\x00\x00\x00\x00\x7f")) == json(0x7f0000000000));
  CHECK(read(pickle("\x8a\x08\xff\xff\xff\xff\xff\xff\xff\xff")) == json(-1));
  CHECK(read(pickle("G\x3f\xf8\x00\x00\x00\x00\x00\x00")) == json(1.5));
  CHECK(read(pickle("X\x02\x00\x00\x00"
                    "ab")) == json("ab"));
  CHECK(read(pickle("(K\x01K\x02t")) == json({1, 2}));
  CHECK(read(pickle("](K\x01K\x02"
                    "e")) == json({1, 2}));
  CHECK(read(pickle("}\x8c\x01"
                    "aK\x05s")) == json({{"a", 5}}));
  CHECK(read(pickle("(\x8c\x01"
                    "aK\x05"
                    "d")) == json({{"a", 5}}));
  CHECK(read(pickle("]\x94h\x00\x86")) == json({json::array(), json::array()}));  // the memo gives the same list again
  CHECK(read(pickle("K\x01K\x02"
                    "0")) == json(1));
}

TEST_CASE("opcodes that look up or call Python code are refused") {
  const std::string never = "holds Python objects (opcode ";
  // cos\nsystem\n(S'id'\ntR: the classic attack
  CHECK(refusal(pickle("cos\nsystem\n")).find(never + "0x63)") != std::string::npos);
  CHECK(refusal(pickle("\x8c\x02os\x8c\x06system\x93")).find(never + "0x93)") != std::string::npos);
  CHECK(refusal(pickle("K\x01K\x02R")).find(never + "0x52)") != std::string::npos);
  for (const char* opcode : {"b", "i", "o", "P", "Q", "\x81", "\x82", "\x83", "\x84", "\x92"}) {
    CHECK_MESSAGE(refusal("\x80\x04K\x01" + std::string(opcode) + ".").find(never) != std::string::npos, opcode);
  }
  CHECK(refusal(pickle("\xff")) == "p: byte 2: opcode 0xff is not known; write the snapshot with pickle protocol 2 to 5, or as JSON");
}

TEST_CASE("inconsistent pickles are refused") {
  const auto refused = [](const std::string& bytes, const std::string& message) { CHECK(refusal(bytes) == message); };
  refused("\x80\x06N.", "p: byte 0: pickle protocol 6 is not 2 to 5");
  refused(pickle(""), "p: byte 2: the pickle ends with more or less than one value");
  refused(pickle("NN"), "p: byte 4: the pickle ends with more or less than one value");
  refused(pickle("(N"), "p: byte 4: the pickle ends with more or less than one value");
  refused(pickle("N") + "N", "p: byte 3: something follows the end of the pickle");
  refused(pickle("t"), "p: byte 2: the pickle takes a mark that isn't there");
  refused(pickle("a"), "p: byte 2: the pickle takes a value that isn't there");
  refused(pickle("]("
                 "a"),
          "p: byte 4: the pickle takes a value that isn't there");  // not through the mark
  refused(pickle("}Na"), "p: byte 4: appends to what is no list");
  refused(pickle("]NNs"), "p: byte 5: sets an item of what is no dictionary");
  refused(pickle("}(Nu"), "p: byte 5: a dictionary has a key without a value");
  refused(pickle("h\x07"), "p: byte 2: the memo has no entry 7");
  refused(pickle("Nr\xff\xff\xff\xff"), "p: byte 3: the memo is written out of order");
  refused(pickle("\x8a\x09\x01\x02\x03\x04\x05\x06\x07\x08\x09"), "p: byte 2: a whole number of more than 64 bits");
  refused(pickle("G\x7f\xf0\x00\x00\x00\x00\x00\x00"), "p: byte 2: a number that is not finite");
  refused(pickle("\x8d\xff\xff\xff\xff\xff\xff\xff\xff"), "p: byte 2: the pickle is cut off");
}

TEST_CASE("lists that hold each other many times over, or themselves, don't unfold beyond the file's size or the depth that is kept") {
  std::string bytes(
      "\x80\x04]\x94"
      "0",
      5);
  for (int level = 0; level < 4; ++level) {  // each list holds the one before 200 times
    bytes += "](";
    for (int i = 0; i < 200; ++i) bytes += std::string("h") + static_cast<char>(level);
    bytes += std::string(
        "e\x94"
        "0",
        3);
  }
  bytes += std::string("(h\x00h\x01h\x02h\x03h\x04t.", 13);
  CHECK(refusal(bytes).find("unfolds to more values than it has bytes") != std::string::npos);
  // A list that is its own only item: cut at the depth that is kept.
  CHECK(refusal(pickle("]\x94h\x00"
                       "a")) == "accepted: [[[[[null]]]]]");
}
