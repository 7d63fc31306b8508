// Rates of one device under the names of docs/diagnose.md. Test: tests/golden/diagnose_test.cpp.
#include <algorithm>

#include "cli/report/diagnose/json.hpp"
#include "hw_models/ordered_json.hpp"

namespace stepcast::cli {

namespace {

namespace profile = trace::profile;
using profile::microseconds;

constexpr std::size_t kProductsShown = 30;

OrderedJson flop_per_s(double flop, profile::Time time) {
  return time.count() == 0 ? OrderedJson() : OrderedJson(flop / (static_cast<double>(time.count()) * 1e-9));
}

OrderedJson json_of(const std::vector<profile::Products>& products) {
  double flop = 0;
  profile::Time time{};
  OrderedJson shapes = OrderedJson::array();
  for (const profile::Products& p : products) {
    flop += p.flop;
    time += p.time;
    if (shapes.size() == kProductsShown) continue;
    shapes.push_back({{"op", p.op},
                      {"input_dims", p.shapes},
                      {"dtype", p.dtype ? OrderedJson(hw::name(*p.dtype)) : OrderedJson()},
                      {"calls", p.calls},
                      {"total_us", microseconds(p.time)},
                      {"flop", p.flop},
                      {"flop_per_s", flop_per_s(p.flop, p.time)}});
  }
  return {{"flop", flop}, {"total_us", microseconds(time)}, {"flop_per_s", flop_per_s(flop, time)}, {"shapes", shapes}};
}

OrderedJson json_of(const profile::CollectiveRate& c) {
  const auto bandwidth = c.bus_bandwidth();
  return {{"type", c.type},
          {"group", c.group},
          {"ranks", c.ranks > 0 ? OrderedJson(c.ranks) : OrderedJson()},
          {"dtype", c.dtype},
          {"message_bytes", c.bytes > 0 ? OrderedJson(c.bytes) : OrderedJson()},
          {"count", c.count},
          {"total_us", microseconds(c.total)},
          {"exposed_us", microseconds(c.exposed)},
          {"shortest_us", microseconds(c.shortest)},
          {"bus_bytes_per_s", bandwidth ? OrderedJson(*bandwidth) : OrderedJson()}};
}

}  // namespace

OrderedJson json_of(const profile::Rates& rates) {
  OrderedJson classes = OrderedJson::object(), collectives = OrderedJson::array();
  for (const auto& [name, total] : rates.classes) classes[name] = {{"count", total.count}, {"total_us", microseconds(total.total)}};
  for (const profile::CollectiveRate& c : rates.collectives) collectives.push_back(json_of(c));
  return {{"kernel_classes", classes}, {"matrix_products", json_of(rates.products)}, {"attention", json_of(rates.attention)}, {"collectives", collectives}};
}

}  // namespace stepcast::cli
