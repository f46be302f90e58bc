// SPDX-License-Identifier: Apache-2.0
// The plug-in libforetoken_mpi.so: ranks by the MPI library that it is linked with.
#define OMPI_SKIP_MPICXX 1  // the C interface alone, of Open MPI and of MPICH
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/liveness.h"
#include "comm/mpi_plugin.h"
#include "foretoken/catalogue.h"

namespace foretoken::comm {
namespace {

using Clock = Liveness::Clock;

constexpr auto kSpin = std::chrono::milliseconds(2);  // then an idle rank sleeps between looks
constexpr auto kNap = std::chrono::microseconds(200);
constexpr auto kLongNap = std::chrono::milliseconds(2);  // after a second without work
constexpr auto kPulse = std::chrono::milliseconds(100);  // between signs of life
constexpr auto kSilenceAtEnd = std::chrono::milliseconds(500);
constexpr auto kLastWords = std::chrono::milliseconds(100);  // MPICH's mpirun must pass them on
constexpr int kPulseTag = 1;
constexpr std::int64_t kAsksForEnd = std::int64_t{1} << 62;  // beside the number of calls
constexpr int kAborted = 1;                                  // exit code of all ranks
constexpr double kPatience = 6;                              // in deadlines

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double MicrosecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

std::string TextOf(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

// Signals are for the program's own threads.
void LeaveSignalsToOthers() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

std::vector<std::string> HostsOf(int size) {
  std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
  int length = 0;
  MPI_Get_processor_name(own.data(), &length);
  std::vector<char> all(static_cast<std::size_t>(size) * own.size());
  MPI_Allgather(own.data(), static_cast<int>(own.size()), MPI_CHAR, all.data(),
                static_cast<int>(own.size()), MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> hosts;
  for (int r = 0; r < size; ++r)
    hosts.emplace_back(all.data() + static_cast<std::size_t>(r) * own.size());
  return hosts;
}

// Rank 0 watches all others, which watch rank 0.
std::vector<int> WatchedBy(int rank, int size) {
  if (rank != 0) return {0};
  std::vector<int> others;
  for (int r = 1; r < size; ++r) others.push_back(r);
  return others;
}

// The signs of life that this rank exchanges with another one.
struct Pulse {
  int rank;
  std::int64_t sent = 0, heard = 0;  // numbers of calls
  MPI_Request sending = MPI_REQUEST_NULL, hearing = MPI_REQUEST_NULL;
};

class Mpi final : public Ranks {
 public:
  Mpi(int rank, int size, const MpiOptions& options)
      : Ranks(rank, HostsOf(size)),
        grace_(Seconds(0.1 * options.deadline_s)),
        patience_(Seconds(kPatience * options.deadline_s)),
        counts_(static_cast<std::size_t>(size)),
        liveness_(WatchedBy(rank, size), Seconds(0.5 * options.deadline_s), Clock::now()) {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (alone()) return;
    for (const int other : WatchedBy(rank, size)) pulses_.push_back({.rank = other});
    watch_ = std::jthread([this](const std::stop_token& stop) { Watch(stop); });
  }
  ~Mpi() override;

  bool Gather(std::byte* bytes, std::span<const std::int32_t> begins) noexcept override {
    return Collect(begins, true, [&](MPI_Request& request) {
      return MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, bytes, counts_.data(),
                             begins.data(), MPI_BYTE, MPI_COMM_WORLD, &request);
    });
  }

  bool GatherToLead(std::byte* bytes, std::span<const std::int32_t> begins) noexcept override {
    return Collect(begins, leads(), [&](MPI_Request& request) {
      const void* const own = leads() ? MPI_IN_PLACE : bytes + begins[at(rank_)];
      return MPI_Igatherv(own, counts_[at(rank_)], MPI_BYTE, bytes, counts_.data(), begins.data(),
                          MPI_BYTE, 0, MPI_COMM_WORLD, &request);
    });
  }

  bool Broadcast(std::span<std::byte> bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    if (!Begin()) return false;
    const int error = Start(bytes, request);
    ++traffic_.broadcasts;
    return Complete(error, request, Clock::now());
  }

  bool Await(std::span<std::byte> bytes) noexcept override {
    std::unique_lock lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    if (!Begin()) return false;
    const int error = Start(bytes, request);
    ++traffic_.broadcasts;
    return WaitForLong(error, request, lock);
  }

  bool Meet() noexcept override {
    std::unique_lock lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    return Begin() && WaitForLong(MPI_Ibarrier(MPI_COMM_WORLD, &request), request, lock);
  }

  void Abort(const std::string& why) noexcept override {
    fmt::print(stderr, "foretoken: {}: {}\n", Place(rank_), why);
    std::this_thread::sleep_for(kLastWords);
    MPI_Abort(MPI_COMM_WORLD, kAborted);
    std::_Exit(kAborted);
  }

  void ExpectEnd() noexcept override { ends_ = true; }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  std::string Place(int rank) const { return fmt::format("rank {} on {}", rank, host(rank)); }

  static int Start(std::span<std::byte> bytes, MPI_Request& request) {
    return MPI_Ibcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD,
                      &request);
  }

  // A gather that `start` begins. receives: this rank gets the parts of the others.
  template <typename StartGather>
  bool Collect(std::span<const std::int32_t> begins, bool receives, StartGather&& start) noexcept {
    const std::lock_guard lock(mutex_);
    const auto begin = Clock::now();
    for (int r = 0; r < size_; ++r) counts_[at(r)] = begins[at(r) + 1] - begins[at(r)];
    MPI_Request request = MPI_REQUEST_NULL;
    if (!Begin()) return false;
    const int error = start(request);
    if (!Complete(error, request, begin)) return false;
    ++traffic_.gathers;
    if (receives) traffic_.gathered_bytes += begins[at(size_)] - counts_[at(rank_)];
    traffic_.wait_us += MicrosecondsSince(begin);
    return true;
  }

  // False: a rank is lost, and no call can be made.
  bool Begin() noexcept {
    ++calls_;
    return Ended(MPI_SUCCESS);
  }

  // Spins until the request is done. Where there are fewer processors than ranks, others get a
  // chance to run. The clock is read after each MPI_Test: Open MPI may yield the processor in it,
  // and get it back late beside busy programs.
  bool Complete(int error, MPI_Request& request, Clock::time_point begin) noexcept {
    int done = 0;
    for (int looks = 1; error == MPI_SUCCESS && loss_.empty(); ++looks) {
      error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) break;
      if (looks % 64 == 0) sched_yield();
      const auto now = Clock::now();
      if (now >= next_pulse_) Exchange(now);
      if (now - begin < patience_) continue;
      if (const auto late = liveness_.Behind(calls_))
        Lose(
            fmt::format("{} answers, but has not taken part in a pass for {:.0f} s; look at its "
                        "disk and its memory, and start all ranks again",
                        Place(*late), MicrosecondsSince(begin) / 1e6));
    }
    return Ended(error);
  }

