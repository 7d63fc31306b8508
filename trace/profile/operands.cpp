// Forms: profiles of PyTorch 1.8 to 2.x, of flash-attn 2, and our own. Test: tests/unit/profile_operands_test.cpp.
#include "trace/profile/operands.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "trace/profile/vocabulary.hpp"

namespace stepcast::trace::profile {

namespace {

using Shape = std::vector<std::int64_t>;
constexpr std::int64_t kLargest = std::int64_t{1} << 30;  // of a dimension: no product of two overflows, and no sum of a few of these

/// "[[2, 3], [], [3, 4]]" -> the inner lists; what is no list of numbers is an empty shape.
std::vector<Shape> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  int depth = 0;
  std::int64_t number = 0;
  bool digits = false;
  for (const char c : text) {
    if (c == '[' && ++depth == 2) shapes.emplace_back();
    if (c >= '0' && c <= '9') {
      number = std::min(number * 10 + (c - '0'), kLargest);
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

std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

/// How an operator of attention orders the sizes of its operands.
enum class Order : std::uint8_t { none, heads_first, length_first };

Order order_of(std::string_view op) {
  // The outermost operator launches nothing itself; simulated traces have no other.
  constexpr std::array<std::string_view, 4> kOurs = {"scaled_dot_product_attention", "ScaledDotProductAttentionBackward0", "native::attention",
                                                     "native::attention_backward"};
  if (std::find(kOurs.begin(), kOurs.end(), op) != kOurs.end()) return Order::heads_first;
  if (op.starts_with("aten::_scaled_dot_product_") && !contains(op, "math")) return Order::heads_first;
  const bool package = op.starts_with("flash_attn") && (contains(op, "_flash_attn_forward") || contains(op, "_flash_attn_backward"));
  if (package || op.starts_with("aten::_flash_attention_") || op.starts_with("aten::_efficient_attention_")) return Order::length_first;
  return Order::none;
}

/// PyTorch's grouped product, by the number of dimensions of its operands: rows, columns or the inner dimension are divided among the groups, or each has its own matrices.
std::optional<Product> grouped_mm(const std::vector<Shape>& shapes) {
  if (shapes.size() < 2) return {};
  const Shape &a = shapes[0], &b = shapes[1];
  if (a.size() == 2 && b.size() == 3 && a[1] == b[1]) return Product{1, a[0], b[2], a[1], b[0]};
  if (a.size() == 3 && b.size() == 2 && a[2] == b[0]) return Product{1, b[1], a[1], a[2], a[0]};
  const bool ends = shapes.size() > 2 && shapes[2].size() == 1;
  if (a.size() == 2 && b.size() == 2 && a[1] == b[0]) return Product{1, a[0], b[1], a[1], ends ? shapes[2][0] : 1};
  if (a.size() == 3 && b.size() == 3 && a[0] == b[0] && a[2] == b[1]) return Product{a[0], a[1], b[2], a[2]};
  return {};
}

/// The grouped_gemm package: (rows x k), then the matrices, transposed or not.
std::optional<Product> grouped_gemm(const std::vector<Shape>& shapes) {
  if (shapes.size() < 2 || shapes[0].size() != 2 || shapes[1].size() != 3) return {};
  const Shape &a = shapes[0], &b = shapes[1];
  if (a[1] != b[1] && a[1] != b[2]) return {};
  return Product{1, a[0], a[1] == b[1] ? b[2] : b[1], a[1], b[0]};
}

/// Transformer Engine: (rows x k), and one (n x k) for each group among its other arguments.
std::optional<Product> grouped_linear(const std::vector<Shape>& shapes) {
  if (shapes.empty() || shapes[0].size() != 2) return {};
  Product product{1, shapes[0][0], 0, shapes[0][1], 0};
  for (std::size_t i = 1; i < shapes.size(); ++i) {
    if (shapes[i].size() != 2) continue;
    if (shapes[i][1] != product.k || (product.groups > 0 && shapes[i][0] != product.n)) return {};
    product.n = shapes[i][0];
    ++product.groups;
  }
  return product.groups > 0 ? std::optional(product) : std::nullopt;
}

struct TypeName {
  std::string_view name;
  hw::Dtype dtype;
};

}  // namespace

bool is_grouped_product(std::string_view op) {
  return op == "aten::_grouped_mm" || op.starts_with("aten::_scaled_grouped_mm") || op == "GroupedGemm" || op == "_GroupedLinear";
}

std::optional<Product> product_of(std::string_view op, std::string_view input_dims) {
  const std::string_view name = first_word(op);
  if (is_grouped_product(name)) {
    const std::vector<Shape> shapes = shapes_in(input_dims);
    return name == "GroupedGemm" ? grouped_gemm(shapes) : name == "_GroupedLinear" ? grouped_linear(shapes) : grouped_mm(shapes);
  }
  const bool added = name == "aten::addmm" || name == "aten::baddbmm";
  constexpr std::array<std::string_view, 4> kOthers = {"aten::mm", "aten::bmm", "MmBackward0", "BmmBackward0"};
  if (!added && std::find(kOthers.begin(), kOthers.end(), name) == kOthers.end()) return {};
  const std::vector<Shape> shapes = shapes_in(input_dims);
  const std::size_t first = added ? 1 : 0;
  if (shapes.size() < first + 2) return {};
  const Shape &a = shapes[first], &b = shapes[first + 1];
  const std::size_t rank = a.size();
  const bool batched = name == "aten::bmm" || name == "aten::baddbmm", plain = name == "aten::mm" || name == "aten::addmm";
  if ((rank != 2 || batched) && (rank != 3 || plain)) return {};
  if (b.size() != rank || a[rank - 1] != b[rank - 2]) return {};
  return Product{rank == 3 ? a[0] : 1, a[rank - 2], b[rank - 1], a[rank - 1]};
}

double AttentionCall::flop() const {
  return (backward ? 10 : 4) * static_cast<double>(batch) * static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys) *
         static_cast<double>(head_dim);
}

std::optional<AttentionCall> attention_of(std::string_view op, std::string_view input_dims) {
  const std::string_view name = first_word(op);
  const Order order = order_of(name);
  if (order == Order::none) return {};
  AttentionCall call;
  call.backward = contains(name, "ackward");
  const std::vector<Shape> shapes = shapes_in(input_dims);
  const std::size_t first = call.backward ? 1 : 0;  // behind the gradient of the result
  if (shapes.size() < first + 2 || shapes[first].size() != 4 || shapes[first + 1].size() != 4) return {};
  const Shape &q = shapes[first], &k = shapes[first + 1];
  const std::size_t heads = order == Order::heads_first ? 1 : 2, length = 3 - heads;
  call.batch = q[0];
  call.heads = q[heads];
  call.kv_heads = k[heads];
  call.queries = q[length];
  call.keys = k[length];
  call.head_dim = q[3];
  return call;
}

std::optional<hw::Dtype> dtype_of(std::string_view input_types) {
  constexpr std::array kTypes = {TypeName{"c10::BFloat16", hw::Dtype::bf16}, TypeName{"c10::Half", hw::Dtype::fp16}, TypeName{"c10::Float8", hw::Dtype::fp8},
                                 TypeName{"float", hw::Dtype::fp32}, TypeName{"double", hw::Dtype::fp64}};
  const TypeName* first = nullptr;
  std::size_t place = std::string_view::npos;
  for (const TypeName& type : kTypes) {
    const std::size_t at = input_types.find(type.name);
    if (at < place) place = at, first = &type;
  }
  return first ? std::optional(first->dtype) : std::nullopt;
}

std::optional<hw::Dtype> dtype_of_collective(std::string_view dtype) {
  constexpr std::array kTypes = {TypeName{"BFloat16", hw::Dtype::bf16}, TypeName{"Half", hw::Dtype::fp16}, TypeName{"Float", hw::Dtype::fp32},
                                 TypeName{"Double", hw::Dtype::fp64}};
  const auto at = std::find_if(kTypes.begin(), kTypes.end(), [dtype](const TypeName& type) { return type.name == dtype; });
  if (at != kTypes.end()) return at->dtype;
  return dtype.starts_with("Float8") ? std::optional(hw::Dtype::fp8) : std::nullopt;
}

std::optional<Lookup> lookup_of(std::string_view op, std::string_view input_dims) {
  if (op != "aten::embedding") return {};
  const std::vector<Shape> shapes = shapes_in(input_dims);
  if (shapes.size() < 2 || shapes[0].size() != 2 || shapes[1].empty() || shapes[1].size() > 2) return {};
  const Shape& ids = shapes[1];
  return Lookup{shapes[0][0], shapes[0][1], ids.size() == 2 ? ids[0] : 1, ids.back()};
}

}  // namespace stepcast::trace::profile
