// See driver.hpp.
#include "real_backend/host/driver.hpp"

#include "real_backend/host/device.hpp"

namespace stepcast::real::host {

std::int64_t address_space(std::int64_t pool_bytes) {
  constexpr std::int64_t kReserve = std::int64_t{1} << 30;
  return 2 * pool_bytes + kReserve;
}

HostDriver::HostDriver(const Common& common) : common_(common), groups_(common.failure, static_cast<std::int32_t>(common.training.ranks)) {}

std::unique_ptr<Device> HostDriver::open(const program::Program& program, std::int32_t rank, std::int64_t pool_bytes) {
  return std::make_unique<HostDevice>(common_, groups_, rank, program.events.size(), address_space(pool_bytes));
}

std::unique_ptr<Driver> make_driver(const Common& common) { return std::make_unique<HostDriver>(common); }

}  // namespace stepcast::real::host
