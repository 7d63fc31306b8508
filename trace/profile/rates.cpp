// Test: tests/unit/profile_rates_test.cpp.
#include "trace/profile/rates.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>
#include <unordered_map>

#include "trace/profile/coverage.hpp"
#include "trace/profile/operands.hpp"
#include "trace/profile/vocabulary.hpp"
#include "trace/profile/workload.hpp"

namespace stepcast::trace::profile {

namespace {

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

/// The class of each name, once: a name tells it by a search for many parts.
class Classes {
 public:
  explicit Classes(const Texts& names) : names_(names), known_(names.size()) {}
  std::string_view of(std::uint32_t name) {
    if (known_[name].empty()) known_[name] = kernel_class(names_[name]);
    return known_[name];
  }

 private:
  const Texts& names_;
  std::vector<std::string_view> known_;
};

void add_to_class(ClassTotal& total, const DeviceOp& op) {
  ++total.count;
  total.total += op.end - op.begin;
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

/// Operators with recorded shapes, by the External id that the kernels which they launch carry too.
std::unordered_map<std::int64_t, const HostOp*> shaped_ops(const Profile& p) {
  std::unordered_map<std::int64_t, const HostOp*> by_id;
  for (const HostOp& op : p.host_ops) {
    if (op.shapes != kNoIndex && op.external_id != kNone) by_id[op.external_id] = &op;
  }
  return by_id;
}

std::optional<double> flop_of(const Profile& p, const HostOp& op) {
  const std::string &name = p.names[op.name], &dims = p.shapes[op.shapes];
  if (const auto product = product_of(name, dims)) return product->flop();
  if (const auto attention = attention_of(name, dims)) return attention->flop();
  return {};
}

/// By operator, shape and type, the longest first.
void count_products(const Profile& p, const std::vector<const DeviceOp*>& ops, Rates& rates) {
  const auto by_id = shaped_ops(p);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Products> products;
  std::set<std::int64_t> counted;
  for (const DeviceOp* op : ops) {
    const auto host = op->kind == DeviceKind::compute && op->external_id != kNone ? by_id.find(op->external_id) : by_id.end();
    if (host == by_id.end()) continue;
    const auto flop = flop_of(p, *host->second);
    if (!flop) continue;
    Products& product = products[{host->second->name, host->second->shapes, host->second->types}];
    product.op = p.names[host->second->name];
    product.shapes = p.shapes[host->second->shapes];
    product.dtype = host->second->types == kNoIndex ? std::nullopt : dtype_of(p.types[host->second->types]);
    product.time += op->end - op->begin;
    if (!counted.insert(op->external_id).second) continue;
    ++product.calls;
    product.flop += *flop;
  }
  for (auto& [key, product] : products) {
    const bool attention = attention_of(product.op, product.shapes).has_value();
    (attention ? rates.attention : rates.products).push_back(std::move(product));
  }
  const auto longer = [](const Products& a, const Products& b) { return a.time > b.time; };
  for (auto* list : {&rates.products, &rates.attention}) std::stable_sort(list->begin(), list->end(), longer);
}

}  // namespace

double message_bytes(const CollectiveArguments& c, std::string_view type) {
  const std::int64_t elements = type == "allgather" ? c.out_elements : c.in_elements;
  return elements > 0 ? static_cast<double>(elements) * bytes_per_element(c.dtype) : 0;
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
  Classes classes(profile.names);
  for (const DeviceOp& op : profile.device_ops) {
    if (op.kind == DeviceKind::other || profile.streams[op.stream].device != device) continue;
    ops.push_back(&op);
    if (op.kind != DeviceKind::compute) continue;
    compute.push_back({op.begin, op.end});
    const std::string_view name = classes.of(op.name);
    const auto total = rates.classes.find(name);
    add_to_class(total == rates.classes.end() ? rates.classes[std::string(name)] : total->second, op);
  }
  count_products(profile, ops, rates);
  rates.collectives = collectives_of(profile, ops, Coverage(std::move(compute)));
  return rates;
}

}  // namespace stepcast::trace::profile
