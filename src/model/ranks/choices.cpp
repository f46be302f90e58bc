// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/choices.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace foretoken::model {
namespace {

using kernels::ChoiceRule;

constexpr int kGroup = 64;  // columns that one thread has, because a race begins at such a multiple

// The first token where no token takes part, and where a lost rank left something else.
Token TokenOf(const kernels::Choice& choice, std::int32_t column) {
  return column >= 0 && column < choice.n_tokens ? column : 0;
}

bool Chooses(const Pass& pass) {
  return std::any_of(pass.choices.begin(), pass.choices.end(),
                     [](const auto& choice) { return choice.rule != ChoiceRule::kNone; });
}
bool HasRaces(const Pass& pass) {
  return std::any_of(pass.choices.begin(), pass.choices.end(),
                     [](const auto& choice) { return choice.rule == ChoiceRule::kRace; });
}

}  // namespace

Choices::Choices(const Workspace& space, const Activation& logits, const Gather& rows,
                 std::vector<std::int32_t> columns)
    : space_(space), logits_(logits), rows_(rows), columns_(std::move(columns)) {}

void Choices::AddPhases(std::vector<Phase>& phases) const {
  const auto add = [&](Phase phase) { phases.push_back(phase); };
  add(PhaseOf<&Choices::FindBest>(*this, Split::kOther, Chooses));
  add(PhaseOf<&Choices::ShareBest>(*this, Split::kOther, Chooses));
  add(PhaseOf<&Choices::Weigh>(*this, Split::kOther, HasRaces));
  add(PhaseOf<&Choices::ShareSums>(*this, Split::kOther, HasRaces));
  add(PhaseOf<&Choices::RunRaces>(*this, Split::kOther, HasRaces));
  add(PhaseOf<&Choices::ShareWinners>(*this, Split::kOther, HasRaces));
}

std::span<const Token> Choices::Chosen(const Pass& pass) const noexcept {
  if (!Chooses(pass)) return {};
  return {space_.scratch.choices.chosen.data(), pass.choices.size()};
}

// The thread's part of this rank's columns: whole groups, but for the rank's first and last one.
kernels::Columns Choices::ColumnsOf(int thread) const noexcept {
  const auto rank = static_cast<std::size_t>(space_.ranks.rank());
  const int begin = columns_[rank], end = columns_[rank + 1], first = begin / kGroup;
  const auto share = space_.pool.ShareOf((end + kGroup - 1) / kGroup - first, thread);
  return {std::clamp((first + share.begin) * kGroup, begin, end),
          std::clamp((first + share.end) * kGroup, begin, end)};
}

bool Choices::IsFinite(std::size_t row) const noexcept {
  Scratch& scratch = space_.scratch;
  for (int thread = 0; thread < space_.pool.team(); ++thread)
    if (scratch.NotFinite(thread)[row] != 0) return false;
  return true;
}

// The parts of all ranks, on rank 0 and with to_all on each rank: [ranks, own.size()]. A rank that
// has not got the others' parts has its own in their places.
template <typename Part>
std::span<const Part> Choices::Exchange(std::span<const Part> own, bool to_all) const noexcept {
  const auto n_ranks = static_cast<std::size_t>(space_.ranks.size());
  std::byte* const message = space_.scratch.gathered.data();
  std::int32_t* const begins = space_.scratch.gather_begins.data();
  for (std::size_t r = 0; r <= n_ranks; ++r)
    begins[r] = static_cast<std::int32_t>(r * own.size_bytes());
  for (std::size_t r = 0; r < n_ranks; ++r)
    std::memcpy(message + begins[r], own.data(), own.size_bytes());
  const std::span<const std::int32_t> parts(begins, n_ranks + 1);
  // A rank that is lost shows in why() of the ranks, and then nothing of the pass is used.
  static_cast<void>(to_all ? space_.ranks.Gather(message, parts)
                           : space_.ranks.GatherToLead(message, parts));
  return {reinterpret_cast<const Part*>(message), n_ranks * own.size()};
}

void Choices::FindBest(const Pass& pass, int thread) const noexcept {
  kernels::PartBest* const bests = space_.scratch.choices.Bests(thread);
  const kernels::Columns columns = ColumnsOf(thread);
  for (std::size_t i = 0; i < pass.choices.size(); ++i)
    if (pass.RuleOf(i) != ChoiceRule::kNone)
      bests[i] = kernels::BestOf(space_.kernels, pass.choices[i], logits_.Row(static_cast<int>(i)),
                                 columns);
}

