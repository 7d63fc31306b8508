// Letters over MPI.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <list>
#include <stdexcept>
#include <thread>
#include <utility>

#include "real_backend/mpi/driver.hpp"

namespace stepcast::real::mpi {
namespace {

constexpr int kLetter = 1;  // the tag
constexpr std::chrono::milliseconds kLookForLetters{1};
constexpr std::chrono::seconds kEnd{10};  // for the first process to end all of them

/// MPI ends the program itself when a call fails (MPI_ERRORS_ARE_FATAL, the default), so that results of calls need no look.
class MpiPeers final : public Peers {
 public:
  MpiPeers() {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_dup(MPI_COMM_WORLD, &letters_);
    if (provided < MPI_THREAD_MULTIPLE) throw std::runtime_error("this MPI does not let several threads communicate at a time (MPI_THREAD_MULTIPLE)");
  }
  /// All leave together, and wait asleep for that.
  ~MpiPeers() override {
    if (aborted_) return;
    MPI_Request all = MPI_REQUEST_NULL;
    MPI_Ibarrier(letters_, &all);
    for (int done = 0; MPI_Test(&all, &done, MPI_STATUS_IGNORE), done == 0 || !sent();) std::this_thread::sleep_for(kLookForLetters);
    MPI_Comm_free(&letters_);
    MPI_Finalize();
  }

  [[nodiscard]] std::int32_t rank() const override { return rank_; }
  [[nodiscard]] std::int32_t size() const override { return size_; }

  void send(std::int32_t to, std::string text) override {
    if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) throw std::runtime_error("a letter to another process is too long for MPI");
    Outgoing& letter = outgoing_.emplace_back(Outgoing{std::move(text)});
    MPI_Isend(letter.text.data(), static_cast<int>(letter.text.size()), MPI_BYTE, to, kLetter, letters_, &letter.request);
  }

  std::optional<Letter> arrived() override {
    sent();
    int there = 0, bytes = 0;
    MPI_Status status;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Improbe(MPI_ANY_SOURCE, kLetter, letters_, &there, &message, &status);
    if (there == 0) return std::nullopt;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Letter letter{status.MPI_SOURCE, std::string(static_cast<std::size_t>(bytes), '\0'), false};
    MPI_Mrecv(letter.text.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    return letter;
  }

  void abort(int exit_code) override {
    aborted_ = true;
    std::fflush(nullptr);
    if (rank_ > 0) std::this_thread::sleep_for(kEnd);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
  }

 private:
  struct Outgoing {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// Forgets what has gone out; true if that is all.
  bool sent() {
    std::erase_if(outgoing_, [](Outgoing& letter) {
      int done = 0;
      MPI_Test(&letter.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    return outgoing_.empty();
  }

  int rank_ = 0, size_ = 1;
  bool aborted_ = false;
  MPI_Comm letters_ = MPI_COMM_NULL;
  std::list<Outgoing> outgoing_;
};

}  // namespace

Processes start() {
  Processes processes{std::make_unique<MpiPeers>()};
  MPI_Comm here = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_size(here, &processes.on_this_machine);
  MPI_Comm_free(&here);
  return processes;
}

}  // namespace stepcast::real::mpi
