// SPDX-License-Identifier: Apache-2.0
// comm/ranks.h: the processes ("ranks") that compute one network together, on one machine or on
// several.
//
// Each rank computes a part of the outputs of a product and gathers the parts of the others. No sum
// is divided, so results do not depend on the number of ranks, to the bit. Rank 0 leads: it owns the
// requests, and tells the others what to compute.
//
// All ranks make the same calls in the same order, each from one thread at a time. A call that cannot
// end, because a rank is gone or has stopped answering, returns false; from then on every call does,
// and why() says what happened. A moment later the process ends, so that no rank stays behind.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/stats.h"

namespace foretoken::comm {

class Ranks {
 public:
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  bool alone() const noexcept { return size_ == 1; }
  bool leads() const noexcept { return rank_ == 0; }
  // The name of the machine that a rank runs on.
  const std::string& host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }

  // Part r of `bytes` is [begins[r], begins[r + 1]). On entry this rank's part is written, on return
  // all parts are. begins: [size + 1], the same on each rank.
  [[nodiscard]] virtual bool Gather(std::byte* bytes,
                                    std::span<const std::int32_t> begins) noexcept = 0;

  // As Gather, but on return rank 0 alone has all parts. The others may go on before it has them.
  [[nodiscard]] virtual bool GatherToLead(std::byte* bytes,
                                          std::span<const std::int32_t> begins) noexcept = 0;

  // On return each rank has the bytes of rank 0. All spans have the same size.
  [[nodiscard]] virtual bool Broadcast(std::span<std::byte> bytes) noexcept = 0;

  // As Broadcast, for ranks that wait until rank 0 has work. It may take any time, as long as rank 0
  // answers, and after a while the waiting costs next to no processor time.
  [[nodiscard]] virtual bool Await(std::span<std::byte> bytes) noexcept = 0;

  // Waits until all ranks are here. It may take any time, as Await.
  [[nodiscard]] virtual bool Meet() noexcept = 0;

  // Ends all ranks with this message: what this rank found makes going on useless. Returns where
  // there are no others.
  virtual void Abort(const std::string& why) noexcept = 0;

  // This process is about to end. From now on a rank that is gone is noticed in half a second, so that
  // requests are still answered. Any thread may call it.
  virtual void ExpectEnd() noexcept = 0;

  // A follower asks rank 0 to end all in order. A signal handler may call it.
  void AskForEnd() noexcept { asks_for_end_ = true; }
  // Rank 0: a follower has asked for that. Any thread may call it.
  bool end_asked() const noexcept { return end_asked_; }

  // Why no call can succeed any more: a rank is lost. Empty: none is. Any thread may call it, and it
  // knows of a loss before the next call returns false.
  std::string lost() const;

  // Why a call has returned false. Empty: none has.
  const std::string& why() const noexcept { return why_; }
  // What this rank has exchanged so far.
  const RankTraffic& traffic() const noexcept { return traffic_; }

 protected:
  Ranks(int rank, std::vector<std::string> hosts)
      : rank_(rank), size_(static_cast<int>(hosts.size())), hosts_(std::move(hosts)) {}

  void SetLost(const std::string& why);

  const int rank_, size_;
  const std::vector<std::string> hosts_;
  std::string why_;
  RankTraffic traffic_;
  std::atomic<bool> asks_for_end_ = false, end_asked_ = false;

 private:
  mutable std::mutex lost_mutex_;
  std::string lost_;
};

// One process alone: nothing is sent.
class Alone : public Ranks {
 public:
  Alone();
  bool Gather(std::byte*, std::span<const std::int32_t>) noexcept override { return true; }
  bool GatherToLead(std::byte*, std::span<const std::int32_t>) noexcept override { return true; }
  bool Broadcast(std::span<std::byte>) noexcept override { return true; }
  bool Await(std::span<std::byte>) noexcept override { return true; }
  bool Meet() noexcept override { return true; }
  void Abort(const std::string&) noexcept override {}
  void ExpectEnd() noexcept override {}
};

}  // namespace foretoken::comm
