// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/rank_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "base/machine/cpus.h"
#include "base/machine/thread_count.h"
#include "comm/agreement.h"
#include "comm/mpi.h"
#include "foretoken/catalogue.h"
#include "loader/memory_plan.h"
#include "loader/ranks/follower.h"
#include "loader/ranks/kernel_hash.h"
#include "loader/ranks/open_order.h"

namespace foretoken {
namespace {

// A flag and its value are one fact.
void AddArguments(const std::vector<std::string>& arguments, std::vector<comm::Fact>& facts) {
  int n_plain = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::size_t equals = argument.find('=');
    const bool flag = argument.starts_with("-") && argument.size() > 1;
    if (flag && equals != std::string::npos)
      facts.push_back({argument.substr(0, equals), argument.substr(equals + 1)});
    else if (flag && i + 1 < arguments.size() && !arguments[i + 1].starts_with("-"))
      facts.push_back({argument, arguments[++i]});
    else if (flag)
      facts.push_back({argument, "set"});
    else
      facts.push_back({fmt::format("argument {}", ++n_plain), argument});
  }
}

Status Shake(comm::Ranks& ranks, const RankOptions& options) {
  std::vector<comm::Fact> facts = {
      {"the version of foretoken", kVersion},
      {"the hash of the kernels' results", fmt::format("{:016x}", loader::KernelHash())}};
  AddArguments(options.arguments, facts);
  return comm::Agree(ranks, facts);
}

// Ranks of one machine that MPI has not bound to processors of their own share all of them.
Result<int> CountSharing(comm::Ranks& ranks) {
  auto cpus = UsableCpus();
  std::sort(cpus.begin(), cpus.end());
  const std::string own = fmt::format("{}: {}", ranks.host(ranks.rank()), fmt::join(cpus, " "));
  FORETOKEN_TRY(const auto all, comm::GatherTexts(ranks, own));
  return static_cast<int>(std::count(all.begin(), all.end(), own));
}

}  // namespace

int RankGroup::StartedRanks() noexcept {
  return comm::StartedRanks();
}

int RankGroup::StartedRank() noexcept {
  return comm::StartedRank();
}

Result<std::shared_ptr<RankGroup>> RankGroup::Join(const RankOptions& options) {
  FORETOKEN_TRY(auto ranks, comm::JoinMpi({.deadline_s = options.deadline_s}));
  if (ranks->size() < StartedRanks())
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format("ranks: {} processes were started together, and MPI connects {}; use the "
                    "mpirun of the MPI that foretoken was built with",
                    StartedRanks(), ranks->size()));
  FORETOKEN_CHECK_OK(Shake(*ranks, options));
  FORETOKEN_TRY(const int n_sharing, CountSharing(*ranks));
  return std::make_shared<RankGroup>(std::make_unique<Impl>(std::move(ranks), n_sharing));
}

RankGroup::RankGroup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

RankGroup::~RankGroup() {
  if (leads()) impl_->Leave();
}

int RankGroup::rank() const noexcept {
  return impl_->ranks().rank();
}
int RankGroup::size() const noexcept {
  return impl_->ranks().size();
}

Status RankGroup::Follow() {
  return loader::Follower(*impl_).Run();
}

void RankGroup::ExpectEnd() noexcept {
  impl_->ranks().ExpectEnd();
}

void RankGroup::AskForEnd() noexcept {
  impl_->ranks().AskForEnd();
}

bool RankGroup::end_asked() const noexcept {
  return impl_->ranks().end_asked();
}

std::string RankGroup::lost() const {
  return impl_->ranks().lost();
}

Result<int> RankGroup::Impl::ThreadsFor(int asked) const {
  const char* const set = std::getenv("FORETOKEN_THREADS");
  FORETOKEN_TRY(const int threads, ThreadCount(asked));
  const bool automatic = asked == 0 && (set == nullptr || *set == '\0');
  return automatic ? std::max(1, threads / n_sharing_) : threads;
}

Status RankGroup::Impl::Prepare(const loader::TeamOrder& team, const kernels::Kernels& kernels,
                                ThreadPool& pool) {
  model::Message message;
  message.Begin(model::Order::kPrepare, 0);
  VisitFields(team, model::AddFields(message));
  if (!message.Send(*ranks_)) return comm::Lost(*ranks_);
  FORETOKEN_CHECK_OK(comm::AllDone(*ranks_, {}));
  return MeasureSpeeds(kernels, pool);
}

Status RankGroup::Impl::MeasureSpeeds(const kernels::Kernels& kernels, ThreadPool& pool) {
  if (speeds_.n_ranks() != 0) return {};
  FORETOKEN_TRY(speeds_, model::MeasureSpeeds(*ranks_, kernels, pool));
  shares_ = model::SharesOf(speeds_.bytes_per_second);
  return {};
}

void RankGroup::Impl::DivideDraft(loader::DraftPart& draft) {
  const MemoryNeeds needs = loader::NeedsOf(draft.part, *draft.file);
  const model::PassSize size = {.bytes = needs.dense + needs.experts,
                                .n_layers = draft.part.config.n_layers()};
  if (draft.part.config.head || model::WorthDividing(size, speeds_)) Divide(draft.part.options);
}

void RankGroup::Impl::Leave() {
  model::Message message;
  message.Begin(model::Order::kLeave, 0);
  static_cast<void>(message.Send(*ranks_));  // ranks that are lost have left
}

Result<std::unique_ptr<ThreadPool>> loader::MakeTeam(EngineOptions& options,
                                                     const kernels::Kernels& kernels) {
  RankGroup::Impl* const group = options.ranks == nullptr ? nullptr : &options.ranks->impl();
  const TeamOrder order = {
      .isa = options.isa, .threads = options.threads, .pin = options.pin_threads};
  FORETOKEN_TRY(options.threads,
                group == nullptr ? ThreadCount(order.threads) : group->ThreadsFor(order.threads));
  auto pool =
      std::make_unique<ThreadPool>(options.threads, order.pin ? UsableCpus() : std::vector<int>());
  if (group != nullptr) FORETOKEN_CHECK_OK(group->Prepare(order, kernels, *pool));
  return pool;
}

}  // namespace foretoken
