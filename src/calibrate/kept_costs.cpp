// SPDX-License-Identifier: Apache-2.0
#include "calibrate/kept_costs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "loader/kept_list.h"

namespace foretoken::calibrate {
namespace {

using draft_length::LearnedCosts;
using draft_length::LearnedVerdicts;

constexpr loader::KeptList::Form kForm = {"costs.json", "foretoken_costs", "engines", 1 << 20,
                                          CostFile::kMostEngines};
constexpr std::size_t kMostEntries = 64;  // of a list
constexpr std::size_t kMostVerdicts = 256;
constexpr int kMostRows = 4096, kMostDrafters = 64, kMostAgreed = 1 << 20;
constexpr double kMostVerified = 1000;
constexpr double kMostUs = 1e12, kMostFirstDraft = 64;
constexpr double kAlike = 1.05;                        // times of the same work
constexpr double kSayTheSame = 1.1;                    // costs that need not be written again
constexpr double kAgree = 1.2;                         // those of two engines that agree
constexpr double kFewVerdicts = 4, kSameShare = 0.05;  // nor do shares of drafts that were accepted

struct KeptEngine {
  std::uint64_t key = 0;
  KeptFigures figures;
};

constexpr auto kPassFields = [](auto& fields, auto& pass) {
  fields.Integer("rows", 1, kMostRows, pass.rows);
  fields.Number("us", std::numeric_limits<double>::min(), kMostUs, pass.us);
};

constexpr auto kDraftsFields = [](auto& fields, auto& drafts) {
  fields.Number("one_us", 0, kMostUs, drafts.one_us);
  fields.Number("all_us", 0, kMostUs, drafts.all_us);
  fields.Number("row_us", 0, kMostUs, drafts.row_us);
  fields.Number("first", 1, kMostFirstDraft, drafts.first);
};

constexpr auto kPositionFields = [](auto& fields, auto& position) {
  fields.Number("bytes_us", 0, kMostUs, position.bytes);
  fields.Number("arithmetic_us", 0, kMostUs, position.arithmetic);
};

constexpr auto kVerdictsFields = [](auto& fields, auto& verdicts) {
  fields.Integer("drafter", 0, kMostDrafters - 1, verdicts.drafter);
  fields.Integer("evidence", 0, draft_length::kEvidenceClasses - 1, verdicts.evidence);
  fields.Integer("position", 0, kMaxDraft - 1, verdicts.position);
  fields.Number("verified", 1, kMostVerified, verdicts.verified);
  fields.Number("accepted", 0, kMostVerified, verdicts.accepted);
};

constexpr auto kEngineFields = [](auto& fields, auto& engine) {
  auto& [costs, verdicts, agreed] = engine.figures;
  fields.Hash("key", engine.key);
  fields.Integer("agreed", 0, kMostAgreed, agreed);
  fields.List("passes", kMostEntries, costs.passes, kPassFields, RecordForm::kRow);
  fields.Object("position", costs.position, kPositionFields);
  fields.List("drafts", kMostEntries, costs.drafts, kDraftsFields, RecordForm::kRow);
  fields.List("verdicts", kMostVerdicts, verdicts, kVerdictsFields, RecordForm::kRow);
};

std::vector<PassCost> CostsOf(const LearnedCosts& learned) {
  std::vector<PassCost> costs;
  for (const auto& pass : learned.passes)
    if (costs.size() < kMostEntries) costs.push_back({pass.rows, 0, {pass.us, pass.us, pass.us}});
  return costs;
}

const LearnedCosts::Pass* Find(const LearnedCosts& kept, int rows) {
  const auto pass = std::find_if(kept.passes.begin(), kept.passes.end(),
                                 [rows](const auto& known) { return known.rows == rows; });
  return pass == kept.passes.end() ? nullptr : &*pass;
}

bool Within(double times, double a, double b) {
  return std::max(a, b) <= times * std::min(a, b);
}

// All of it is alike, at any two speeds. Rows that are not in both are left out.
bool Within(double times, const LearnedCosts& kept, const LearnedCosts& costs) {
  const std::vector<PassCost> passes = CostsOf(costs);
  const double slower = SlowerThan(kept, passes);
  if (slower == 0 || kept.drafts.size() != costs.drafts.size()) return false;
  for (const PassCost& pass : passes)
    if (const LearnedCosts::Pass* const known = Find(kept, pass.rows);
        known != nullptr && !Within(times, pass.us.median, slower * known->us))
      return false;
  return std::equal(costs.drafts.begin(), costs.drafts.end(), kept.drafts.begin(),
                    [&](const auto& now, const auto& known) {
                      return Within(times, now.one_us, slower * known.one_us) &&
                             Within(times, now.all_us, slower * known.all_us) &&
                             Within(times, now.first, known.first);
                    });
}

// Whether all of it is in the kept costs, and no time differs but by the machine's speed.
bool SayTheSame(const LearnedCosts& kept, const LearnedCosts& costs) {
  return std::all_of(costs.passes.begin(), costs.passes.end(),
                     [&](auto& pass) { return Find(kept, pass.rows) != nullptr; }) &&
         Within(kSayTheSame, kept, costs);
}

// Whether drafts are accepted as often as it is known.
bool SayTheSame(const std::vector<LearnedVerdicts>& kept,
                const std::vector<LearnedVerdicts>& verdicts) {
  const auto share = [](const LearnedVerdicts& v) { return v.accepted / v.verified; };
  return std::all_of(verdicts.begin(), verdicts.end(), [&](const LearnedVerdicts& now) {
    return now.verified < kFewVerdicts ||
           std::any_of(kept.begin(), kept.end(), [&](const LearnedVerdicts& known) {
             return known.drafter == now.drafter && known.evidence == now.evidence &&
                    known.position == now.position && known.verified >= kFewVerdicts &&
                    std::abs(share(known) - share(now)) <= kSameShare;
           });
  });
}

// As short as they need be.
void Shorten(std::vector<LearnedVerdicts>& verdicts) {
  if (verdicts.size() > kMostVerdicts) verdicts.resize(kMostVerdicts);
  for (LearnedVerdicts& v : verdicts)
    for (double* const count : {&v.verified, &v.accepted}) *count = std::round(*count * 100) / 100;
}

}  // namespace

std::optional<KeptFigures> CostFile::Read() const {
  if (!keeps()) return std::nullopt;
  for (const auto& engine : loader::KeptList(folder_, kForm).Read<KeptEngine>(kEngineFields))
    if (engine.key == key_) return engine.figures;
  return std::nullopt;
}

void CostFile::Write(const KeptFigures& figures) const {
  if (!keeps() || figures.costs.passes.empty()) return;
  const auto kept = Read();
  const bool agrees = kept && Agree(kept->costs, figures.costs);
  const bool same_costs =
      agrees && (figures.costs.of_another || SayTheSame(kept->costs, figures.costs));
  if (same_costs && kept->agreed > 0 && SayTheSame(kept->verdicts, figures.verdicts)) return;
  const loader::KeptList file(folder_, kForm);
  auto engines = file.Read<KeptEngine>(kEngineFields);
  std::erase_if(engines, [this](const KeptEngine& engine) { return engine.key == key_; });
  engines.insert(engines.begin(), {key_, figures});
  auto& [costs, verdicts, agreed] = engines.front().figures;
  agreed = agrees ? std::min(kept->agreed + 1, kMostAgreed) : 0;
  // Many small moves would lead far away, so readings alone replace nothing that they agree with.
  if (agrees && costs.of_another) costs = kept->costs;
  costs.passes.resize(std::min(costs.passes.size(), kMostEntries));
  Shorten(verdicts);
  file.Write(engines, kEngineFields);
}

bool Agree(const LearnedCosts& kept, const LearnedCosts& costs) {
  return Within(kAgree, kept, costs);
}

double SlowerThan(const LearnedCosts& kept, const std::vector<PassCost>& measured) {
  std::vector<double> ratios;
  double of_one_row = 0;
  for (const PassCost& cost : measured)
    if (const LearnedCosts::Pass* const pass = cost.context == 0 ? Find(kept, cost.rows) : nullptr;
        pass != nullptr && cost.us.median > 0) {
      ratios.push_back(cost.us.median / pass->us);
      if (pass->rows == 1) of_one_row = ratios.back();
    }
  if (ratios.size() < 2) return 0;
  // Where their number is even, the lower one of the middle two: no measurement is too short.
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>((ratios.size() - 1) / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return std::max(*middle, of_one_row);
}

double Believed(double measured_us, double kept_us, double slower) {
  const double most_us = kAlike * slower * kept_us;
  if (most_us <= 0) return measured_us;
  return measured_us > 0 ? std::min(measured_us, most_us) : most_us;
}

}  // namespace foretoken::calibrate
