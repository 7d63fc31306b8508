// `mpirun stepcast sweep` as a user meets it. docs/sweep.md, "Several machines". Without MPI, or without a launcher that can start processes here, only the refusal is tested.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/paths.hpp"
#include "support/place.hpp"

using stepcast::test::Outcome, stepcast::test::Place, stepcast::test::has, stepcast::test::one_line, stepcast::test::read;

namespace {

const std::string kSweepCommand = "'" + stepcast::test::binary() + "' sweep 7b-32xa100 --set /model/layers=2 --set /run/steps=3 ";
const std::string kGrid = "--vary /batch/micro_batch=1..12 --vary /policy/framework=fsdp1,fsdp2 --vary /policy/forward_prefetch=false,true ";
const std::string kMpirun = STEPCAST_MPIRUN[0] == '\0' ? "" : "'" STEPCAST_MPIRUN "' --allow-run-as-root --oversubscribe --quiet ";

bool can_launch(const Place& place) {
  const bool can = !kMpirun.empty() && place.shell(kMpirun + "-n 2 true").code == 0;
  if (!can) MESSAGE("skipped: no mpirun that starts two processes here");
  return can;
}

}  // namespace

TEST_CASE("two processes write what one writes, byte by byte, and go on where a sweep stopped") {
  const Place place;
  if (!can_launch(place)) return;
  for (const std::string& output : {std::string("--json"), std::string("--top 5")}) {
    const Outcome one = place.shell(kSweepCommand + kGrid + output + " --csv one.csv"),
                  two = place.shell(kMpirun + "-n 2 " + kSweepCommand + kGrid + output + " --csv two.csv");
    REQUIRE_MESSAGE(two.code == 0, two.err);
    CHECK(two.out == one.out);
    CHECK(read(place / "two.csv") == read(place / "one.csv"));
    CHECK(two.err == one.err);  // the counts, once
  }
  REQUIRE(place.shell(kSweepCommand + "--vary /batch/micro_batch=1..4 --out out").code == 0);
  const Outcome more = place.shell(kMpirun + "-n 2 " + kSweepCommand + "--vary /batch/micro_batch=1..16 --out out");
  REQUIRE_MESSAGE(more.code == 0, more.err);
  CHECK(has(more.err, "12 scenarios simulated"));
  CHECK(has(more.err, "4 kept from an earlier sweep"));
  REQUIRE(place.shell(kSweepCommand + "--vary /batch/micro_batch=1..16 --out whole").code == 0);
  for (const char* name : {"report.json", "sweep.csv", "sweep.txt", "report.html"})
    CHECK_MESSAGE(read((place / "out") / name) == read((place / "whole") / name), name);
}

TEST_CASE("what is wrong is said once, and ends the job with the exit code of one process") {
  const Place place;
  if (!can_launch(place)) return;
  const Outcome wrong = place.shell(kMpirun + "-n 3 " + kSweepCommand + "--vary /batch/micro_batches=1,2");
  CHECK(wrong.code == 2);
  CHECK(wrong.err.find("micro_batches") != std::string::npos);
  CHECK(wrong.err.find("stepcast: ") == wrong.err.rfind("stepcast: "));
  const Outcome none = place.shell(kMpirun + "-n 2 " + kSweepCommand + "--vary /batch/micro_batch=200,300 --set '/allocator/device_memory=8 GiB'");
  CHECK(none.code == 4);
}

TEST_CASE("a process that dies ends the job, and what was kept is there for the next") {
  const Place place;
  if (!can_launch(place)) return;
  const std::string grid = "--vary /batch/micro_batch=1..16 --vary /cluster/nodes=1..64 --out out";
  const std::string die = "sh -c 'if [ $OMPI_COMM_WORLD_RANK = 1 ]; then (sleep 2; kill -9 $$) & fi; exec \"$@\"' sh ";
  const Outcome dead = place.shell(kMpirun + "-n 2 " + die + kSweepCommand + "--set /run/steps=200 " + grid);
  CHECK(dead.code != 0);
  CHECK(dead.out.empty());
  CHECK(std::filesystem::exists((place / "out") / "points.jsonl"));
  CHECK_FALSE(std::filesystem::exists((place / "out") / "report.json"));
}

TEST_CASE("srun's processes without PMI are refused with one line, by the first of them; a rank outside any step by itself") {
  const Place place;
  const std::string step = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 ";
  const Outcome first = place.shell(step + "SLURM_PROCID=0 " + kSweepCommand + kGrid), second = place.shell(step + "SLURM_PROCID=1 " + kSweepCommand + kGrid);
  CHECK(first.code == 2);
  CHECK(one_line(first.err));
  CHECK(has(first.err, kMpirun.empty() ? "has no MPI" : "srun --mpi=pmix"));
  CHECK(second.code == 2);
  CHECK(second.err.empty());
  const Outcome outside = place.shell("SLURM_PROCID=1 SLURM_NTASKS=2 " + kSweepCommand + kGrid);
  CHECK(outside.code == 2);
  CHECK(one_line(outside.err));
  CHECK(has(outside.err, "SLURM_STEP_NUM_TASKS"));
  const Outcome script = place.shell("SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=2 " + kSweepCommand + "--vary /batch/micro_batch=1,2");  // a batch script
  CHECK(script.code == 0);
  CHECK(has(script.out, "2 points"));
}

TEST_CASE("without MPI a launcher's processes are refused with one line") {
  const Place place;
  if (!kMpirun.empty()) return;
  const Outcome first = place.shell("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 " + kSweepCommand + kGrid);
  CHECK(first.code == 2);
  CHECK(one_line(first.err));
  CHECK(has(first.err, "has no MPI"));
  const Outcome second = place.shell("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " + kSweepCommand + kGrid);
  CHECK(second.code == 2);
  CHECK(second.err.empty());
}