void Choices::ShareBest(const Pass& pass, int thread) const noexcept {
  if (thread != 0) return;
  ChoiceScratch& scratch = space_.scratch.choices;
  const std::size_t n = pass.choices.size();
  const std::span own(scratch.rank_bests.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    kernels::PartBest best;
    if (pass.RuleOf(i) != ChoiceRule::kNone)
      for (int t = 0; t < space_.pool.team(); ++t)
        best = kernels::Better(best, scratch.Bests(t)[i]);
    own[i] = {best, IsFinite(i)};
  }
  const auto all = Exchange(std::span<const RankBest>(own), HasRaces(pass));
  for (std::size_t i = 0; i < n; ++i) {
    RankBest best;
    for (std::size_t at = i; at < all.size(); at += n)
      best = {kernels::Better(best.best, all[at].best), best.finite & all[at].finite};
    scratch.best[i] = best.best;
    scratch.chosen[i] = kNoToken;
    if (pass.RuleOf(i) == ChoiceRule::kNone) continue;
    scratch.chosen[i] = TokenOf(pass.choices[i], best.best.column);  // a race may give another
    if (best.finite == 0) space_.scratch.NotFinite(0)[i] = 1;
  }
}

void Choices::Weigh(const Pass& pass, int thread) const noexcept {
  ChoiceScratch& scratch = space_.scratch.choices;
  const kernels::Columns columns = ColumnsOf(thread);
  for (std::size_t i = 0; i < pass.choices.size(); ++i)
    if (kernels::HasRace(pass.choices[i], scratch.best[i]))
      scratch.Sums(thread)[i] =
          kernels::Weigh(space_.kernels, pass.choices[i], scratch.best[i].value,
                         logits_.Row(static_cast<int>(i)), columns);
}

void Choices::ShareSums(const Pass& pass, int thread) const noexcept {
  if (thread != 0) return;
  ChoiceScratch& scratch = space_.scratch.choices;
  const std::size_t n = pass.choices.size();
  const std::span own(scratch.rank_sums.data(), n);
  for (std::size_t i = 0; i < n; ++i) {
    own[i] = 0;
    if (kernels::HasRace(pass.choices[i], scratch.best[i]))
      for (int t = 0; t < space_.pool.team(); ++t) own[i] += scratch.Sums(t)[i];
  }
  const auto all = Exchange(std::span<const double>(own), true);
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t at = i; at < all.size(); at += n) sum += all[at];
    scratch.scales[i] = kernels::ScaleOf(pass.choices[i], sum).value_or(0);
  }
}

void Choices::RunRaces(const Pass& pass, int thread) const noexcept {
  ChoiceScratch& scratch = space_.scratch.choices;
  const kernels::Columns columns = ColumnsOf(thread);
  for (std::size_t i = 0; i < pass.choices.size(); ++i)
    if (kernels::HasRace(pass.choices[i], scratch.best[i]) && scratch.scales[i] != 0)
      scratch.Winners(thread)[i] =
          kernels::RaceIn(space_.kernels, pass.choices[i], scratch.scales[i],
                          logits_.Row(static_cast<int>(i)), columns);
}

// The weights of a row whose scale was left open go to rank 0, which runs the race by itself.
void Choices::ShareWinners(const Pass& pass, int thread) const noexcept {
  if (thread != 0) return;
  ChoiceScratch& scratch = space_.scratch.choices;
  const std::size_t n = pass.choices.size();
  const std::span own(scratch.rank_winners.data(), n);
  const auto races = [&](std::size_t i) {
    return kernels::HasRace(pass.choices[i], scratch.best[i]);
  };
  for (std::size_t i = 0; i < n; ++i) {
    own[i] = {};
    if (races(i) && scratch.scales[i] != 0)
      for (int t = 0; t < space_.pool.team(); ++t)
        own[i] = kernels::Faster(own[i], scratch.Winners(t)[i]);
  }
  const auto all = Exchange(std::span<const kernels::RaceWinner>(own), false);
  for (std::size_t i = 0; i < n; ++i) {
    kernels::RaceWinner winner;
    for (std::size_t at = i; at < all.size(); at += n) winner = kernels::Faster(winner, all[at]);
    if (races(i)) scratch.chosen[i] = TokenOf(pass.choices[i], winner.token);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (!races(i) || scratch.scales[i] != 0) continue;
    const int row = static_cast<int>(i);
    if (rows_.ToLead(row, 1) && space_.ranks.leads())
      scratch.chosen[i] =
          TokenOf(pass.choices[i],
                  kernels::RaceOver(space_.kernels, pass.choices[i], logits_.Row(row)).token);
  }
}

}  // namespace foretoken::model
