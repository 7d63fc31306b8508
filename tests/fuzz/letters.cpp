// Fuzzes what processes of a training job read from each other over TCP. The first byte chooses: bytes as a connection hands them over, in pieces; letters to the first process; letters
// from it. Any bytes are letters or an error: a connection yields what was framed, whole and in order, or is lost, and what a job keeps of letters can be used. docs/real_backend.md.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "real_backend/launch/link.hpp"
#include "real_backend/launch/socket.hpp"

namespace {

using namespace stepcast::real;

constexpr std::int32_t kRanks = 3, kTraces = 2;
constexpr std::size_t kSteps = 2, kParameters = 2;

void require(bool holds) {
  if (!holds) std::abort();
}

std::uint8_t next_byte(std::string_view& text) {
  if (text.empty()) return 0;
  const auto byte = static_cast<std::uint8_t>(text.front());
  text.remove_prefix(1);
  return byte;
}

/// Message by message as their lengths say, without any socket; the rest is no whole message.
std::optional<std::string_view> next_message(std::string_view& bytes, std::size_t most) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > most || length > bytes.size() - sizeof length) return std::nullopt;
  const std::string_view message = bytes.substr(sizeof length, length);
  bytes.remove_prefix(sizeof length + length);
  return message;
}

void through_a_connection(std::string_view text) {
  std::array<int, 2> ends{};
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
  std::optional<Descriptor> sender(std::in_place, ends[1]);
  const std::size_t most = 8 * (1 + next_byte(text) % 64U), piece = 1 + next_byte(text);
  Connection connection{Descriptor(ends[0]), most};
  std::string_view expected = text;
  const auto drain = [&] {
    while (const std::optional<std::string> message = connection.receive()) require(next_message(expected, most) == *message);
  };
  for (std::size_t at = 0; at < text.size() && !connection.lost(); at += piece) {
    const std::string_view bytes = text.substr(at, piece);
    require(::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
    drain();
  }
  sender.reset();
  drain();
  require(connection.lost());
  require(!next_message(expected, most));
}

/// Letters that the input holds: who from, a length, that many bytes. Sent letters go nowhere.
class Script final : public Peers {
 public:
  Script(std::int32_t rank, std::string_view text) : rank_(rank), text_(text) {}
  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override { return kRanks; }
  void send(std::int32_t to, std::string) override { require(to >= 0 && to < kRanks && to != rank_); }
  std::optional<Letter> arrived() override {
    if (text_.empty()) return std::nullopt;
    const std::uint8_t head = next_byte(text_);
    const std::size_t length = next_byte(text_);
    Letter letter{rank_ == 0 ? 1 + head % (kRanks - 1) : 0, std::string(text_.substr(0, length)), head >= 0xf0};
    text_.remove_prefix(std::min(length, text_.size()));
    return letter;
  }
  void abort(int) override {}

 private:
  std::int32_t rank_;
  std::string_view text_;
};

/// A job of `kRanks` processes, of which this is one.
struct Job {
  explicit Job(Peers& peers) : link(peers, {failure, progress, results, kTraces, kParameters}) {
    for (RankResult& result : results) result.steps.resize(kSteps);
  }
  Failure failure;
  Counter progress{0};
  std::deque<RankResult> results{kRanks};
  Link link;
};

/// What train.cpp counts on.
void to_the_first(std::string_view text) {
  Script peers(0, text);
  Job job(peers);
  Clock clock;
  job.link.meet(7, clock, 0);
  job.link.turn();
  for (std::int32_t rank = 1; rank < kRanks; ++rank) {
    const RankResult& result = job.results[static_cast<std::size_t>(rank)];
    require(result.done <= kSteps);
    require(result.trace.ranks.size() <= 1);
    if (job.failure.raised() || !result.back) continue;
    require(result.parameters.size() == kParameters);
    require(result.trace.ranks.size() == (rank < kTraces ? 1 : 0));
    for (const auto& own : result.trace.ranks)
      for (const auto& slice : own.slices) require(slice.recompute || slice.phase <= stepcast::trace::Phase::optimizer);
  }
}

void from_the_first(std::string_view text) {
  const std::uint8_t way = next_byte(text);
  Script peers(1, text);
  Job job(peers);
  Clock clock;
  if (way % 4 == 0) static_cast<void>(from_first(peers, "", 0));
  if (way % 4 == 1) static_cast<void>(wait_for_end(peers, 1e-4));
  if (way % 4 < 2) return;
  if (way % 4 == 2) job.link.meet(7, clock, 0);
  require(clock.now().count() > -(std::int64_t{1} << 62));
  job.link.turn();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    switch (next_byte(text) % 3) {
      case 0: through_a_connection(text); break;
      case 1: to_the_first(text); break;
      default: from_the_first(text);
    }
  } catch (const JobEnded&) {
  } catch (const std::runtime_error& error) { require(std::string_view(error.what()).find('\n') == std::string_view::npos); }
  return 0;
}
