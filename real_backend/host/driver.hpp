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
  Groups groups_;
};

std::unique_ptr<Driver> make_driver(const Common& common);

}  // namespace stepcast::real::host
