// See tcp_peers.hpp.
#include "real_backend/launch/tcp_peers.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "real_backend/launch/packet.hpp"
#include "real_backend/launch/socket.hpp"

namespace stepcast::real {
namespace {

using Instant = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds kGlance{1}, kAgain{50};  // between looks, and between attempts to connect
constexpr std::size_t kMostHello = 256, kMostLetter = std::size_t{1} << 32;
constexpr std::size_t kMostStrangers = 256;  // connections that have not said who they are; more wait in the system's queue
constexpr double kPolite = 10;               // seconds to say it
constexpr double kFarewell = 5;              // seconds for the last letters to leave
constexpr char kName[] = "stepcast ranks 1";

double since(Instant begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

/// What a process says first; the answer is empty, or why it is turned away.
struct Hello {
  std::array<char, sizeof kName> name{};
  std::int32_t size = 0, rank = 0;
};

std::string hello(const Place& place) {
  Hello text{{}, place.size, place.rank};
  std::memcpy(text.name.data(), kName, sizeof kName);
  return PacketWriter().put(text).take();
}

class TcpPeers final : public Peers {
 public:
  TcpPeers(const Place& place, std::map<std::int32_t, Connection> connections) : place_(place), connections_(std::move(connections)) {}
  ~TcpPeers() override {
    const Instant begin = std::chrono::steady_clock::now();
    while (!flushed() && since(begin) < kFarewell) std::this_thread::sleep_for(kGlance);
  }
  [[nodiscard]] std::int32_t rank() const override { return place_.rank; }
  [[nodiscard]] std::int32_t size() const override { return place_.size; }
  void send(std::int32_t to, std::string text) override { connections_.at(to).send(text); }

  std::optional<Letter> arrived() override {
    for (auto& [from, connection] : connections_) {
      if (std::optional<std::string> text = connection.receive()) return Letter{from, std::move(*text), false};
      if (connection.lost() && lost_.insert(from).second) return Letter{from, "", true};
    }
    return std::nullopt;
  }
  void abort(int) override {}  // the connections end with the process

 private:
  bool flushed() {
    bool all = true;
    for (auto& [peer, connection] : connections_) all = (connection.flush() || connection.lost()) && all;
    return all;
  }

  Place place_;
  std::map<std::int32_t, Connection> connections_;
  std::set<std::int32_t> lost_;
};

/// The first process, while the others come.
class Reception {
 public:
  explicit Reception(const Place& place) : place_(place), listener_(listen_at(place.port)) {}

  std::unique_ptr<Peers> wait(double deadline_s) {
    for (const Instant begin = std::chrono::steady_clock::now(); come_.size() + 1 < static_cast<std::size_t>(place_.size);) {
      if (since(begin) > deadline_s) give_up(deadline_s);
      let_in();
      strangers_.remove_if([this](Stranger& stranger) { return is_served(stranger); });
      std::this_thread::sleep_for(kGlance);
    }
    for (auto& [rank, connection] : come_) connection.send("");
    return std::make_unique<TcpPeers>(place_, std::move(come_));
  }

 private:
  [[noreturn]] void give_up(double deadline_s) {
    for (auto& [rank, connection] : come_) connection.send("it waits no longer for others");
    throw std::runtime_error(away(deadline_s));
  }
  struct Stranger {
    Connection connection;
    Instant came;
  };
  void let_in() {
    while (strangers_.size() < kMostStrangers) {
      Descriptor next = accept_at(listener_);
      if (!next) return;
      strangers_.push_back({Connection(std::move(next), kMostHello), std::chrono::steady_clock::now()});
    }
  }
  bool is_served(Stranger& stranger) {
    const std::optional<std::string> text = stranger.connection.receive();
    if (!text) return stranger.connection.lost() || since(stranger.came) > kPolite;
    if (text->size() != sizeof(Hello)) return true;
    const auto said = PacketReader(*text).get<Hello>();
    if (std::memcmp(said.name.data(), kName, sizeof kName) != 0) return true;
    const std::string refusal = why_not(said);
    if (refusal.empty()) {
      stranger.connection.read_on(kMostLetter);
      come_.emplace(said.rank, std::move(stranger.connection));
    } else {
      refusals_.insert(refusal);
      stranger.connection.send(refusal);
    }
    return true;
  }
  [[nodiscard]] std::string why_not(const Hello& said) const {
    std::string who = fmt::format("a process that calls itself rank {} of {}", said.rank, said.size);
    if (said.size != place_.size) return fmt::format("{}; the job has {}", who, place_.size);
    if (said.rank < 1 || said.rank >= place_.size) return who;
    return come_.contains(said.rank) ? who + ", which is there already" : "";
  }
  [[nodiscard]] std::string away(double deadline_s) const {
    std::string ranks, refused;
    for (std::int32_t rank = 1; rank < place_.size; ++rank)
      if (!come_.contains(rank)) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
    for (const std::string& refusal : refusals_) refused += "; turned away: " + refusal;
    return fmt::format("rank {} has not come to {}:{} within {:g} s{}", ranks, place_.host, place_.port, deadline_s, refused);
  }

  Place place_;
  Descriptor listener_;
  std::list<Stranger> strangers_;
  std::map<std::int32_t, Connection> come_;
  std::set<std::string> refusals_;
};

Connection connect(const Place& place, Instant begin, double deadline_s) {
  for (std::string why;; std::this_thread::sleep_for(kAgain)) {
    try {
      if (Descriptor made = connect_to(place.host, place.port, why)) return Connection(std::move(made), kMostLetter);
    } catch (const UnknownHost& error) {
      throw NotMet("environment", "", fmt::format("rank {}: MASTER_ADDR is \"{}\": {}", place.rank, place.host, error.what()),
                   "the host of rank 0, by a name or an address that all machines know");
    }
    if (since(begin) > deadline_s)
      throw std::runtime_error(fmt::format("rank 0 does not answer at {}:{} within {:g} s: {}", place.host, place.port, deadline_s, why));
  }
}

std::unique_ptr<Peers> come(const Place& place, double deadline_s) {
  const Instant begin = std::chrono::steady_clock::now();
  Connection first = connect(place, begin, deadline_s);
  first.send(hello(place));
  std::optional<std::string> answer;
  while (!(answer = first.receive())) {
    if (first.lost()) throw std::runtime_error(fmt::format("rank 0 at {}:{} has closed the connection", place.host, place.port));
    if (since(begin) > deadline_s) throw std::runtime_error(fmt::format("not all ranks have come to {}:{} within {:g} s", place.host, place.port, deadline_s));
    std::this_thread::sleep_for(kGlance);
  }
  if (!answer->empty()) throw std::runtime_error("turned away by rank 0: " + *answer);
  std::map<std::int32_t, Connection> connections;
  connections.emplace(0, std::move(first));
  return std::make_unique<TcpPeers>(place, std::move(connections));
}

}  // namespace

std::unique_ptr<Peers> meet_by_tcp(const Place& place, double deadline_s) {
  return place.rank == 0 ? Reception(place).wait(deadline_s) : come(place, deadline_s);
}

}  // namespace stepcast::real
