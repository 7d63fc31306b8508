// nccl-tests logs and JSON: every layout of lines, what is inferred, and all public logs that lie beside the source tree (skipped where they are absent).
#include "calibration/nccl_log.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "calibration/nccl_json.hpp"
#include "calibration/read_measurements.hpp"
#include "hw_models/input_error.hpp"
#include "model/csv_table.hpp"
#include "support/paths.hpp"

using namespace stepcast;
using namespace stepcast::calibration;

namespace {

// Two nodes of two; busbw / algbw is 1.5 = 2 (4 - 1) / 4.
const std::string kRanks =
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid     11 on alpha device  0 [0000:0f:00] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  1 Group  0 Pid     12 on alpha device  1 [0000:15:00] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  2 Group  0 Pid     13 on beta device  0 [0000:0f:00] NVIDIA A100-SXM4-80GB\n"
    "#  Rank  3 Group  0 Pid     14 on beta device  1 [0000:15:00] NVIDIA A100-SXM4-80GB\n";
const std::string kHeader =
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n";
const std::string kRow = "    67108864      16777216     float     sum      -1   1000.0   67.11  100.66      0   1010.0   66.44   99.67      0\n";

MeasurementFile parsed(const std::string& text, const std::string& file = "run.log") { return nccl_measurements(parse_nccl_log(text), file); }

std::string prefixed(const std::string& text, const std::string& prefix) {
  std::istringstream lines(text);
  std::string line, result;
  while (std::getline(lines, line)) result += prefix + line + "\n";
  return result;
}

}  // namespace

TEST_CASE("A log of 2.13: collective by its columns and bandwidths, ranks by host, both placements") {
  const MeasurementFile file = parsed(kRanks + kHeader + kRow);
  REQUIRE(file.rows.size() == 2);
  const Measurement& row = file.rows[0];
  CHECK(row.timed == Timed::collective);
  CHECK(row.collective.kind == hw::CollectiveKind::all_reduce);
  CHECK(row.collective.group == hw::GroupShape{2, 2});
  CHECK(row.collective.bytes == 67108864);
  CHECK(row.time.in(microsecond) == doctest::Approx(1000));
  CHECK(file.rows[1].time.in(microsecond) == doctest::Approx(1010));
  CHECK(row.gpu == "NVIDIA A100-SXM4-80GB");
  CHECK(row.line == 9);
  CHECK(file.lines_without_data == 8);
}

TEST_CASE("Prefixes of mpirun, srun and kubectl, with NCCL's own lines between") {
  for (const char* prefix : {"0: ", "[1,0]<stdout>:", "pod-0 0: ", "[1,12]<stdout>: "}) {
    const MeasurementFile file = parsed(prefixed(kRanks + kHeader, prefix) +
                                        "[1,3]<stdout>:beta:14:14 [1] NCCL INFO Channel 00 : 3 -> 0 [send] via NET/IB/0\n" + prefixed(kRow, prefix));
    CHECK_MESSAGE(file.rows.size() == 2, prefix);
    CHECK_MESSAGE((file.rows.at(0).collective.group == hw::GroupShape{2, 2}), prefix);
  }
}

TEST_CASE("Lines that broke into each other are counted as damaged, not read and not dropped") {
  const MeasurementFile file = parsed(kRanks + kHeader + kRow + "    67108864      16777216     float     sum alpha:11:11 [0] NCCL INFO Connected all rings\n");
  CHECK(file.rows.size() == 2);
  CHECK(file.left_out.at("damaged line of the table") == 1);
  CHECK(file.notes.at(0).find("10") != std::string::npos);
}

TEST_CASE("Columns of old releases: no root, no reduction, N/A for errors, zero bytes") {
  const MeasurementFile gather = parsed(
      "           0             0   float    30.00    0.00    0.00    N/A    30.00    0.00    0.00    N/A\n"
      "  1073741824      67108864   float   5000.0  214.75  201.33    N/A   4900.0  219.13  205.43    N/A\n",
      "my_allgather.txt");
  REQUIRE(gather.rows.size() == 2);
  CHECK(gather.rows[0].collective.kind == hw::CollectiveKind::all_gather);
  CHECK(gather.rows[0].collective.group == hw::GroupShape{0, 16});  // 16 ranks, hosts unknown
  CHECK(gather.left_out.at("no bytes") == 2);
  const MeasurementFile scatter = parsed("  1073741824      67108864   float     sum   5000.0  214.75  201.33  2e-07   4900.0  219.13  205.43  2e-07\n");
  CHECK(scatter.rows.at(0).collective.kind == hw::CollectiveKind::reduce_scatter);
}

TEST_CASE("What can't be told is not guessed") {
  // All-gather and all-to-all look alike, and this file's name says neither.
  const MeasurementFile either = parsed("  1073741824      67108864   float   5000.0  214.75  201.33    N/A   4900.0  219.13  205.43    N/A\n", "x.txt");
  CHECK(either.rows.empty());
  CHECK(either.left_out.at("which collective this is can't be told") == 2);
  // 1.99 holds for many ranks.
  const MeasurementFile many = parsed("  1073741824     268435456     float     sum      -1    19355   55.48  110.84      0    19189   55.96  111.80      0\n");
  CHECK(many.left_out.at("the number of ranks can't be told") == 2);
  const MeasurementFile sends =
      parsed(" 134217728      33554432     float     sum      -1   1211.2  110.81  110.81      0   1211.8  110.76  110.76    N/A\n", "sendrecv.txt");
  CHECK(sends.left_out.at("no formula for sendrecv") == 2);
}

