// See link.hpp.
#include "real_backend/launch/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

namespace stepcast::real {
namespace {

using SteadyClock = std::chrono::steady_clock;

enum class Word : std::uint8_t { ask_time, time, ready, alive, step, failed, never_began, out_of_memory, back, stop, text, over };

constexpr std::chrono::milliseconds kSpeak{100};   // a process that has nothing to say says so
constexpr SimTime kLatest{std::int64_t{1} << 62};  // differences of such times are times
constexpr int kClockRounds = 20;                   // the fastest answer tells the time best

double seconds_since(SteadyClock::time_point begin) { return std::chrono::duration<double>(SteadyClock::now() - begin).count(); }

PacketWriter letter_of(Word w) {
  PacketWriter packet;
  packet.put(w);
  return packet;
}

/// The next letter, for which other threads of the machine are let through. Nothing after the deadline.
std::optional<Letter> next_letter(Peers& peers, SteadyClock::time_point begin, double deadline_s) {
  for (;;) {
    if (std::optional<Letter> letter = peers.arrived()) return letter;
    if (seconds_since(begin) > deadline_s) return std::nullopt;
    std::this_thread::yield();
  }
}

/// Values that none of the type's names stands for are no trace. What they index is checked where that is known.
std::vector<trace::Slice> slices_of(PacketReader& packet) {
  std::vector<trace::Slice> slices = packet.get_all<trace::Slice>();
  for (const trace::Slice& slice : slices) {
    unsigned char recompute = 0;
    std::memcpy(&recompute, &slice.recompute, sizeof recompute);
    if (slice.category > trace::Category::collective || slice.host_state > trace::HostState::paused || slice.phase > trace::Phase::optimizer || recompute > 1)
      throw std::runtime_error("a letter of another process holds a slice that is none");
  }
  return slices;
}

}  // namespace

double Link::silence() const { return seconds_since(heard_); }

void Link::meet(std::uint64_t identity, Clock& clock, double deadline_s) {
  identity_ = identity;
  clock_ = &clock;
  if (first()) meet_others(deadline_s);
  else meet_first(clock, deadline_s);
  heard_ = SteadyClock::now();
}

void Link::meet_others(double deadline_s) {
  const auto begin = SteadyClock::now();
  ready_[0] = true;
  for (auto away = ready_.begin(); away != ready_.end() && !job_.failure.raised(); away = std::find(ready_.begin(), ready_.end(), false)) {
    const std::optional<Letter> letter = next_letter(peers_, begin, deadline_s);
    if (letter) take(*letter);
    else job_.failure.raise(fmt::format("rank {} has not begun within {:g} s", std::find(ready_.begin(), ready_.end(), false) - ready_.begin(), deadline_s));
  }
}

/// The clock's error is at most half the time of the fastest answer.
void Link::meet_first(Clock& clock, double deadline_s) {
  SimTime best = SimTime::max(), shift{};
  for (int round = 0; round < kClockRounds; ++round) {
    const auto begin = SteadyClock::now();
    const SimTime asked = clock.now();
    peers_.send(0, letter_of(Word::ask_time).take());
    const std::optional<Letter> letter = next_letter(peers_, begin, deadline_s);
    if (!letter) return job_.failure.raise(fmt::format("rank 0 has not begun within {:g} s", deadline_s));
    if (letter->lost) return take_from_first(*letter);
    PacketReader packet(letter->text);
    if (packet.get<Word>() != Word::time) return take_from_first(*letter);
    const SimTime took = clock.now() - asked, there = packet.get<SimTime>();
    if (there < SimTime{} || there > kLatest) throw std::runtime_error("rank 0 has a time that can't be");
    if (took >= best) continue;
    best = took;
    shift = there - (asked + took / 2);
  }
  clock.shift(shift);
  peers_.send(0, letter_of(Word::ready).put(identity_).take());
}

void Link::turn() {
  if (!first()) tell_first();
  while (const std::optional<Letter> letter = peers_.arrived()) {
    if (first()) take(*letter);
    else take_from_first(*letter);
  }
  if (first()) tell_others();
}

void Link::tell_first() {
  for (const std::uint32_t done = own().done.load(std::memory_order_acquire); steps_told_ < done; ++steps_told_)
    peers_.send(0, letter_of(Word::step).put(steps_told_).put(own().steps[steps_told_]).take());
  const std::uint32_t progress = job_.progress.load();
  if (SteadyClock::now() - spoke_ > kSpeak) {
    spoke_ = SteadyClock::now();
    peers_.send(0, letter_of(Word::alive).put(progress - progress_told_).take());
    progress_told_ = progress;
  }
  const bool ended = own().back.load(std::memory_order_acquire);
  const std::vector<std::string> causes = job_.failure.causes();
  for (; causes_told_ < causes.size(); ++causes_told_) {
    if (own().out_of_memory) peers_.send(0, letter_of(Word::out_of_memory).take());
    peers_.send(0, letter_of(Word::failed).put_text(causes[causes_told_]).take());
  }
  if (ended && !std::exchange(back_told_, true)) peers_.send(0, back());
}

void Link::tell_others() {
  const bool stop = job_.failure.raised() && !std::exchange(stop_told_, true);
  const bool speak = SteadyClock::now() - spoke_ > kSpeak;
  if (!stop && !speak) return;
  spoke_ = SteadyClock::now();
  for (std::int32_t rank = 1; rank < peers_.size(); ++rank) peers_.send(rank, letter_of(stop ? Word::stop : Word::alive).take());
}

void Link::take_from_first(const Letter& letter) {
  heard_ = SteadyClock::now();
  if (letter.lost) {
    if (!job_.failure.raised()) job_.failure.raise("rank 0 is gone");
    return;
  }
  PacketReader packet(letter.text);
  const Word what = packet.get<Word>();
  if (what == Word::over) over_ = packet.get<int>();
  if (what == Word::over || what == Word::stop) job_.failure.stop();
}

/// After a failure the others end one after the other: that is no cause of its own.
void Link::take_loss(std::int32_t rank, RankResult& result) {
  if (!result.back && !job_.failure.raised()) job_.failure.raise(fmt::format("rank {} is gone: its process has ended", rank));
  result.back = true;
}

void Link::take(const Letter& letter) {
  RankResult& result = job_.results[static_cast<std::size_t>(letter.from)];
  if (letter.lost) return take_loss(letter.from, result);
  try {
    take(letter, result);
  } catch (const std::exception& error) { job_.failure.raise(fmt::format("rank {}: {}", letter.from, error.what())); }
}

void Link::take(const Letter& letter, RankResult& result) {
  PacketReader packet(letter.text);
  switch (packet.get<Word>()) {
    case Word::ask_time: return peers_.send(letter.from, letter_of(Word::time).put(clock_->now()).take());
    case Word::ready: return take_ready(letter.from, packet.get<std::uint64_t>());
    case Word::alive: advance(job_.progress, packet.get<std::uint32_t>()); return;
    case Word::step: return take_step(result, packet);
    case Word::out_of_memory: result.out_of_memory = true; return;
    case Word::failed: return job_.failure.raise(packet.rest());
    case Word::never_began: return take_never_began(result);
    case Word::back: return take_back(letter.from, result, packet);
    default: throw std::runtime_error("a letter of another process that is none of a training job's");
  }
}

/// The cause came before.
void Link::take_never_began(RankResult& result) const {
  result.back = true;
  if (!job_.failure.raised()) throw std::runtime_error("its process has not begun the job, and does not say why");
}

void Link::take_ready(std::int32_t rank, std::uint64_t identity) {
  ready_[static_cast<std::size_t>(rank)] = true;
  if (identity != identity_) job_.failure.raise(fmt::format("rank {} has another scenario, or another build of stepcast, than rank 0", rank));
}

/// A rank tells of its steps one after the other.
void Link::take_step(RankResult& result, PacketReader packet) {
  const auto step = packet.get<std::uint32_t>();
  if (step >= result.steps.size() || step != result.done.load()) throw std::runtime_error("a letter of another process names a step that there is not");
  result.steps[step] = packet.get<StepMetrics>();
  result.done.store(step + 1, std::memory_order_release);
}

std::string Link::back() const {
  PacketWriter packet = letter_of(Word::back);
  packet.put(own().parameters);
  const bool traced = peers_.rank() < job_.traces && !own().trace.ranks.empty();
  packet.put(traced);
  if (traced) packet.put(own().trace.ranks.front().slices).put(own().trace.ranks.front().memory);
  return packet.take();
}

/// Whatever else it says, the rank has ended.
void Link::take_back(std::int32_t rank, RankResult& result, PacketReader packet) const {
  if (result.back.exchange(true)) throw std::runtime_error("its process has ended twice");
  std::vector<Moments> parameters = packet.get_all<Moments>();
  const bool traced = packet.get<bool>();
  if (!job_.failure.raised() && (parameters.size() != job_.parameters || traced != (rank < job_.traces)))
    throw std::runtime_error("it has other parameters, or keeps traces of other ranks, than rank 0");
  result.parameters = std::move(parameters);
  if (traced) {
    trace::RankTrace& own_trace = result.trace.ranks.emplace_back();
    own_trace.slices = slices_of(packet);
    own_trace.memory = packet.get_all<trace::MemorySample>();
  }
}

std::string from_first(Peers& peers, const std::string& text, double deadline_s) {
  if (peers.rank() == 0) {
    for (std::int32_t rank = 1; rank < peers.size(); ++rank) peers.send(rank, letter_of(Word::text).put_text(text).take());
    return text;
  }
  const auto begin = SteadyClock::now();
  while (const std::optional<Letter> letter = next_letter(peers, begin, deadline_s)) {
    if (letter->lost) throw std::runtime_error("rank 0 is gone");
    PacketReader packet(letter->text);
    switch (packet.get<Word>()) {
      case Word::text: return packet.rest();
      case Word::over: throw JobEnded(packet.get<int>());
      default: break;
    }
  }
  throw std::runtime_error(fmt::format("rank 0 has said nothing for {:g} s", deadline_s));
}

void tell_failure(Peers& peers, const std::string& cause) {
  peers.send(0, letter_of(Word::failed).put_text(cause).take());
  peers.send(0, letter_of(Word::never_began).take());
}

void end_all(Peers& peers, int exit_code) {
  for (std::int32_t rank = 1; rank < peers.size(); ++rank) peers.send(rank, letter_of(Word::over).put(exit_code).take());
}

int wait_for_end(Peers& peers, double deadline_s) {
  for (auto heard = SteadyClock::now(); seconds_since(heard) < deadline_s; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    while (const std::optional<Letter> letter = peers.arrived()) {
      if (letter->lost) return -1;
      heard = SteadyClock::now();
      PacketReader packet(letter->text);
      if (packet.get<Word>() == Word::over) return packet.get<int>();
    }
  }
  return -1;
}

}  // namespace stepcast::real
