// All-pairs generation: few choices of values such that every two values of two options that rules allow together stand together in at least one of them.
// Greedy, after Cohen et al., "The AETG System" (1997): each choice begins with an open pair and is filled option by option with the value that closes most open pairs and
// that the rules allow. Every option's value 0 is a default that is good by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace stepcast::test {

using Choice = std::vector<int>;

struct Pair {
  std::size_t i = 0;
  int a = 0;
  std::size_t j = 0;
  int b = 0;
  auto operator<=>(const Pair&) const = default;
};

class AllPairs {
 public:
  using Allowed = std::function<bool(const Choice&)>;

  /// `values` of each option; the first option is tried in all its values to make room for a pair, and so is one more.
  AllPairs(std::vector<int> values, Allowed allowed) : values_(std::move(values)), allowed_(std::move(allowed)) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      for (std::size_t j = i + 1; j < values_.size(); ++j)
        for (int a = 0; a < values_[i]; ++a)
          for (int b = 0; b < values_[j]; ++b) open_.insert({i, a, j, b});
  }

  /// The next choice; nothing once all pairs are closed or found impossible.
  std::optional<Choice> next() {
    while (!open_.empty()) {
      const Pair pair = *open_.begin();
      open_.erase(open_.begin());
      if (std::optional<Choice> choice = seed(pair)) {
        fill(*choice, pair);
        close(*choice);
        return choice;
      }
      impossible_.insert(pair);
    }
    return {};
  }
  [[nodiscard]] const std::set<Pair>& impossible() const { return impossible_; }

 private:
  /// Defaults with the pair, the first option and at most one more changed so that the rules allow it.
  [[nodiscard]] std::optional<Choice> seed(const Pair& pair) const {
    for (int first = 0; first < values_[0]; ++first) {
      Choice choice(values_.size(), 0);
      choice[0] = first;
      set(choice, pair);
      if (choice[0] != first) continue;  // the pair names it
      if (allowed_(choice)) return choice;
      for (std::size_t k = 1; k < values_.size(); ++k) {
        for (int v = 1; v < values_[k] && k != pair.i && k != pair.j; ++v) {
          Choice more = choice;
          more[k] = v;
          if (allowed_(more)) return more;
        }
      }
    }
    return {};
  }

  void fill(Choice& choice, const Pair& pair) {
    std::vector<std::size_t> order(values_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[draw(k)]);
    std::vector<bool> settled(values_.size());
    settled[0] = settled[pair.i] = settled[pair.j] = true;
    for (const std::size_t k : order) {
      if (settled[k]) continue;
      settle(choice, settled, k);
      settled[k] = true;
    }
  }

  /// The value of option k that closes most open pairs with the settled ones; its present one if the rules allow no other.
  void settle(Choice& choice, const std::vector<bool>& settled, std::size_t k) {
    std::vector<std::tuple<int, std::size_t, int>> ranked;  // gain, tie-break, value
    for (int v = 0; v < values_[k]; ++v) ranked.emplace_back(-gain(choice, settled, k, v), draw(1000), v);
    std::sort(ranked.begin(), ranked.end());
    for (const auto& [gain, tie, value] : ranked) {
      const int before = std::exchange(choice[k], value);
      if (allowed_(choice)) return;
      choice[k] = before;
    }
  }

  [[nodiscard]] int gain(const Choice& choice, const std::vector<bool>& settled, std::size_t k, int v) const {
    int count = 0;
    for (std::size_t o = 0; o < values_.size(); ++o) {
      if (!settled[o] || o == k) continue;
      count += open_.contains(o < k ? Pair{o, choice[o], k, v} : Pair{k, v, o, choice[o]}) ? 1 : 0;
    }
    return count;
  }

  void close(const Choice& choice) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      for (std::size_t j = i + 1; j < values_.size(); ++j) open_.erase({i, choice[i], j, choice[j]});
  }

  static void set(Choice& choice, const Pair& pair) { choice[pair.i] = pair.a, choice[pair.j] = pair.b; }

  std::size_t draw(std::size_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>((state_ >> 33) % n);
  }

  std::vector<int> values_;
  Allowed allowed_;
  std::set<Pair> open_, impossible_;
  std::uint64_t state_ = 12345;
};

}  // namespace stepcast::test
