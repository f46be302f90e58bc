// SPDX-License-Identifier: Apache-2.0
// draft/custom_drafter.h: makes a program's own drafter (foretoken/drafter.h) safe. Its proposals
// are checked, its distributions are copied and drawn from here, and its exceptions are caught
// here.
//
// Drafts are drawn as in draft/networks/chain.h, so an equal distribution gives an equal token. The
// constructor and Begin reserve memory; the program's own code may take more.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "draft/drafter.h"
#include "draft/sequence_lease.h"
#include "foretoken/drafter.h"
#include "kernels/kernels.h"

namespace foretoken::draft {

struct CustomSettings {
  int max_sequences = 1;
  int vocabulary = 0;                         // tokens that may be drafted, ids [0, vocabulary)
  int max_draft = 64;                         // in one proposal
  const kernels::Kernels* kernels = nullptr;  // REQUIRES: not null
  // Gets the first fault of each kind, on the thread that calls the drafter.
  std::function<void(std::string)> on_fault = {};
};

class CustomDrafter final : public Drafter {
 public:
  // REQUIRES: drafter is not null.
  CustomDrafter(std::shared_ptr<foretoken::Drafter> drafter, const CustomSettings& settings);
  ~CustomDrafter() override;

  std::string_view name() const override { return name_; }
  bool ReportsDistributions() const override { return reports_distributions_; }
  // The sequences of the program's drafter that it uses from now on: those from lease.sequence() on.
  // REQUIRES: no text runs.
  void Use(SequenceLease lease) noexcept { lease_ = std::move(lease); }
  void Begin(const SequenceStart& start) override;
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override;
  // Proposes for several objects of one drafter of the program's, which is called once: asks[i] is
  // for drafters[i].
  static void ProposeTogether(std::span<CustomDrafter* const> drafters, std::span<const Ask> asks,
                              std::span<round::Proposal> proposals);
  void Observe(std::span<const Observation> observations) noexcept override;
  void End(SeqId seq) noexcept override;
  void Forget() override;
  int Missing(SeqId seq) const noexcept override;
  Work TakeWork() noexcept override;

  std::int64_t faults() const { return faults_; }

 private:
  enum class Fault { kToken, kDistribution, kNoDistributions, kException };
  class Sequence;

  int NumberOf(SeqId seq) const noexcept { return lease_.sequence() + seq; }
  DrafterTask Start(const Ask& ask) noexcept;
  void Report(Fault fault, const std::string& what);
  void ReportThrown(const char* where, const char* what) noexcept;
  // Calls the program's code; false if it threw.
  template <typename Call>
  bool Guarded(const char* where, Call&& call) noexcept;

  const std::shared_ptr<foretoken::Drafter> drafter_;
  const std::string name_;
  const bool reports_distributions_;
  const CustomSettings settings_;
  SequenceLease lease_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  std::vector<DrafterTask> tasks_;  // of one Propose
  std::int64_t faults_ = 0;
  std::array<bool, 4> reported_ = {};
};

}  // namespace foretoken::draft