  // Until the request is done, which may take any time, and then costs next to no processor time.
  bool WaitForLong(int error, MPI_Request& request, std::unique_lock<std::mutex>& lock) noexcept {
    const auto begin = Clock::now();
    for (int done = 0; error == MPI_SUCCESS && loss_.empty();) {
      error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0) break;
      const auto waited = Clock::now() - begin;
      if (waited < kSpin) {
        sched_yield();
        continue;
      }
      lock.unlock();
      std::this_thread::sleep_for(waited > std::chrono::seconds(1) ? Clock::duration(kLongNap)
                                                                   : kNap);
      lock.lock();
    }
    return Ended(error);
  }

  // Whether a call has succeeded. Where it has not, why() says what happened.
  bool Ended(int error) noexcept {
    if (error != MPI_SUCCESS)
      Lose(fmt::format("{} lost another rank ({}); start all ranks again", Place(rank_),
                       TextOf(error)));
    if (loss_.empty()) return true;
    why_ = loss_;
    return false;
  }

  void Lose(const std::string& why) {
    if (!loss_.empty()) return;
    loss_ = "ranks: " + why;
    lost_at_ = Clock::now();
    SetLost(loss_);
  }

  // Sends and receives signs of life, and looks whether a rank is lost.
  void Exchange(Clock::time_point now) noexcept {
    next_pulse_ = now + kPulse;
    for (Pulse& pulse : pulses_) {
      int done = 0;
      MPI_Test(&pulse.sending, &done, MPI_STATUS_IGNORE);
      if (done != 0) {
        pulse.sent = calls_ | (asks_for_end_ ? kAsksForEnd : 0);
        MPI_Isend(&pulse.sent, 1, MPI_INT64_T, pulse.rank, kPulseTag, MPI_COMM_WORLD,
                  &pulse.sending);
      }
      for (;;) {
        if (pulse.hearing != MPI_REQUEST_NULL) {
          MPI_Test(&pulse.hearing, &done, MPI_STATUS_IGNORE);
          if (done == 0) break;
          if ((pulse.heard & kAsksForEnd) != 0) end_asked_ = true;
          liveness_.Hear(pulse.rank, pulse.heard & ~kAsksForEnd, now);
        }
        if (MPI_Irecv(&pulse.heard, 1, MPI_INT64_T, pulse.rank, kPulseTag, MPI_COMM_WORLD,
                      &pulse.hearing) != MPI_SUCCESS)
          break;
      }
    }
    if (ends_.exchange(false)) liveness_.SetSilence(kSilenceAtEnd);
    if (const auto lost = liveness_.Lost(now))
      Lose(
          fmt::format("{} does not answer any more; look at its machine, and start all ranks "
                      "again",
                      Place(*lost)));
  }

