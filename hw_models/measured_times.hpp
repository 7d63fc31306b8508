// Times of a profile's tables, which stand before all formulas, and how they change where all ranks of a machine share its processors.
// docs/models.md, "Shared processors". Test: tests/model/measured_times_test.cpp.
#pragma once

#include <optional>
#include <string_view>

#include "hw_models/hardware.hpp"

namespace stepcast::hw {

/// Processors that the streams of all ranks of a node share, each a thread; 0 where every rank has a device of its own.
double shared_processors(const Profile& gpu);

/// How much longer one thread per rank takes than alone: max(1, R / P). 1 without sharing (P = 0).
double crowding(double ranks, double processors);
/// Share of what a rank has of the processors, P / R but at least one, that one thread takes: min(1, R / P). 0 without sharing.
double thread_share(double ranks, double processors);

/// The time of this kernel on as many ranks at once; else that on another number of them, times the ratio of crowdings; none if the table doesn't have it. Rows of its
/// name stand before rows without one; rows of other names don't count.
std::optional<Seconds> measured_time(const Profile& gpu, const KernelShape& shape, std::string_view name, std::int32_t ranks);
/// Of this very shape.
std::optional<Seconds> measured_time(const Profile& node, const CollectiveShape& shape);

}  // namespace stepcast::hw
