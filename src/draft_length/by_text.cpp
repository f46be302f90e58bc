// SPDX-License-Identifier: Apache-2.0
#include "draft_length/by_text.h"

#include <utility>

#include "base/check.h"

namespace foretoken::draft_length {
namespace {

ControllerSettings Alone(ControllerSettings settings) {
  settings.name = "cost-model";
  settings.max_sequences = 1;
  settings.costs = settings.fixed_costs;
  return settings;
}

}  // namespace

ByText::ByText(const ControllerSettings& settings, std::unique_ptr<Controller> others)
    : own_settings_(Alone(settings)),
      costs_(settings.fixed_costs),
      others_(std::move(others)),
      sequences_(static_cast<std::size_t>(settings.max_sequences)) {
  plans_.reserve(sequences_.size());
}

void ByText::Start(std::span<const LearnedVerdicts> learned) noexcept {
  if (others_) others_->Start(learned);
}

std::vector<LearnedVerdicts> ByText::Learned() const {
  return others_ ? others_->Learned() : std::vector<LearnedVerdicts>();
}

void ByText::Begin(SeqId seq, const DraftLengths& lengths) {
  Own& own = At(seq);
  own = {};
  if (others_ && !lengths.by_text) return others_->Begin(seq, lengths);
  FORETOKEN_CHECK(costs_ != nullptr && costs_->known());
  own.model = std::make_unique<CostModel>(own_settings_);
  own.model->Begin(0, lengths);
}

int ByText::Most(SeqId seq, int n_decoding) const noexcept {
  const Own& own = At(seq);
  return own.model ? own.model->Most(0, 1) : others_ ? others_->Most(seq, n_decoding) : 0;
}

void ByText::Choose(std::span<Plan> plans) noexcept {
  plans_.assign(plans.begin(), plans.end());
  for (Plan& plan : plans_)
    if (At(plan.seq).model) plan.offers = {};
  if (others_) others_->Choose(plans_);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    Own& own = At(plans[i].seq);
    Plan& answer = plans_[i];
    if (own.model) {
      answer.offers = plans[i].offers;
      answer.seq = 0;
      own.model->Choose({&answer, 1});
      own.context = answer.context;
      if (answer.k > 0) {
        const Offer& offer = answer.offers[static_cast<std::size_t>(answer.chosen)];
        own.made = offer.made, own.missing = offer.missing;
      }
    } else if (!others_) {
      answer.k = 0;
    }
    plans[i].chosen = answer.chosen, plans[i].k = answer.k;
    plans[i].out_of_rows = answer.out_of_rows, plans[i].probe = answer.probe;
  }
}

// How long the round takes according to the table.
double ByText::TableUs(const Own& own, const RoundOutcome& round) const noexcept {
  const int drafts = round.drafted + round.withheld;
  double us = costs_->PassUs(1 + round.drafted, own.context) + costs_->RestUs();
  if (drafts > 0 && !own.made)
    us += costs_->DraftsUs(round.drafter, drafts, drafts, own.context) +
          costs_->CatchUpUs(round.drafter, own.missing);
  return us;
}

void ByText::Observe(SeqId seq, const RoundOutcome& round) noexcept {
  Own& own = At(seq);
  if (!own.model) {
    if (others_) others_->Observe(seq, round);
    return;
  }
  RoundOutcome alone = round;
  alone.n_decoding = 1;
  alone.context = own.context;
  alone.reads = false;
  alone.us = TableUs(own, round);
  own.model->Observe(0, alone);
}

int ByText::MostRows() const noexcept {
  return others_ ? others_->MostRows() : Controller::MostRows();
}

void ByText::Reset(SeqId seq) noexcept {
  if (At(seq).model) return At(seq).model->Reset(0);
  if (others_) others_->Reset(seq);
}

AdaptiveLookahead* ByText::Adaptive(SeqId seq) noexcept {
  return others_ && !At(seq).model ? others_->Adaptive(seq) : nullptr;
}

}  // namespace foretoken::draft_length