  // A thread of its own: it does what no call does meanwhile, and ends the process after a loss.
  void Watch(const std::stop_token& stop) {
    LeaveSignalsToOthers();
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, stop, kPulse, [&] { return stop.stop_requested(); })) {
      const auto now = Clock::now();
      if (now >= next_pulse_) Exchange(now);
      if (!loss_.empty() && now - lost_at_ > grace_) Abort(loss_);
    }
  }

  const Clock::duration grace_, patience_;
  std::vector<int> counts_;

  std::mutex mutex_;  // of all that follows, and of calls of MPI
  std::condition_variable_any wake_;
  std::int64_t calls_ = 0;
  std::vector<Pulse> pulses_;
  Clock::time_point next_pulse_{}, lost_at_{};
  Liveness liveness_;
  std::string loss_;  // why; empty: no rank is
  std::atomic<bool> ends_ = false;
  std::jthread watch_;
};

// Ends the process where not all ranks have joined in time: a rank that is stopped before it is
// watched keeps the others within MPI for ever.
class Joining {
 public:
  explicit Joining(Clock::duration patience)
      : watch_([this, patience](const std::stop_token& stop) {
          LeaveSignalsToOthers();
          std::unique_lock lock(mutex_);
          wake_.wait_for(lock, stop, patience, [&] { return stop.stop_requested(); });
          if (!stop.stop_requested()) GiveUp(patience);
        }) {}

 private:
  [[noreturn]] static void GiveUp(Clock::duration patience) {
    std::array<char, 256> machine{};
    gethostname(machine.data(), machine.size() - 1);
    fmt::print(stderr,
               "foretoken: rank {} on {}: not all ranks have joined in {:.0f} s, because one is "
               "stopped or its machine is slow; look at them, and start all ranks again\n",
               StartedRank(), machine.data(), std::chrono::duration<double>(patience).count());
    std::this_thread::sleep_for(kLastWords);
    std::_Exit(kAborted);
  }

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread watch_;
};

// Nobody leaves before all want to: until then each answers the others.
Mpi::~Mpi() {
  {
    std::unique_lock lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    if (!Begin() || !WaitForLong(MPI_Ibarrier(MPI_COMM_WORLD, &request), request, lock)) return;
  }
  watch_.request_stop();
  if (watch_.joinable()) watch_.join();
  for (Pulse& pulse : pulses_)
    for (MPI_Request* const request : {&pulse.sending, &pulse.hearing})
      if (*request != MPI_REQUEST_NULL) {
        MPI_Cancel(request);
        MPI_Request_free(request);
      }
  MPI_Finalize();
}

Result<std::unique_ptr<Ranks>> Join(const MpiOptions& options) {
  const Joining joining(Seconds(kPatience * options.deadline_s));
  int provided = MPI_THREAD_SINGLE, rank = 0, size = 1;
  const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (error != MPI_SUCCESS || provided < MPI_THREAD_SERIALIZED)
    return Fail(ErrorCode::kIo,
                "ranks: MPI cannot be started with threads (MPI_THREAD_SERIALIZED); use Open MPI 4 "
                "or MPICH 4");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<Mpi>(rank, size, options);
}

}  // namespace
}  // namespace foretoken::comm

const foretoken::comm::MpiPlugin foretoken_mpi_plugin = {
    foretoken::kVersion, sizeof(foretoken::comm::Ranks), foretoken::comm::Join};
