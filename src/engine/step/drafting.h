// SPDX-License-Identifier: Apache-2.0
// engine/step/drafting.h: the drafts of a pass: what could be drafted, what is worth it, and the
// drafts themselves. Afterwards it tells the drafters what became of them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "engine/requests/sequence.h"
#include "engine/step/estimates.h"
#include "engine/step/pass_plan.h"
#include "engine/step/pass_record.h"
#include "engine/step/proposals.h"
#include "loader/drafts/drafter_set.h"

namespace foretoken::engine {

class Drafting {
 public:
  // The references must outlive it. on_notice: what went wrong and harms no text.
  Drafting(int max_sequences, loader::DrafterSet& drafters, Estimates& estimates,
           std::function<void(std::string)> on_notice);

  // One draft for each sequence that may have one; empty where plain decoding is better. The
  // proposals hold until the next call. Allocates nothing.
  void Propose(const PassPlan& plan, const Sequences& sequences, const DraftWants& wants,
               Proposals& out) noexcept;
  // Tells the drafters what became of their drafts, and what the target made of the text.
  void Observe(const PassRecord& record) noexcept;

 private:
  // The values of one pass while its drafts are made.
  struct Round {
    const PassPlan& plan;
    const Sequences& sequences;
    const DraftWants& wants;
    Proposals& out;
  };
  static void TakeGiven(std::span<const Token> drafts, DraftedSequence& out) noexcept;
  void MakeOffers(const Round& round) noexcept;
  void OfferFor(const Round& round, std::size_t i) noexcept;
  int WantedOf(const Round& round, SeqId seq) const noexcept;
  void AskInstantDrafter(const Round& round, int d) noexcept;
  void ChooseLengths(const DraftWants& wants) noexcept;
  void TakeChoice(const draft_length::Plan& choice, int room, DraftedSequence& out) noexcept;
  int Wanted(const draft_length::Plan& choice, int room) const noexcept;
  void AskDrafter(const Round& round, int d) noexcept;
  void LearnCosts(const Round& round, int d, double us) noexcept;
  void NoteNotFinite(int d) noexcept;
  void WithholdShortDrafts(const Round& round) noexcept;
  void NoteObservations(const PassRecord& record, std::size_t i) noexcept;

  loader::DrafterSet& drafters_;
  Estimates& estimates_;
  const std::function<void(std::string)> on_notice_;
  std::vector<bool> noted_not_finite_;       // by drafter
  std::vector<draft_length::Plan> choices_;  // of sequences that could have drafts
  std::vector<draft_length::Offer> offers_;  // of all choices, one after the other
  std::vector<round::Proposal> offered_;     // [offers_]: of instant drafters
  std::vector<draft::Ask> asks_;             // of one drafter
  std::vector<int> asked_;                   // [asks_]: offers, or entries of the plan
  std::vector<round::Proposal> answers_;     // [asks_]
  std::vector<std::vector<draft::Observation>> observations_;  // by drafter
};

}  // namespace foretoken::engine
