// A sweep on several ranks, here threads of one process. docs/sweep.md, "Several machines".
#include <doctest/doctest.h>

#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "cli/sweep/ranks.hpp"
#include "hw_models/input_error.hpp"

using namespace stepcast;
using cli::SweepPlan, cli::SweepStore, planner::Grid, scenarios::ScenarioTemplate;

namespace {

/// What the threads share.
struct Wire {
  std::promise<std::vector<std::uint64_t>> first;
  std::shared_future<std::vector<std::uint64_t>> said = first.get_future().share();
  std::mutex mutex;
  std::deque<std::pair<std::uint64_t, std::string>> messages;
};

class Thread final : public cli::Ranks {
 public:
  Thread(Wire& wire, int rank, int size) : wire_(wire), rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  std::vector<std::uint64_t> from_first(std::vector<std::uint64_t> numbers) override {
    if (rank_ == 0) wire_.first.set_value(std::move(numbers));
    return wire_.said.get();
  }
  void send(std::uint64_t key, const std::string& text) override {
    const std::scoped_lock lock(wire_.mutex);
    wire_.messages.emplace_back(key, text);
  }
  std::optional<std::pair<std::uint64_t, std::string>> arrived() override {
    const std::scoped_lock lock(wire_.mutex);
    if (wire_.messages.empty()) return std::nullopt;
    auto message = std::move(wire_.messages.front());
    wire_.messages.pop_front();
    return message;
  }
  void abort(int) override { throw std::logic_error("not asked for here"); }

 private:
  Wire& wire_;
  int rank_, size_;
};

const ScenarioTemplate& scenario() {
  static const std::vector<std::string> kSets = {"/model/layers=1", "/run/steps=2"};
  static const ScenarioTemplate kScenario("7b-32xa100", kSets);
  return kScenario;
}

Grid grid_to(int batches) { return Grid({planner::parse_axis("/batch/micro_batch=1.." + std::to_string(batches)), planner::parse_axis("/cluster/nodes=1,2")}); }

/// Three ranks: the sweep's counts, as the first has them.
cli::SweepCounts swept(const Grid& grid, SweepStore& store) {
  Wire wire;
  const SweepPlan plan = cli::make_plan(scenario(), grid, 1);
  const cli::SweepWork work{scenario(), grid, plan, 2};
  std::vector<std::jthread> others;
  for (int rank = 1; rank < 3; ++rank)
    others.emplace_back([&, rank] {
      Thread ranks(wire, rank, 3);
      SweepStore none;
      cli::run_sweep_on(ranks, work, none);
    });
  Thread ranks(wire, 0, 3);
  return cli::run_sweep_on(ranks, work, store);
}

}  // namespace

TEST_CASE("three ranks find what one finds, and simulate nothing that the first has kept") {
  const Grid grid = grid_to(20);
  const SweepPlan plan = cli::make_plan(scenario(), grid, 1);
  SweepStore alone, together;
  const cli::SweepCounts one = cli::run_sweep({scenario(), grid, plan, 1}, alone), three = swept(grid, together);
  CHECK(three.simulated == one.simulated);
  CHECK(three.simulated == plan.uniques.size());
  for (const SweepPlan::Unique& unique : plan.uniques) CHECK(together.get(unique.key) == alone.get(unique.key));
  const cli::SweepCounts more = swept(grid_to(22), together);
  CHECK(more.simulated == 4);
  CHECK(more.kept == 40);
}

TEST_CASE("parts are whole and differ by a chunk at most") {
  std::vector<SweepPlan::Unique> open(100);
  for (std::size_t i = 0; i < open.size(); ++i) open[i].point = i;
  std::map<std::size_t, int> seen;
  for (std::size_t part = 0; part < 3; ++part) {
    const auto own = cli::part_of(open, part, 3);
    CHECK(own.size() >= 32);
    CHECK(own.size() <= 36);
    for (const auto& unique : own) ++seen[unique.point];
  }
  CHECK(seen.size() == 100);
  CHECK(cli::part_of(open, 0, 1).size() == 100);
}

TEST_CASE("an error of the first rank's own part ends it, though others still work") {
  const std::vector<std::string> sets = {"/model/layers=1", "/run/steps=2", "/allocator/device_memory=1 GiB"};  // less than what lies outside the pool
  const ScenarioTemplate broken("7b-32xa100", sets);
  const Grid grid = grid_to(2);
  const SweepPlan plan = cli::make_plan(broken, grid, 1);
  Wire wire;
  Thread ranks(wire, 0, 2);  // the second never answers
  SweepStore store;
  CHECK_THROWS_AS(cli::run_sweep_on(ranks, {broken, grid, plan, 1}, store), InputError);
}

TEST_CASE("ranks that planned otherwise than the first refuse") {
  Wire wire;
  Thread leader(wire, 0, 2), follower(wire, 1, 2);
  leader.from_first({1, 2, 3});
  const Grid grid = grid_to(2);
  const SweepPlan plan = cli::make_plan(scenario(), grid, 1);
  SweepStore store;
  CHECK_THROWS_AS(cli::run_sweep_on(follower, {scenario(), grid, plan, 1}, store), InputError);
}

TEST_CASE("what launchers say in the environment") {
  const auto launch = [](const std::map<std::string, std::string>& environment) {
    return cli::launch_in([&](const char* name) -> const char* {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    });
  };
  CHECK(launch({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "4"}})->rank == 1);
  CHECK(launch({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})->size == 2);
  CHECK(launch({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})->connected);
  const auto bare = launch({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "8"}});
  CHECK(bare->rank == 3);
  CHECK(bare->size == 8);
  CHECK_FALSE(bare->connected);
  CHECK(launch({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"PMIX_RANK", "3"}})->connected);
  CHECK_FALSE(launch({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}}));  // a step of one task
  CHECK_THROWS_AS(launch({{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}}), InputError);                 // in no step
  CHECK_FALSE(launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}));                                 // the batch script itself, outside any step
  CHECK_FALSE(launch({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}));
  CHECK_FALSE(launch({}));
}
