// One rank of the CUDA driver: a GPU, its streams, and a thread that watches over them. docs/real_backend.md; test: tests/unit/cuda_device_test.cpp.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "real_backend/cuda/communicators.hpp"
#include "real_backend/cuda/lane.hpp"
#include "real_backend/cuda/segments.hpp"
#include "real_backend/driver.hpp"

namespace stepcast::real::cuda {

class CudaDevice final : public Device {
 public:
  /// `common` and `program` outlive this. `gpu`: its number in this process.
  CudaDevice(const Common& common, const World& world, int gpu, const program::Program& program);
  ~CudaDevice() override;

  void launch(program::Stream stream, KernelTask task) override;
  void collective(program::Stream stream, CollectiveTask task) override;
  void record(std::uint32_t event, program::Stream stream) override;
  void wait(program::Stream stream, std::uint32_t event) override;
  void host_wait(std::uint32_t event) override;
  void then(program::Stream stream, std::function<void()> task) override { lane(stream).mark(std::move(task)); }
  void synchronize() override;
  std::uint64_t position(program::Stream stream) override { return lane(stream).mark(); }
  [[nodiscard]] bool reached(program::Stream stream, std::uint64_t position) const override;
  void map(std::span<const Segment> segments) override { segments_.follow(segments); }
  std::byte* memory(std::uint64_t address, std::int64_t bytes) override { return segments_.at(address, bytes); }
  void read(const std::byte* from, std::span<std::byte> to) override { copy(to.data(), from, to.size(), cudaMemcpyDeviceToHost); }
  void write(std::byte* to, std::span<const std::byte> from) override { copy(to, from.data(), from.size(), cudaMemcpyHostToDevice); }
  std::shared_ptr<std::byte> pinned(std::int64_t bytes) override { return make_pinned_bytes(bytes); }
  std::vector<trace::Slice> take_slices() override;

 private:
  [[nodiscard]] Lane& lane(program::Stream stream) const { return *lanes_[static_cast<std::size_t>(stream)]; }
  void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
  template <class Done>
  void await(Done done) const;
  void watch();

  Common common_;
  World world_;
  int gpu_, exceptions_;
  Timers timers_;
  Anchor anchor_;
  Segments segments_;
  Owner<cudaStream_t> copies_;  // of read and write
  std::vector<Owner<cudaEvent_t>> events_;
  std::array<std::unique_ptr<Lane>, program::kStreams> lanes_;
  std::unique_ptr<Communicators> communicators_;
  std::atomic<bool> closing_{false};
  std::thread watcher_;  // last: it uses what stands above
};

}  // namespace stepcast::real::cuda
