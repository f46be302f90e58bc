// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <mpi.h>
#include <sched.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

namespace foretoken::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kSpin = std::chrono::milliseconds(2);  // then an idle rank sleeps between looks
constexpr auto kNap = std::chrono::microseconds(200);
constexpr auto kLongNap = std::chrono::milliseconds(2);  // after a second without work
constexpr int kAborted = 1;                              // exit code of all ranks

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::string TextOf(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

// Where the ranks run, for messages: "rank 2 on node7".
std::vector<std::string> PlacesOf(int size) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<char> all(static_cast<std::size_t>(size) * own.size());
  MPI_Allgather(own.data(), static_cast<int>(own.size()), MPI_CHAR, all.data(),
                static_cast<int>(own.size()), MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> places;
  for (int r = 0; r < size; ++r)
    places.push_back(
        fmt::format("rank {} on {}", r, all.data() + static_cast<std::size_t>(r) * own.size()));
  return places;
}

class Mpi final : public Ranks {
 public:
  Mpi(int rank, int size, const MpiOptions& options)
      : Ranks(rank, size),
        deadline_(std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double>(options.deadline_s))),
        places_(PlacesOf(size)),
        counts_(static_cast<std::size_t>(size)) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  ~Mpi() override {
    if (why_.empty()) MPI_Finalize();
  }

  bool Gather(std::byte* bytes, std::span<const std::int32_t> begins) noexcept override {
    if (!why_.empty()) return false;
    const auto begin = Clock::now();
    for (int r = 0; r < size_; ++r) counts_[at(r)] = begins[at(r) + 1] - begins[at(r)];
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, counts_.data(),
                                      begins.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
    if (!Complete(error, request, begin)) return false;
    ++traffic_.gathers;
    traffic_.gathered_bytes += begins[at(size_)] - counts_[at(rank_)];
    traffic_.wait_us += MicrosecondsSince(begin);
    return true;
  }

  bool Broadcast(std::span<std::byte> bytes) noexcept override {
    if (!why_.empty()) return false;
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = Start(bytes, request);
    ++traffic_.broadcasts;
    return Complete(error, request, Clock::now());
  }

  bool Await(std::span<std::byte> bytes) noexcept override {
    if (!why_.empty()) return false;
    const auto begin = Clock::now();
    MPI_Request request = MPI_REQUEST_NULL;
    int error = Start(bytes, request), done = 0;
    ++traffic_.broadcasts;
    while (error == MPI_SUCCESS) {
      error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) break;
      const auto waited = Clock::now() - begin;
      if (waited > std::chrono::seconds(1))
        std::this_thread::sleep_for(kLongNap);
      else if (waited > kSpin)
        std::this_thread::sleep_for(kNap);
    }
    return error == MPI_SUCCESS || Lose(error);
  }

  void Abort(const std::string& why) noexcept override {
    fmt::print(stderr, "foretoken: {}: {}\n", places_[at(rank_)], why);
    MPI_Abort(MPI_COMM_WORLD, kAborted);
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

  static int Start(std::span<std::byte> bytes, MPI_Request& request) {
    return MPI_Ibcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD,
                      &request);
  }

  // Spins until the request is done. Where there are fewer processors than ranks, others get a
  // chance to run.
  bool Complete(int error, MPI_Request& request, Clock::time_point begin) noexcept {
    int done = 0;
    for (int looks = 1; error == MPI_SUCCESS; ++looks) {
      error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) break;
      if (looks % 64 != 0) continue;
      sched_yield();
      if (Clock::now() - begin < deadline_) continue;
      why_ = fmt::format(
          "ranks: {} waited {:.0f} s for others, and at least one of {} does not answer; look at "
          "their machines, and start all ranks again",
          places_[at(rank_)], std::chrono::duration<double>(deadline_).count(),
          fmt::join(Others(), ", "));
      return false;
    }
    return error == MPI_SUCCESS || Lose(error);
  }

  bool Lose(int error) noexcept {
    why_ = fmt::format("ranks: {} lost one of {} ({}); start all ranks again", places_[at(rank_)],
                       fmt::join(Others(), ", "), TextOf(error));
    return false;
  }

  std::vector<std::string> Others() const {
    std::vector<std::string> others = places_;
    others.erase(others.begin() + rank_);
    return others;
  }

  const Clock::duration deadline_;
  const std::vector<std::string> places_;
  std::vector<int> counts_;
};

}  // namespace

bool HasMpi() noexcept {
  return true;
}

Result<std::unique_ptr<Ranks>> JoinMpi(const MpiOptions& options) {
  int provided = MPI_THREAD_SINGLE, rank = 0, size = 1;
  const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (error != MPI_SUCCESS || provided < MPI_THREAD_FUNNELED)
    return Fail(ErrorCode::kIo,
                "ranks: MPI cannot be started with threads (MPI_THREAD_FUNNELED); use Open MPI 4 "
                "or MPICH 4");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<Mpi>(rank, size, options);
}

}  // namespace foretoken::comm
