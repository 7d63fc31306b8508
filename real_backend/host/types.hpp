// Number types of the host driver: Eigen's bf16.
#pragma once

#include <Eigen/Core>

#include "real_backend/numbers.hpp"

namespace stepcast::real::host {

/// Calls f(Type<T>) with the C++ type of `dtype`. Throws std::runtime_error for those that the host does not compute in.
template <class F>
decltype(auto) with_type(hw::Dtype dtype, F f) {
  return with_number<Eigen::bfloat16>(dtype, "the host", f);
}

}  // namespace stepcast::real::host
