// SPDX-License-Identifier: Apache-2.0
// loader/drafts/file_drafter.h: a drafter of a file, for programs without an engine (OpenDrafter): a draft
// model with its file, threads and cache, behind the public interface.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foretoken/built_in_drafters.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken {

class FileDrafter final : public ModelDrafter {
 public:
  class Parts;
  explicit FileDrafter(std::unique_ptr<Parts> parts);
  ~FileDrafter() override;

  std::string_view name() const override { return face().name(); }
  bool ReportsDistributions() const override { return true; }
  DrafterLimits limits() const override { return face().limits(); }
  void Begin(const DrafterText& request) override { face().Begin(request); }
  void Propose(int sequence, DraftProposal& proposal) override {
    face().Propose(sequence, proposal);
  }
  void ProposeAll(std::span<const DrafterTask> tasks) override { face().ProposeAll(tasks); }
  void Observe(const DrafterRound& round) override { face().Observe(round); }
  void End(int sequence) override { face().End(sequence); }
  int Unread(int sequence) const override { return face().Unread(sequence); }
  DrafterWork TakeWork() override { return face().TakeWork(); }

  const ModelSummary& summary() const override;
  std::vector<std::int32_t> Tokenize(const std::string& text, bool add_special) const override;
  std::string Detokenize(std::span<const std::int32_t> tokens) const override;

  const text::Tokenizer& tokenizer() const;

 private:
  foretoken::Drafter& face() const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace foretoken
