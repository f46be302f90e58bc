// SPDX-License-Identifier: Apache-2.0
// foretoken/ranks.h: several processes ("ranks") that compute one network together, on one machine
// or on several. MPI starts and connects them: mpirun, srun, an MPIJob.
//
// Each rank loads a part of the weights and keeps a part of the cache. Texts and log-probabilities
// are those of one process, to the bit. Rank 0 leads: it opens engines, with this group in their
// options, and runs requests. All other ranks follow until rank 0 leaves.
//
//   auto group = foretoken::RankGroup::Join({.arguments = {argv + 1, argv + argc}});
//   if (!(*group)->leads()) return (*group)->Follow() ? 0 : 1;
//   auto engine = foretoken::Engine::Open({.model = "large.gguf", .ranks = *group});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

struct RankOptions {
  // All ranks are gone so many seconds after one of them has died or stopped, at most.
  double deadline_s = 10;
  // What this process was started with. It must be the same on all ranks.
  std::vector<std::string> arguments = {};
};

class RankGroup {
 public:
  // The number of processes that mpirun or a batch system has started, this one among them; 1 where it
  // runs alone.
  static int StartedRanks() noexcept;
  // The number that this process has among them, before it joins.
  static int StartedRank() noexcept;

  // Connects this process with the others; once in a process. All ranks do it. It loads MPI, from
  // libforetoken_mpi.so, which the linker's folders must have. Errors: kUnsupported (MPI cannot be loaded,
  // or is another one than the processes were started by), kMismatch (ranks of
  // other versions or with other arguments: all ranks get the same list of what differs, and where),
  // kIo (MPI refuses), kRankLost.
  [[nodiscard]] static Result<std::shared_ptr<RankGroup>> Join(const RankOptions& options);

  // Rank 0 lets the others leave. Engines that use the group keep it.
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const noexcept;
  int size() const noexcept;
  bool leads() const noexcept { return rank() == 0; }

  // All ranks but 0: does what rank 0 asks for until it leaves. Errors: kRankLost, kIo (a
  // file has changed).
  [[nodiscard]] Status Follow();

  // This process is about to end. From now on a rank that is gone is noticed in half a second, so that
  // requests are still answered before a batch system ends this process too. Any thread may call it.
  void ExpectEnd() noexcept;

  // A follower was told to end: rank 0 hears of it, and should end its work and leave, with which all
  // ranks end in order. A signal handler may call it.
  void AskForEnd() noexcept;
  // Rank 0: whether a follower has asked for that. Any thread may call it.
  bool end_asked() const noexcept;

  // Why rank 0 can run no more requests: a rank is lost, and a second later this process ends too. Empty:
  // none is lost. Any thread may call it.
  std::string lost() const;

  class Impl;  // of the library
  explicit RankGroup(std::unique_ptr<Impl> impl);
  Impl& impl() noexcept { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
