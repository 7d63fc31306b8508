// See driver.hpp.
#include "real_backend/mpi/driver.hpp"

#include "real_backend/host/device.hpp"
#include "real_backend/host/driver.hpp"
#include "real_backend/mpi/group.hpp"

namespace stepcast::real::mpi {
namespace {

class MpiDriver final : public Driver {
 public:
  explicit MpiDriver(const Common& common) : common_(common), groups_(common.failure) {}
  std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t pool_bytes) override {
    groups_.form(program, static_cast<std::int32_t>(common_.training.ranks), rank);
    return std::make_unique<host::HostDevice>(common_, groups_, rank, program.events.size(), host::address_space(pool_bytes));
  }

 private:
  Common common_;
  MpiGroups groups_;
};

}  // namespace

std::unique_ptr<Driver> make_driver(const Common& common) { return std::make_unique<MpiDriver>(common); }

}  // namespace stepcast::real::mpi
