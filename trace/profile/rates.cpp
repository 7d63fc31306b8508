// Test: tests/unit/profile_rates_test.cpp.
#include "trace/profile/rates.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "trace/profile/coverage.hpp"
#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

using Shape = std::vector<double>;

/// "[[2, 3], [], [3, 4]]" -> the inner lists; what is no list of numbers is an empty shape.
std::vector<Shape> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  int depth = 0;
  double number = 0;
  bool digits = false;
  for (const char c : text) {
    if (c == '[' && ++depth == 2) shapes.emplace_back();
    if (c >= '0' && c <= '9') {
      number = number * 10 + (c - '0');
      digits = true;
      continue;
    }
    if (digits && depth == 2) shapes.back().push_back(number);
    number = 0;
    digits = false;
    if (c == ']') --depth;
  }
  return shapes;
}

double bytes_per_element(std::string_view dtype) {
  struct Type {
    std::string_view name;
    double bytes;
  };
  constexpr std::array kTypes = {Type{"Double", 8}, Type{"Long", 8},  Type{"Float", 4}, Type{"Int", 4},  Type{"BFloat16", 2},
                                 Type{"Half", 2},   Type{"Short", 2}, Type{"Byte", 1},  Type{"Char", 1}, Type{"Bool", 1}};
  const auto at = std::find_if(kTypes.begin(), kTypes.end(), [dtype](const Type& type) { return type.name == dtype; });
  if (at != kTypes.end()) return at->bytes;
  return dtype.starts_with("Float8") ? 1 : 0;
}

double message_bytes(const CollectiveArguments& c, std::string_view type) {
  const std::int64_t elements = type == "allgather" ? c.out_elements : c.in_elements;
  return elements > 0 ? static_cast<double>(elements) * bytes_per_element(c.dtype) : 0;
}

std::vector<CollectiveRate> collectives_of(const Profile& p, const std::vector<const DeviceOp*>& ops, const Coverage& compute) {
  std::map<std::tuple<std::string, std::uint32_t>, CollectiveRate> rates;
  for (const DeviceOp* op : ops) {
    if (op->kind != DeviceKind::communication) continue;
    const std::string type(collective_type(p.names[op->name]));
    CollectiveRate& rate = rates[{type, op->collective}];
    const Time length = op->end - op->begin;
    rate.shortest = rate.count == 0 ? length : std::min(rate.shortest, length);
    ++rate.count;
    rate.total += length;
    rate.exposed += length - compute.within(op->begin, op->end);
    rate.type = type;
    if (op->collective == kNoIndex) continue;
    const CollectiveArguments& c = p.collectives[op->collective];
    rate.group = c.group;
    rate.dtype = c.dtype;
    rate.ranks = std::max<std::int64_t>(0, c.group_size);
    rate.bytes = message_bytes(c, type);
  }
  std::vector<CollectiveRate> out;
  for (auto& [key, rate] : rates) out.push_back(std::move(rate));
  std::stable_sort(out.begin(), out.end(), [](const CollectiveRate& a, const CollectiveRate& b) { return a.total > b.total; });
  return out;
}

std::vector<Products> products_of(const Profile& p, const std::vector<const DeviceOp*>& ops) {
  std::unordered_map<std::int64_t, const HostOp*> by_id;
  for (const HostOp& op : p.host_ops) {
    if (op.shapes != kNoIndex && op.external_id != kNone) by_id[op.external_id] = &op;
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, Products> products;
  std::set<std::int64_t> counted;
  for (const DeviceOp* op : ops) {
    const auto host = op->kind == DeviceKind::compute && op->external_id != kNone ? by_id.find(op->external_id) : by_id.end();
    if (host == by_id.end()) continue;
    const auto flop = flop_of(p.names[host->second->name], p.shapes[host->second->shapes]);
    if (!flop) continue;
    Products& product = products[{host->second->name, host->second->shapes}];
    product.op = p.names[host->second->name];
    product.shapes = p.shapes[host->second->shapes];
    product.time += op->end - op->begin;
    if (!counted.insert(op->external_id).second) continue;
    ++product.calls;
    product.flop += *flop;
  }
  std::vector<Products> out;
  for (auto& [key, product] : products) out.push_back(std::move(product));
  std::stable_sort(out.begin(), out.end(), [](const Products& a, const Products& b) { return a.time > b.time; });
  return out;
}

}  // namespace

std::optional<double> flop_of(std::string_view op, std::string_view input_dims) {
  const bool plain = op == "aten::mm", batched = op == "aten::bmm", added = op == "aten::addmm", batched_added = op == "aten::baddbmm";
  if (!plain && !batched && !added && !batched_added) return {};
  const std::vector<Shape> shapes = shapes_in(input_dims);
  const std::size_t first = added || batched_added ? 1 : 0, rank = batched || batched_added ? 3 : 2;
  if (shapes.size() < first + 2 || shapes[first].size() != rank || shapes[first + 1].size() != rank) return {};
  const Shape &a = shapes[first], &b = shapes[first + 1];
  if (a[rank - 1] != b[rank - 2]) return {};
  const double batch = rank == 3 ? a[0] : 1;
  return 2 * batch * a[rank - 2] * a[rank - 1] * b[rank - 1];
}

std::optional<double> CollectiveRate::bus_bandwidth() const {
  const auto n = static_cast<double>(ranks);
  const bool one_way = type == "allgather" || type == "reducescatter";
  if (ranks < 2 || bytes <= 0 || shortest <= Time{} || (!one_way && type != "allreduce")) return {};
  const double factor = (one_way ? 1 : 2) * (n - 1) / n;
  return factor * bytes / (static_cast<double>(shortest.count()) * 1e-9);
}

Rates rates_of(const Profile& profile, std::uint32_t device) {
  std::vector<const DeviceOp*> ops;
  Spans compute;
  Rates rates;
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    ops.push_back(&op);
    if (op.kind != DeviceKind::compute) continue;
    compute.push_back({op.begin, op.end});
    ClassTotal& total = rates.classes[std::string(kernel_class(profile.names[op.name]))];
    ++total.count;
    total.total += op.end - op.begin;
  }
  rates.products = products_of(profile, ops);
  rates.collectives = collectives_of(profile, ops, Coverage(std::move(compute)));
  return rates;
}

}  // namespace stepcast::trace::profile
