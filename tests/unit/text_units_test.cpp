// Quantities as text: values by hand, refusals, and that the shortest text reads back to the same bits.
#include "hw_models/text_units.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

using namespace stepcast;

TEST_CASE("units are case-sensitive and B is eight b") {
  CHECK(parse_quantity<BytesPerSecond>("25 GB/s").si() == 25e9);
  CHECK(parse_quantity<BytesPerSecond>("200 Gb/s").si() == 25e9);
  CHECK(parse_quantity<BytesPerSecond>("1600 Gb/s").si() == 200e9);
  CHECK(parse_quantity<Seconds>("8 us").si() == 8e-6);
  CHECK(parse_quantity<Seconds>("10.7us").si() == 10.7e-6);
  CHECK(parse_quantity<FlopsPerSecond>("312 TFLOP/s").si() == 312e12);
  CHECK(parse_quantity<PerSecond>("1410 MHz").si() == 1410e6);
  CHECK(parse_quantity<Bytes>("80 GiB").si() == 80 * 1073741824.0);
  CHECK(parse_quantity<Seconds>("-1 ms").si() == -1e-3);
}

TEST_CASE("what is not a quantity is refused") {
  for (const char* text : {"",      " ",      "8",       "us",        "8  us",  "8 US",     "8 us ",   " 8 us", "8 GB", "nan s",
                           "inf s", "-inf s", "1e999 s", "1e308 s x", "0x10 s", "1,000 us", "8 us us", "--1 s", "+1 s", "8 \xc2\xb5s"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_quantity<Seconds>(text), UnitError);
  }
  CHECK_THROWS_AS(parse_quantity<FlopsPerSecond>("1e308 TFLOP/s"), UnitError);
  CHECK_THROWS_WITH_AS(parse_quantity<Seconds>("8"), "\"8\" has no unit (units: ps, ns, us, ms, s)", UnitError);
  CHECK_THROWS_WITH_AS(parse_quantity<BytesPerSecond>("25 Gbps"), doctest::Contains("has an unknown unit (units: B/s"), UnitError);
}

TEST_CASE("sizes are whole bytes") {
  CHECK(parse_bytes("512 MiB") == 536870912);
  CHECK(parse_bytes("0 B") == 0);
  CHECK(parse_bytes("1.5 GiB") == 1610612736);
  CHECK(parse_bytes("79.2 GiB") == 85040352461);  // 85040352460.8 rounded
  for (const char* text : {"0.5 B", "-1 GiB", "1e30 GiB", "9000 TiB", "512", "512 mib", "4 GB/s"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_bytes(text), UnitError);
  }
}

TEST_CASE("shortest text") {
  CHECK(quantity_text(25 * GBps) == "25 GB/s");
  CHECK(quantity_text(25 * GBps, "Gb/s") == "200 Gb/s");
  CHECK(quantity_text(Seconds(8e-6)) == "8 us");
  CHECK(quantity_text(Seconds(0)) == "0 s");
  CHECK(quantity_text(Seconds(1.5)) == "1.5 s");
  CHECK(quantity_text(Seconds(0.0105)) == "10.5 ms");
  CHECK(quantity_text(FlopsPerSecond(312e12)) == "312 TFLOP/s");
  CHECK(bytes_text(536870912) == "512 MiB");
  CHECK(bytes_text(80000000000) == "80 GB");
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1025) == "1025 B");
}

TEST_CASE("text reads back to the same bits") {
  std::uint64_t state = 42;
  for (std::size_t i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const double mantissa = static_cast<double>(state >> 11) / 9007199254740992.0;
    const double value = mantissa * std::array{1e-12, 1e-6, 1.0, 1e3, 1e9, 1e15}[i % 6];
    CHECK(parse_si(si_text(value, Dimension::time), Dimension::time) == value);
    CHECK(parse_si(si_text(value, Dimension::rate), Dimension::rate) == value);
    const auto bytes = static_cast<std::int64_t>(state >> 12 >> (i % 50));
    CHECK(parse_bytes(bytes_text(bytes)) == bytes);
  }
}
