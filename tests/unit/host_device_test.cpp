// Streams, events, collectives and failures of the host driver.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "real_backend/host/arena.hpp"
#include "real_backend/host/group.hpp"
#include "real_backend/host/stream.hpp"

namespace stepcast::real::host {
namespace {

TEST_CASE("a stream does what is queued in order, also more than its queue holds") {
  Failure failure;
  Stream stream(failure, "stream");
  std::vector<int> seen;
  for (int i = 0; i < 5000; ++i) stream.push([&seen, i] { seen.push_back(i); });
  stream.drain();
  REQUIRE(seen.size() == 5000);
  for (int i = 0; i < 5000; ++i) CHECK(seen[static_cast<std::size_t>(i)] == i);
  CHECK(stream.reached(5000));
  CHECK_FALSE(stream.reached(5001));
}

TEST_CASE("what a task throws fails the job with the stream's name, and later calls stop") {
  Failure failure;
  Stream stream(failure, "rank 3, stream compute");
  stream.push([] { throw std::runtime_error("broken"); });
  CHECK_THROWS_AS(stream.drain(), Stopped);
  CHECK(failure.causes() == std::vector<std::string>{"rank 3, stream compute: broken"});
  CHECK_THROWS_AS(stream.push([] {}), Stopped);
}

/// Runs f(rank) on as many threads.
void on_ranks(std::int32_t ranks, Failure& failure, const std::function<void(std::int32_t)>& f) {
  std::vector<std::thread> threads;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        f(rank);
      } catch (const Stopped&) {  // the cause is in `failure`
      } catch (const std::exception& error) { failure.raise(error.what()); }
    });
  for (std::thread& thread : threads) thread.join();
}

program::CollectiveEntry entry(hw::CollectiveKind kind, std::int64_t elements, std::int32_t ranks, bool average = false) {
  return {{kind, hw::Dtype::fp64, 8 * elements, {ranks, 1}}, program::Communicator::shard, false, "test", average};
}

std::byte* bytes(std::vector<double>& values) { return reinterpret_cast<std::byte*>(values.data()); }

TEST_CASE("collectives give what their definitions say, time after time") {
  constexpr std::int32_t kRanks = 3;
  Failure failure;
  SharedGroups groups(failure, kRanks);
  on_ranks(kRanks, failure, [&](std::int32_t rank) {
    auto [group, member] = groups.of(program::Communicator::shard, kRanks, rank);
    for (std::uint32_t round = 0; round < 40; round += 4) {
      const double own = rank + 1 + static_cast<int>(round);
      std::vector<double> part(2, own), whole(6), sum(7, own), scattered(2), around(6);
      around[static_cast<std::size_t>(2 * rank)] = around[static_cast<std::size_t>(2 * rank) + 1] = own;
      group->run(entry(hw::CollectiveKind::all_gather, 6, kRanks), round, member, bytes(part), bytes(whole), [] {});
      group->run(entry(hw::CollectiveKind::all_gather, 6, kRanks), round + 1, member, bytes(around) + 16 * rank, bytes(around), [] {});
      group->run(entry(hw::CollectiveKind::all_reduce, 7, kRanks), round + 2, member, bytes(sum), bytes(sum), [] {});
      group->run(entry(hw::CollectiveKind::reduce_scatter, 6, kRanks, true), round + 3, member, bytes(whole), bytes(scattered), [] {});
      const double others = 6 + 3 * round;  // the sum of all ranks' own numbers
      CHECK(whole == std::vector<double>{1.0 + round, 1.0 + round, 2.0 + round, 2.0 + round, 3.0 + round, 3.0 + round});
      CHECK(around == whole);
      CHECK(sum == std::vector<double>(7, others));
      CHECK(scattered == std::vector<double>(2, own));  // the average of what all have alike
    }
  });
  CHECK(failure.causes().empty());
}

TEST_CASE("shard groups are neighbours, replica groups have one of each") {
  Failure failure;
  SharedGroups groups(failure, 6);
  CHECK(groups.of(program::Communicator::shard, 3, 4).second == 1);
  CHECK(groups.of(program::Communicator::shard, 3, 4).first == groups.of(program::Communicator::shard, 3, 5).first);
  CHECK(groups.of(program::Communicator::shard, 3, 4).first != groups.of(program::Communicator::shard, 3, 2).first);
  CHECK(groups.of(program::Communicator::replica, 2, 4).second == 1);
  CHECK(groups.of(program::Communicator::replica, 2, 4).first == groups.of(program::Communicator::replica, 2, 1).first);
}

TEST_CASE("ranks that disagree about a collective fail, and so do those who wait for one that never comes") {
  Failure failure;
  SharedGroups groups(failure, 2);
  on_ranks(2, failure, [&](std::int32_t rank) {
    auto [group, member] = groups.of(program::Communicator::shard, 2, rank);
    std::vector<double> x(4);
    group->run(entry(rank == 0 ? hw::CollectiveKind::all_reduce : hw::CollectiveKind::all_gather, 4, 2), 0, member, bytes(x), bytes(x), [] {});
  });
  REQUIRE_FALSE(failure.causes().empty());
  CHECK(failure.causes().front().find("another rank of the group does") == 0);

  Failure lonely;
  SharedGroups half(lonely, 2);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    lonely.raise("rank 1: gone");
  });
  std::vector<double> x(4);
  auto [group, member] = half.of(program::Communicator::shard, 2, 0);
  CHECK_THROWS_AS(group->run(entry(hw::CollectiveKind::all_reduce, 4, 2), 0, member, bytes(x), bytes(x), [] {}), Stopped);
  other.join();
}

TEST_CASE("the arena is zero at first, and ends") {
  const Arena arena(1 << 20);
  CHECK(*arena.at(1000, 8) == std::byte{0});
  CHECK_THROWS_AS(static_cast<void>(arena.at((1 << 20) - 4, 8)), std::runtime_error);
}

/// Pages of [address, address + bytes), a multiple of 4 KiB each, that are in memory.
std::size_t resident(const Arena& arena, std::uint64_t address, std::int64_t bytes) {
  std::vector<unsigned char> pages(static_cast<std::size_t>(bytes) / 4096);
  REQUIRE(mincore(arena.at(address, bytes), static_cast<std::size_t>(bytes), pages.data()) == 0);
  return static_cast<std::size_t>(std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return (page & 1) != 0; }));
}

TEST_CASE("the arena's pages come when they are asked for, and go when they are given back") {
  const Arena arena(1 << 22);
  CHECK(resident(arena, 0, 1 << 22) == 0);
  arena.populate(1 << 20, 1 << 20);
  CHECK(resident(arena, 1 << 20, 1 << 20) == 256);
  *arena.at(1 << 20, 1) = std::byte{7};
  arena.populate((1 << 20) + 100, 8);  // what is there keeps its contents
  CHECK(*arena.at(1 << 20, 1) == std::byte{7});
  arena.release((1 << 20) + 100, (1 << 20) - 100);  // its first page is not given back as a whole
  CHECK(resident(arena, 1 << 20, 1 << 20) == 1);
  CHECK(*arena.at(1 << 20, 1) == std::byte{7});
  arena.release(1 << 20, 4096);
  CHECK(*arena.at(1 << 20, 1) == std::byte{0});
  CHECK_THROWS_AS(arena.populate((1 << 22) - 4, 8), std::runtime_error);
}

}  // namespace
}  // namespace stepcast::real::host
