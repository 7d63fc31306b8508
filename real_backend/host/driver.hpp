// The host driver: ranks are threads of this process. Test: tests/unit/train_test.cpp.
#pragma once

#include "real_backend/driver.hpp"
#include "real_backend/host/group.hpp"

namespace stepcast::real::host {

class HostDriver final : public Driver {
 public:
  explicit HostDriver(const Common& common);
  std::unique_ptr<Device> open(const program::Program& program, std::int32_t rank, std::int64_t pool_bytes) override;

 private:
  Common common_;
  SharedGroups groups_;
};

std::unique_ptr<Driver> make_driver(const Common& common);

/// For a pool of this size: segments begin at multiples, so some lies between them.
std::int64_t address_space(std::int64_t pool_bytes);

}  // namespace stepcast::real::host
