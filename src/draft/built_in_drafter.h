// SPDX-License-Identifier: Apache-2.0
// draft/built_in_drafter.h: gives one of foretoken's drafters the public interface
// (foretoken/drafter.h). The caller draws the drafts (Ask::proposal), so they are the same inside
// and outside of an engine.
//
// Wrong calls get no drafts: sequences out of range, and texts that grow beyond what Begin
// announced.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "foretoken/drafter.h"
#include "grammar/grammar.h"

namespace foretoken::draft {

struct BuiltInSettings {
  std::string name = {};
  int max_sequences = 1;
  int vocabulary = 0;                               // 0: any
  std::optional<SamplingParameters> sampling = {};  // for drafts, instead of the request's
  // The compiled grammar of a request; empty: grammars are ignored, which costs acceptance.
  std::function<std::shared_ptr<const grammar::Grammar>(const SamplingParameters&)> grammar_of = {};
};

class BuiltInDrafter final : public foretoken::Drafter {
 public:
  // REQUIRES: settings.max_sequences are those of the drafter.
  BuiltInDrafter(std::unique_ptr<draft::Drafter> drafter, BuiltInSettings settings);

  std::string_view name() const override { return settings_.name; }
  bool ReportsDistributions() const override { return drafter_->ReportsDistributions(); }
  DrafterLimits limits() const override { return {settings_.max_sequences, settings_.vocabulary}; }
  void Begin(const DrafterText& request) override;
  void Propose(int sequence, DraftProposal& proposal) override;
  void ProposeAll(std::span<const DrafterTask> tasks) override;
  void Observe(const DrafterRound& round) override;
  void End(int sequence) override;
  void Forget() override { drafter_->Forget(); }
  int Unread(int sequence) const override;
  DrafterWork TakeWork() override;

 private:
  // Tokens that its text may still get; nothing if no text has begun.
  std::optional<int>& Room(int sequence) { return room_[static_cast<std::size_t>(sequence)]; }
  bool Runs(int sequence) const {
    return sequence >= 0 && sequence < settings_.max_sequences &&
           room_[static_cast<std::size_t>(sequence)].has_value();
  }

  const std::unique_ptr<draft::Drafter> drafter_;
  const BuiltInSettings settings_;
  std::vector<std::optional<int>> room_;  // [max_sequences]
  std::vector<Ask> asks_;
  std::vector<DraftProposal*> to_;  // [asks_]
  std::vector<round::Proposal> proposals_;
};

}  // namespace foretoken::draft
