// Ranks by MPI. docs/sweep.md, "Several machines"; test: tests/golden/sweep_mpi_test.cpp.
#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include "cli/sweep/ranks.hpp"
#include "hw_models/input_error.hpp"

namespace stepcast::cli {
namespace {

constexpr int kPoint = 1;
constexpr std::size_t kKeyBytes = sizeof(std::uint64_t);

/// MPI ends the program itself when a call fails (MPI_ERRORS_ARE_FATAL, the default), so that results of calls need no look.
class MpiRanks final : public Ranks {
 public:
  MpiRanks() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    if (provided < MPI_THREAD_SERIALIZED) throw std::runtime_error("this MPI does not let several threads send in turn");
  }
  /// The others wait asleep until the first is done.
  ~MpiRanks() override {
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), done == 0;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    MPI_Finalize();
  }
  MpiRanks(const MpiRanks&) = delete;
  MpiRanks& operator=(const MpiRanks&) = delete;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }

  std::vector<std::uint64_t> from_first(std::vector<std::uint64_t> numbers) override {
    std::uint64_t count = numbers.size();
    MPI_Bcast(&count, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    numbers.resize(count);
    MPI_Bcast(numbers.data(), static_cast<int>(count), MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return numbers;
  }

  void send(std::uint64_t key, const std::string& text) override {
    std::string message(kKeyBytes, '\0');
    std::copy_n(reinterpret_cast<const char*>(&key), kKeyBytes, message.data());  // between processes of one program: the same byte order
    message += text;
    MPI_Send(message.data(), static_cast<int>(message.size()), MPI_BYTE, 0, kPoint, MPI_COMM_WORLD);
  }

  std::optional<std::pair<std::uint64_t, std::string>> arrived() override {
    int there = 0, bytes = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kPoint, MPI_COMM_WORLD, &there, &status);
    if (there == 0) return std::nullopt;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    std::string message(static_cast<std::size_t>(bytes), '\0');
    MPI_Recv(message.data(), bytes, MPI_BYTE, status.MPI_SOURCE, kPoint, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::uint64_t key = 0;
    std::copy_n(message.data(), kKeyBytes, reinterpret_cast<char*>(&key));
    return std::pair(key, message.substr(kKeyBytes));
  }

  void abort(int exit_code) override {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<Ranks> open_ranks(const Launch& launch) {
  if (!launch.connected && launch.rank > 0) return nullptr;  // the first rank says it
  require_connected(launch, "sweep");
  auto ranks = std::make_unique<MpiRanks>();
  if (ranks->size() == launch.size) return ranks;
  if (launch.rank > 0) return nullptr;  // the first rank says it
  throw InputError("sweep", "", fmt::format("was started as {} processes, of which MPI sees {}", launch.size, ranks->size()),
                   "use the mpirun of the MPI that stepcast was built with");
}

}  // namespace stepcast::cli
