// The fakes themselves: each kind of fault, planted, is found; what is right is not.
#include <cublas_v2.h>
#include <doctest/doctest.h>
#include <nccl.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/text.hpp"
#include "tests/fakes/machine.hpp"

namespace stepcast::fakes {
namespace {

constexpr std::size_t kBytes = 64;

/// A GPU with two streams, an event and some memory that is written.
struct Place {
  explicit Place(int gpu = 0) {
    REQUIRE(cudaSetDevice(gpu) == cudaSuccess);
    for (cudaStream_t& stream : streams) REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    void* taken = nullptr;
    REQUIRE(cudaMalloc(&taken, kBytes) == cudaSuccess);
    memory = static_cast<std::byte*>(taken);
    REQUIRE(cudaMemsetAsync(memory, 0, kBytes, streams[0]) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(streams[0]) == cudaSuccess);
  }
  ~Place() {
    cudaDeviceSynchronize();
    cudaFree(memory);
    cudaEventDestroy(event);
    for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  }
  void write(std::size_t stream) const { cudaMemsetAsync(memory, 1, kBytes, streams[stream]); }
  void read(std::size_t stream) const {
    launched(streams[stream], [place = memory] { touched(place, kBytes, false); });
  }
  std::array<cudaStream_t, 2> streams{};
  cudaEvent_t event = nullptr;
  std::byte* memory = nullptr;
};

/// The one fault that `plant` makes.
std::string fault_of(const std::function<void(const Place&)>& plant) {
  const Machine machine(1);
  {
    const Place place;
    plant(place);
    cudaDeviceSynchronize();
  }
  const auto faults = machine.faults();
  REQUIRE_MESSAGE(faults.size() <= 1, faults.back());
  return faults.empty() ? "" : faults.front();
}

using stepcast::test::has;

TEST_CASE("fakes: what another stream writes must have been waited for, by an event or by the host") {
  // Which of the two comes first is open; that nobody waited is not.
  CHECK(has(fault_of([](const Place& p) { p.write(0), p.read(1); }), ", and has not waited for it"));
  CHECK(has(fault_of([](const Place& p) { p.read(0), p.write(1); }), ", and has not waited for it"));
  CHECK(has(fault_of([](const Place& p) { p.write(0), p.write(1); }), ", and has not waited for it"));
  CHECK(fault_of([](const Place& p) { p.read(0), p.read(1); }).empty());
  CHECK(fault_of([](const Place& p) {
          p.write(0);
          cudaEventRecord(p.event, p.streams[0]);
          cudaStreamWaitEvent(p.streams[1], p.event, 0);
          p.read(1);
        }).empty());
  CHECK(fault_of([](const Place& p) {
          p.write(0);
          cudaStreamSynchronize(p.streams[0]);
          p.read(1);
        }).empty());
  CHECK(fault_of([](const Place& p) {
          p.write(0);
          cudaEventRecord(p.event, p.streams[0]);
          while (cudaEventQuery(p.event) == cudaErrorNotReady) std::this_thread::yield();
          p.read(1);
        }).empty());
}

TEST_CASE("fakes: an event stands for what was on the stream when it was recorded, not for what came later") {
  CHECK(has(fault_of([](const Place& p) {
              cudaEventRecord(p.event, p.streams[0]);
              p.write(0);
              cudaStreamWaitEvent(p.streams[1], p.event, 0);
              p.read(1);
            }),
            "has not waited for it"));
}

TEST_CASE("fakes: memory that is not there, no more, not yet written, too short, or the host's") {
  CHECK(has(fault_of([](const Place& p) {
              void* taken = nullptr;
              cudaMalloc(&taken, kBytes);
              cudaFree(taken);
              cudaMemsetAsync(taken, 0, kBytes, p.streams[0]);
            }),
            "after it was given back"));
  CHECK(has(fault_of([](const Place& p) { cudaMemsetAsync(p.memory, 0, kBytes + 1, p.streams[0]); }), "beyond its end"));
  CHECK(has(fault_of([](const Place& p) {
              void* taken = nullptr;
              cudaMalloc(&taken, kBytes);
              cudaMemcpyAsync(p.memory, taken, kBytes, cudaMemcpyDeviceToDevice, p.streams[0]);
              cudaFree(taken);
            }),
            "what was never written"));
  CHECK(has(fault_of([](const Place& p) {
              launched(p.streams[0], [] {
                const int host = 0;
                touched(&host, sizeof host, false);
              });
            }),
            "is not this GPU's"));
  CHECK(has(fault_of([](const Place& p) {
              std::array<std::byte, kBytes> host{};
              CHECK(cudaMemcpyAsync(host.data(), p.memory, kBytes, cudaMemcpyHostToDevice, p.streams[0]) == cudaErrorInvalidValue);
            }),
            "another direction"));
  CHECK(has(fault_of([](const Place& p) { CHECK(cudaFree(p.memory + 8) == cudaErrorInvalidValue); }), "where none was taken"));
}

TEST_CASE("fakes: after a fault every call says so") {
  const Machine machine(1);
  const Place place;
  cudaMemsetAsync(place.memory, 0, kBytes + 1, place.streams[0]);
  CHECK(cudaStreamSynchronize(place.streams[0]) == cudaErrorIllegalAddress);
  CHECK(cudaMemsetAsync(place.memory, 0, kBytes, place.streams[1]) == cudaErrorIllegalAddress);
}

TEST_CASE("fakes: handles of the past, and of another GPU") {
  CHECK(has(fault_of([](const Place& p) {
              cudaEvent_t event = nullptr;
              cudaEventCreateWithFlags(&event, cudaEventDefault);
              cudaEventDestroy(event);
              CHECK(cudaEventRecord(event, p.streams[0]) == cudaErrorInvalidResourceHandle);
            }),
            "an event is used that is not there"));
  CHECK(has(fault_of([](const Place& p) {
              float milliseconds = 0;
              CHECK(cudaEventElapsedTime(&milliseconds, p.event, p.event) == cudaErrorInvalidValue);
            }),
            "that have none"));
  const Machine machine(2);
  {
    const Place first(0), second(1);
    first.write(0);
    CHECK(cudaSetDevice(0) == cudaSuccess);
  }
  REQUIRE(machine.faults().size() > 0);
  CHECK(has(machine.faults().front(), "a stream of GPU 0 is used while GPU 1 is the current one"));
}

TEST_CASE("fakes: what is not given back is listed") {
  const Machine machine(1);
  {
    const Place place;
    CHECK(machine.leaks() == std::vector<std::string>{"a stream", "a stream", "an event", "64 bytes of device memory"});
  }
  CHECK(machine.leaks().empty());
  void* pinned = nullptr;
  CHECK(cudaMallocHost(&pinned, 8) == cudaSuccess);
  cublasHandle_t handle = nullptr;
  CHECK(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(machine.leaks() == std::vector<std::string>{"a handle of cuBLAS", "8 bytes of pinned memory"});
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("fakes: cuBLAS refuses wrong leading dimensions, types that don't go together, and handles without a stream") {
  const auto product = [](int ld, cudaDataType of_c, bool stream) {
    return fault_of([=](const Place& p) {
      cublasHandle_t handle = nullptr;
      cublasCreate(&handle);
      if (stream) cublasSetStream(handle, p.streams[0]);
      const float one = 1, zero = 0;
      cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, p.memory, CUDA_R_32F, ld, 0, p.memory + 16, CUDA_R_32F, 2, 0, &zero,
                                 p.memory + 32, of_c, 2, 0, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
      cudaDeviceSynchronize();
      cublasDestroy(handle);
    });
  };
  CHECK(product(2, CUDA_R_32F, true).empty());
  CHECK(has(product(1, CUDA_R_32F, true), "leading dimension"));
  CHECK(has(product(2, CUDA_R_64F, true), "does not multiply these types"));
  CHECK(has(product(2, CUDA_R_32F, false), "without a stream"));
}

/// Calls f(rank, communicator, place) on two ranks, each a thread with a GPU of its own.
void on_two_ranks(const std::function<void(int, ncclComm_t, const Place&)>& f) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([=] {
      const Place place(rank);
      ncclComm_t comm = nullptr;
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      ncclCommInitRankConfig(&comm, 2, id, rank, &config);
      for (ncclResult_t state = ncclInProgress; state == ncclInProgress;) ncclCommGetAsyncError(comm, &state);
      f(rank, comm, place);
      ncclResult_t state = ncclSuccess;
      ncclCommGetAsyncError(comm, &state);
      if (state != ncclSuccess) ncclCommAbort(comm);
      cudaDeviceSynchronize();
      if (state == ncclSuccess) ncclCommDestroy(comm);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Waits until NCCL has an error, or the stream is done.
void wait_for_error(ncclComm_t comm, const Place& place) {
  cudaEventRecord(place.event, place.streams[0]);
  for (ncclResult_t state = ncclSuccess; state == ncclSuccess && cudaEventQuery(place.event) == cudaErrorNotReady;) ncclCommGetAsyncError(comm, &state);
}

TEST_CASE("fakes: ranks that disagree about a collective, its count or its type") {
  const auto faults = [](std::size_t count, ncclDataType_t type, bool gather) {
    const Machine machine(2);
    on_two_ranks([&](int rank, ncclComm_t comm, const Place& p) {
      if (rank == 0) ncclAllReduce(p.memory, p.memory, 4, ncclFloat32, ncclSum, comm, p.streams[0]);
      else if (gather) ncclAllGather(p.memory, p.memory, 4, ncclFloat32, comm, p.streams[0]);
      else ncclAllReduce(p.memory, p.memory, count, type, ncclSum, comm, p.streams[0]);
      wait_for_error(comm, p);
    });
    CHECK(machine.leaks().empty());
    const auto found = machine.faults();
    return found.empty() ? "" : found.front();
  };
  CHECK(faults(4, ncclFloat32, false).empty());
  CHECK(has(faults(3, ncclFloat32, false), "ranks disagree about a collective"));
  CHECK(has(faults(4, ncclBfloat16, false), "ranks disagree about a collective"));
  CHECK(has(faults(4, ncclFloat32, true), "ranks disagree about a collective"));
}

TEST_CASE("fakes: a collective of memory that another stream still writes; a peer that fails is seen by all") {
  Machine machine(2);
  on_two_ranks([&](int rank, ncclComm_t comm, const Place& p) {
    if (rank == 0) p.write(1);
    ncclAllReduce(p.memory, p.memory, 4, ncclFloat32, ncclSum, comm, p.streams[0]);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    machine.fail_network(rank);
    wait_for_error(comm, p);
  });
  REQUIRE(machine.faults().size() == 1);
  CHECK(machine.faults().front().starts_with("GPU 0: stream "));
  CHECK(has(machine.faults().front(), ", and has not waited for it"));
  CHECK(machine.leaks().empty());
}

TEST_CASE("fakes: communicators that are gone, that block, or of another GPU") {
  Machine machine(2);
  ncclComm_t gone = nullptr;
  on_two_ranks([&](int rank, ncclComm_t comm, const Place& p) {
    ncclConfig_t blocking = NCCL_CONFIG_INITIALIZER;
    ncclComm_t other = nullptr;
    CHECK(ncclCommSplit(comm, 0, 0, &other, &blocking) == ncclInvalidUsage);
    CHECK(ncclAllReduce(p.memory, p.memory, 0, ncclFloat32, ncclSum, comm, p.streams[0]) == ncclInvalidUsage);
    if (rank == 0) gone = comm;
  });
  ncclResult_t state = ncclSuccess;
  CHECK(ncclCommGetAsyncError(gone, &state) == ncclInvalidArgument);
  const auto faults = machine.faults();
  REQUIRE(faults.size() == 3);
  CHECK(has(faults[2], "a communicator is used that is not there"));
}

}  // namespace
}  // namespace stepcast::fakes
