// Who waits for whom, by hand. docs/diagnose.md, "Across ranks".
#include <doctest/doctest.h>

#include "support/profile_json.hpp"
#include "support/profile_time.hpp"
#include "trace/profile/across_ranks.hpp"

using stepcast::test::us;
using namespace stepcast::trace::profile;

namespace {

RankSummary rank(std::int64_t number, Spans spans, Time step) { return {number, {{"ProfilerStep#1", {us(0), step}}}, {{"allreduce", std::move(spans)}}}; }

}  // namespace

TEST_CASE("the rank that comes last waits least") {
  const AcrossRanks a = compare_ranks({rank(1, {{us(50), us(60)}, {us(150), us(160)}}, us(200)), rank(0, {{us(0), us(60)}, {us(100), us(160)}}, us(190))});
  CHECK(a.ranks == std::vector<std::int64_t>{0, 1});
  const MatchedCollectives& c = a.collectives.at("allreduce");
  CHECK(c.matched == 2);
  CHECK(c.transfer == us(20));
  CHECK(c.ranks.at(0).wait == us(100));
  CHECK(c.ranks.at(1).wait == us(0));
  CHECK(c.ranks.at(1).last_to_arrive == 2);
  CHECK(c.least_waiting_rank == 1);
  CHECK(c.start_skew_max == us(50));
  CHECK(c.end_skew_max == us(0));
  CHECK(a.clock_offsets.empty());
  REQUIRE(a.steps.size() == 1);
  CHECK(a.steps[0].slowest == 1);
}

TEST_CASE("counts that differ are matched from the end") {
  const AcrossRanks a = compare_ranks({rank(0, {{us(0), us(5)}, {us(100), us(110)}}, us(1)), rank(1, {{us(105), us(110)}}, us(1))});
  const MatchedCollectives& c = a.collectives.at("allreduce");
  CHECK(c.matched == 1);
  CHECK(c.from_end);
  CHECK(c.ranks.at(0).count == 2);
  CHECK(c.ranks.at(0).wait == us(5));
}

TEST_CASE("clocks that are far apart are aligned by the ends of collectives") {
  const AcrossRanks a =
      compare_ranks({rank(0, {{us(0), us(60)}}, us(1)), rank(1, {{us(5'000'050), us(5'000'060)}}, us(1)), rank(2, {{us(10), us(60)}}, us(1))});
  CHECK(a.clock_offsets.at(1) == us(5'000'000));
  CHECK(a.collectives.at("allreduce").start_skew_max == us(50));
  CHECK(a.collectives.at("allreduce").ranks.at(1).last_to_arrive == 1);
}

TEST_CASE("files that claim one rank are told apart by their places; one rank alone is compared with nobody") {
  CHECK(compare_ranks({rank(0, {}, us(1)), rank(0, {}, us(1))}).ranks == std::vector<std::int64_t>{0, 1});
  CHECK(compare_ranks({rank(3, {{us(0), us(1)}}, us(1))}).collectives.empty());
  CHECK(compare_ranks({}).ranks.empty());
}

TEST_CASE("several devices in one file are several ranks") {
  const auto collective = [](int device, double ts, double dur) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"ncclAllReduce","pid":{0},"tid":20,"ts":{1},"dur":{2},"args":{{"device":{0},"stream":20,"correlation":{0}}}}})",
        device, ts, dur);
  };
  const Profile p = stepcast::test::ProfileJson()
                        .range("ProfilerStep#1", 0, 100)
                        .raw(collective(0, 0, 60))
                        .raw(collective(1, 50, 10))
                        .read("\"distributedInfo\":{\"rank\":8},");
  const auto summaries = summaries_of(p, 0);
  REQUIRE(summaries.size() == 2);
  CHECK(summaries[0].steps.empty());
  const AcrossRanks a = compare_ranks(summaries);
  CHECK(a.ranks == std::vector<std::int64_t>{8, 9});
  CHECK(a.collectives.at("allreduce").least_waiting_rank == 9);
  CHECK(summaries_of(stepcast::test::ProfileJson().range("ProfilerStep#1", 0, 100).read(), 5).at(0).rank == 5);
}
