// A pickle as plain data. The pickle machine has a stack, a memo and opcodes; the ones here build values and nothing else, so that no file can run anything.
// Opcodes: CPython, Lib/pickletools.py, protocols 2 to 5. Tests: tests/unit/pickle_test.cpp; fuzzed by tests/fuzz/history.cpp.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "hw_models/input_error.hpp"
#include "hw_models/strict_json.hpp"
#include "hw_models/text_file.hpp"
#include "memory/history_formats.hpp"

namespace stepcast::memory {
namespace {

constexpr std::size_t kMaxContainers = std::size_t{1} << 25;
constexpr int kMaxDepth = 5;  // of the containers that are kept: a block of a segment is the deepest

struct Value {
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, list, dict };
  Kind kind = Kind::null;
  std::uint32_t index = 0;  // list, dict: container; text: its length
  union {
    std::int64_t integer = 0;
    double real;
    const char* text;  // into the file
  };
};

Value integer_value(std::int64_t number, Value::Kind kind = Value::Kind::integer) {
  Value value;
  value.kind = kind;
  value.integer = number;
  return value;
}

class Machine {
 public:
  Machine(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  Value run() {
    while (at_ < bytes_.size()) {
      start_ = at_;
      const auto opcode = static_cast<std::uint8_t>(bytes_[at_++]);
      if (opcode == '.') {
        if (at_ != bytes_.size()) fail("something follows the end of the pickle");
        if (marks_.empty() && stack_.size() == 1) return stack_.back();
        fail("the pickle ends with more or less than one value");
      }
      if (!scalar(opcode) && !container(opcode) && !bookkeeping(opcode)) refuse(opcode);
    }
    start_ = at_;
    fail("the pickle is cut off");
  }

  /// Containers past the depth, and stack frames, become null. A container that is named many times is written out each time: `left_` keeps that within the file's size,
  /// which is enough for whatever is not shared.
  Json json_of(const Value& value, int depth) {
    if (left_-- == 0) throw InputError(file_, "", "the pickle unfolds to more values than it has bytes");
    switch (value.kind) {
      case Value::Kind::null: return nullptr;
      case Value::Kind::boolean: return value.integer != 0;
      case Value::Kind::integer: return value.integer;
      case Value::Kind::real: return value.real;
      case Value::Kind::text: return std::string(value.text, value.index);
      case Value::Kind::list: return depth == kMaxDepth ? Json(nullptr) : list_json(containers_[value.index], depth);
      case Value::Kind::dict: return depth == kMaxDepth ? Json(nullptr) : dict_json(containers_[value.index], depth);
    }
    return nullptr;
  }

 private:
  using Container = std::vector<Value>;  // of a dict: key, value, key, value ...

  Json list_json(const Container& items, int depth) {
    Json json = Json::array();
    for (const Value& item : items) json.push_back(json_of(item, depth + 1));
    return json;
  }

  Json dict_json(const Container& items, int depth) {
    Json json = Json::object();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].kind != Value::Kind::text) continue;  // PyTorch's keys are texts; what has another key isn't looked for
      const std::string_view key(items[i].text, items[i].index);
      if (key == "frames" || key == "history") continue;
      json[std::string(key)] = json_of(items[i + 1], depth + 1);
    }
    return json;
  }

  [[noreturn]] void fail(const std::string& what, const std::string& hint = "") const { throw InputError(file_, "byte " + std::to_string(start_), what, hint); }

  [[noreturn]] void refuse(std::uint8_t opcode) const {
    static constexpr std::string_view kCode = "cRbioPQ\x81\x82\x83\x84\x92\x93";  // GLOBAL, REDUCE, BUILD, INST, OBJ, PERSID, NEWOBJ, EXT, STACK_GLOBAL
    const std::string_view shown(bytes_.substr(start_, 1));
    char name[8];
    std::snprintf(name, sizeof name, "0x%02x", opcode);
    if (kCode.find(shown[0]) != std::string_view::npos) {
      fail(std::string("the pickle holds Python objects (opcode ") + name + "), which are never loaded",
           "dump plain data: json.dump(torch.cuda.memory._snapshot(), file)");
    }
    fail(std::string("opcode ") + name + " is not known", "write the snapshot with pickle protocol 2 to 5, or as JSON");
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the pickle is cut off");
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  /// A little-endian number of `width` bytes, at most 8.
  std::uint64_t number(std::size_t width) {
    const std::string_view part = take(width);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{static_cast<std::uint8_t>(part[i])} << (8 * i);
    return value;
  }
  /// The same in two's complement.
  std::int64_t signed_number(std::size_t width) {
    const std::uint64_t value = number(width);
    if (width == 0 || width == 8) return static_cast<std::int64_t>(value);
    const std::uint64_t sign = std::uint64_t{1} << (8 * width - 1);
    return static_cast<std::int64_t>((value ^ sign) - sign);
  }

  bool push(const Value& value) {
    stack_.push_back(value);
    return true;
  }
  bool push_long(std::uint64_t width) {
    if (width > 8) fail("a whole number of more than 64 bits");
    return push(integer_value(signed_number(static_cast<std::size_t>(width))));
  }
  bool push_text(std::uint64_t length) {
    const std::string_view text = take(length);
    if (text.size() > UINT32_MAX) fail("a text of more than 4 GiB");
    Value value;
    value.kind = Value::Kind::text;
    value.index = static_cast<std::uint32_t>(text.size());
    value.text = text.data();
    return push(value);
  }
  bool push_real() {
    const std::string_view part = take(8);  // big-endian
    std::uint64_t bits = 0;
    for (const char c : part) bits = bits << 8 | static_cast<std::uint8_t>(c);
    Value value;
    value.kind = Value::Kind::real;
    value.real = std::bit_cast<double>(bits);
    if (!std::isfinite(value.real)) fail("a number that is not finite");
    return push(value);
  }
  bool push_container(Value::Kind kind, Container items = {}) {
    if (containers_.size() == kMaxContainers) fail("the pickle has more than 32 million lists and dictionaries");
    containers_.push_back(std::move(items));
    Value value;
    value.kind = kind;
    value.index = static_cast<std::uint32_t>(containers_.size() - 1);
    return push(value);
  }

  bool scalar(std::uint8_t opcode) {
    switch (opcode) {
      case 'N': return push({});
      case 0x88: return push(integer_value(1, Value::Kind::boolean));
      case 0x89: return push(integer_value(0, Value::Kind::boolean));
      case 'K': return push(integer_value(static_cast<std::int64_t>(number(1))));
      case 'M': return push(integer_value(static_cast<std::int64_t>(number(2))));
      case 'J': return push(integer_value(signed_number(4)));
      case 0x8a: return push_long(number(1));
      case 0x8b: return push_long(number(4));
      case 'G': return push_real();
      case 0x8c:
      case 'U':
      case 'C': return push_text(number(1));
      case 'X':
      case 'T':
      case 'B': return push_text(number(4));
      case 0x8d:
      case 0x8e: return push_text(number(8));
      default: return false;
    }
  }

  bool container(std::uint8_t opcode) {
    switch (opcode) {
      case '}': return push_container(Value::Kind::dict);
      case ']':
      case ')': return push_container(Value::Kind::list);
      case 'd': return push_container(Value::Kind::dict, pairs(popped_to_mark()));
      case 'l':
      case 't': {
        Container items = popped_to_mark();
        return push_container(Value::Kind::list, std::move(items));
      }
      case 0x85: return tuple(1);
      case 0x86: return tuple(2);
      case 0x87: return tuple(3);
      case 'a': return extend(Value::Kind::list, popped(1));
      case 'e': return extend(Value::Kind::list, popped_to_mark());
      case 's': return extend(Value::Kind::dict, popped(2));
      case 'u': return extend(Value::Kind::dict, pairs(popped_to_mark()));
      default: return false;
    }
  }

  bool bookkeeping(std::uint8_t opcode) {
    switch (opcode) {
      case 0x80:
        if (const std::uint64_t protocol = number(1); protocol < 2 || protocol > 5) fail("pickle protocol " + std::to_string(protocol) + " is not 2 to 5");
        return true;
      case 0x95: number(8); return true;  // FRAME: a hint for reading
      case '(': marks_.push_back(stack_.size()); return true;
      case '0':
        if (!marks_.empty() && marks_.back() == stack_.size()) marks_.pop_back();
        else popped(1);
        return true;
      case '1': popped_to_mark(); return true;
      case '2': return push(top());
      case 0x94: memo_.push_back(top()); return true;
      case 'q': return store(number(1));
      case 'r': return store(number(4));
      case 'h': return load(number(1));
      case 'j': return load(number(4));
      default: return false;
    }
  }

  const Value& top() const {
    if (stack_.size() <= floor()) fail("the pickle takes a value that isn't there");
    return stack_.back();
  }
  /// Values below the innermost mark can't be reached.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Container popped(std::size_t count) {
    if (stack_.size() - floor() < count) fail("the pickle takes a value that isn't there");
    Container items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  Container popped_to_mark() {
    if (marks_.empty()) fail("the pickle takes a mark that isn't there");
    Container items = popped(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  Container pairs(Container items) const {
    if (items.size() % 2 != 0) fail("a dictionary has a key without a value");
    return items;
  }
  bool tuple(std::size_t count) { return push_container(Value::Kind::list, popped(count)); }
  bool extend(Value::Kind kind, const Container& items) {
    if (top().kind != kind) fail(kind == Value::Kind::list ? "appends to what is no list" : "sets an item of what is no dictionary");
    Container& into = containers_[top().index];
    into.insert(into.end(), items.begin(), items.end());
    return true;
  }
  bool store(std::uint64_t index) {
    if (index > memo_.size()) fail("the memo is written out of order");
    if (index == memo_.size()) memo_.push_back(top());
    else memo_[index] = top();
    return true;
  }
  bool load(std::uint64_t index) {
    if (index >= memo_.size()) fail("the memo has no entry " + std::to_string(index));
    return push(memo_[index]);
  }

  std::string_view bytes_;
  const std::string& file_;
  std::size_t at_ = 0, start_ = 0;  // next byte; first byte of the current opcode
  std::vector<Value> stack_, memo_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<Container> containers_;
  std::size_t left_ = bytes_.size();
};

}  // namespace

Json read_snapshot_pickle(std::string_view bytes, const std::string& file) {
  Machine machine(bytes, file);
  const Value root = machine.run();
  return machine.json_of(root, 0);
}

}  // namespace stepcast::memory
