// Time that the host thread spends per kind of work. docs/models.md, "Host". Test: tests/model/cost_model_test.cpp.
#pragma once

#include <string_view>

#include "hw_models/hardware.hpp"
#include "hw_models/kernel.hpp"
#include "hw_models/units.hpp"

namespace stepcast::hw {

/// Name of the constant in a node profile that prices this work, e.g. "host_op_forward". Empty for `none`.
std::string_view host_constant(HostWork work);

/// One unit of `work`; zero for `none`.
Seconds host_time(const Profile& node, HostWork work);

/// Work whose `price` is that of a node with `priced` of memory (channels x rate), on a node with `memory`: it does little but read and write. Valid where all cores take part.
Seconds memory_bound_host_time(Seconds price, BytesPerSecond priced, BytesPerSecond memory);

/// Work that fills the processors and the memory of a node by itself: its price is that of the whole node, and all ranks of a node do it at the same moment.
bool shares_processors(HostWork work);

}  // namespace stepcast::hw