TEST_CASE("Named ranks that the bandwidths contradict are a part of them (a shortened log)") {
  const MeasurementFile file = parsed(
      "#   Rank  0 Pid     33 on node0 device  0 [0x27] NVIDIA A100-SXM4-80GB\n...\n"
      "  8589934592    2147483648     float     sum   143927   59.68  115.63  5e-07   143961   59.67  115.61  5e-07\n");
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].collective.group == hw::GroupShape{0, 32});
}

TEST_CASE("Wrong results and failures are said") {
  std::string wrong = kRow;
  wrong.replace(wrong.find("      0   1010.0"), 7, "      3");
  const MeasurementFile file =
      parsed(kRanks + kHeader + wrong + "beta: Test NCCL failure common.cu:1204 'unhandled cuda error'\n .. beta pid 7: Test failure common.cu:915\n");
  CHECK(file.rows.empty());
  CHECK(file.left_out.at("wrong results") == 2);
  CHECK(file.notes.at(0).find("Test NCCL failure") != std::string::npos);
}

TEST_CASE("A communicator's lines of NCCL_DEBUG=INFO name ranks and hosts where the test does not") {
  const MeasurementFile file = parsed(
      "     1048576         32768     float     sum    113.5    9.24    8.08  2e-07    112.8    9.29    8.13  2e-07\n"
      "alpha:13226:13226 [0] NCCL INFO comm 0x7fcb rank 0 nranks 8 cudaDev 0 busId 1f000 - Destroy COMPLETE\n"
      "beta:75822:75822 [0] NCCL INFO comm 0x7f79 rank 4 nranks 8 cudaDev 0 busId 41000 - Destroy COMPLETE\n");
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].collective.kind == hw::CollectiveKind::reduce_scatter);
  CHECK(file.rows[0].collective.group == hw::GroupShape{4, 2});
}

TEST_CASE("JSON of nccl-tests -J") {
  const std::string text = R"({"version": "2.17.9", "args": ["build/all_gather_perf", "-J", "o.json"],
    "devices": [{"rank": 0, "hostname": "a", "device_info": "NVIDIA H200"}, {"rank": 1, "hostname": "b", "device_info": "NVIDIA H200"}],
    "results": [{"size": 1024, "count": 128, "type": "float", "redop": "none", "root": "-1",
                 "out_of_place": {"time": 20.5, "alg_bw": 0.05, "bus_bw": 0.025, "nwrong": 0}, "in_place": {"time": 19.5, "alg_bw": 0.05, "bus_bw": 0.026, "nwrong": null}}]})";
  const MeasurementFile file = parse_measurements(text, "o.json");
  CHECK(file.format == "nccl-tests JSON");
  REQUIRE(file.rows.size() == 2);
  CHECK(file.rows[0].collective.kind == hw::CollectiveKind::all_gather);
  CHECK(file.rows[0].collective.group == hw::GroupShape{1, 2});
  CHECK(file.rows[1].time.in(microsecond) == doctest::Approx(19.5));
  CHECK_THROWS_WITH_AS(parse_measurements(R"({"results": [{"size": "big"}]})", "o.json"), doctest::Contains("/results/0/size"), InputError);
}

TEST_CASE("All public logs: as many rows of each placement, the same collective and ranks as their transcription") {
  const std::string folder = test::source_dir() + "/../shared/micro/";
  const auto rows = test::read_table(folder + "nccl_perf.csv", [](const test::Row&) { return true; });
  if (!rows) {
    MESSAGE("skipped: the logs are not beside the source tree");
    return;
  }
  std::map<std::string, std::vector<test::Row>> by_log;
  for (const test::Row& row : *rows) by_log[row.at("log")].push_back(row);
  std::size_t logs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "raw/nccl")) {
    if (entry.path().extension() != ".txt") continue;
    ++logs;
    const std::string name = entry.path().stem();
    CAPTURE(name);
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const NcclRun run = parse_nccl_log(text);
    CHECK(run.damaged == 0);
    std::size_t placed = 0;
    for (const NcclRow& row : run.rows) placed += row.bytes > 0 ? (row.out_of_place ? 1U : 0U) + (row.in_place ? 1U : 0U) : 0U;
    const std::vector<test::Row>& expected = by_log[name];
    CHECK(placed == expected.size());
    const MeasurementFile file = nccl_measurements(run, entry.path());
    if (file.rows.empty()) continue;
    REQUIRE(!expected.empty());
    CHECK(file.rows.size() == expected.size());
    const hw::GroupShape group = file.rows[0].collective.group;
    const auto nodes = test::count(expected[0], "nodes"), per_node = test::count(expected[0], "gpus_per_node");
    CHECK(hw::name(file.rows[0].collective.kind) == expected[0].at("collective"));
    if (group.ranks_per_node > 0) CHECK(group == hw::GroupShape{static_cast<std::int32_t>(per_node), static_cast<std::int32_t>(nodes)});
    else CHECK(group.nodes == nodes * per_node);
    CHECK(file.rows[0].time.in(microsecond) == doctest::Approx(test::number(expected[0], "time_us")));
  }
  CHECK(logs > 20);
}
