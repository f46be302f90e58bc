// SPDX-License-Identifier: Apache-2.0
// draft/none.h: proposes nothing; with it the engine decodes plainly.
#pragma once

#include "draft/drafter.h"

namespace foretoken::draft {

class NoneDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "none"; }
  bool ReportsDistributions() const override { return false; }
  void Begin(const SequenceStart&) override {}
  void Propose(std::span<const Ask>, std::span<round::Proposal> proposals) noexcept override {
    for (auto& proposal : proposals) proposal = {};
  }
  void Observe(std::span<const Observation>) noexcept override {}
  void End(SeqId) noexcept override {}
};

}  // namespace foretoken::draft
