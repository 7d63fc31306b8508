// Exact decimals, escapes, nesting, and what is not JSON. docs/diagnose.md, "What is read".
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "trace/profile/raw_event.hpp"
#include "trace/profile/scan.hpp"

using namespace stepcast::trace::profile;

namespace {

std::optional<std::int64_t> thousandths(const char* text) { return thousandths_of({text, Value::Kind::scalar}); }

/// The event's values are pieces of the text, which must outlive it.
Scan scan(std::string_view text, RawEvent& event) {
  Cursor in{text.data(), text.data() + text.size()};
  return scan_event(in, event);
}

}  // namespace

TEST_CASE("decimal text becomes thousandths, exactly") {
  CHECK(thousandths("12.345") == 12345);
  CHECK(thousandths("1679026513910141") == 1679026513910141000);
  CHECK(thousandths("4458677009853.422") == 4458677009853422);
  CHECK(thousandths("-0.5") == -500);
  CHECK(thousandths("7.") == 7000);
  CHECK(thousandths("0.0004") == 0);
  CHECK(thousandths("0.0005") == 1);
  CHECK(thousandths("1.5e3") == 1500000);
  for (const char* wrong : {"", "-", "NaN", "Infinity", "12x", "1.2.3", "99999999999999999999", "1e300", "null"}) CHECK_FALSE(thousandths(wrong));
  CHECK(thousandths_of({"12.5", Value::Kind::string}) == 12500);
  CHECK_FALSE(thousandths_of({"[1]", Value::Kind::container}));
}

TEST_CASE("whole numbers only") {
  CHECK(integer_of({"42", Value::Kind::scalar}) == 42);
  CHECK(integer_of({"-1", Value::Kind::string}) == -1);
  CHECK_FALSE(integer_of({"4.0", Value::Kind::scalar}));
  CHECK_FALSE(integer_of({"10159970886766084423", Value::Kind::scalar}));
  CHECK_FALSE(integer_of({}));
}

TEST_CASE("escapes of strings") {
  CHECK(unescaped(R"(a\"b\\c\n\/)") == "a\"b\\c\n/");
  CHECK(unescaped(R"(\u0041\u00e9\u20ac)") == "A\xc3\xa9\xe2\x82\xac");
  CHECK(unescaped(R"(\ud83d\ude00)") == "\xf0\x9f\x98\x80");
  CHECK(unescaped(R"(\ud83d)") == "\xef\xbf\xbd");
  CHECK(unescaped(R"(\x \u12)") == R"(\x \u12)");
}

TEST_CASE("an event: known fields in any order, unknown ones skipped, a trailing comma let pass") {
  RawEvent event;
  CHECK(scan(R"({"args":{"grid":[1,2,{"a":"]}"}],"stream":7,"correlation":5,},"dur":2,"name":"k\"x","ts":NaN,"ph":"X","x":{"ph":"B"},})", event) == Scan::ok);
  CHECK(event.phase.text == "X");
  CHECK(event.name.text == R"(k\"x)");
  CHECK(event.begin.text == "NaN");
  CHECK(event.arguments.stream.text == "7");
  CHECK(event.arguments.correlation.text == "5");
  CHECK(event.category.kind == Value::Kind::absent);
}

TEST_CASE("every proper beginning of an event asks for more, and faults are told") {
  const std::string whole = R"({"ph":"X","ts":1.5,"args":{"Call stack":"a\\b;c","Input Dims":[[1,2],[]]},"name":"n"})";
  for (std::size_t i = 1; i < whole.size(); ++i) {
    RawEvent event;
    CHECK_MESSAGE(scan(whole.substr(0, i), event) == Scan::more, whole.substr(0, i));
  }
  for (const char* wrong : {R"({"a" 1})", "{1:2}", R"({"a":})", R"({"a":,"b":1})", R"({]})"}) {
    RawEvent event;
    CHECK_MESSAGE(scan(wrong, event) == Scan::broken, wrong);
  }
}
