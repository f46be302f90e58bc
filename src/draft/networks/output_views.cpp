// SPDX-License-Identifier: Apache-2.0
#include "draft/networks/output_views.h"

#include <utility>
#include <vector>

namespace foretoken::draft {
namespace {

// What the views of a drafter share. Each text is told to the drafter once: by the view that began it.
struct Shared {
  std::unique_ptr<Drafter> drafter;
  std::vector<const Drafter*> speakers;  // by sequence; null: none runs
};

class View final : public Drafter {
 public:
  View(std::shared_ptr<Shared> shared, bool reduced, bool narrow)
      : shared_(std::move(shared)),
        drafter_(*shared_->drafter),
        reduced_(reduced),
        narrow_(narrow) {}

  std::string_view name() const override { return drafter_.name(); }
  bool ReportsDistributions() const override { return drafter_.ReportsDistributions(); }
  bool ReportsLogits() const override { return drafter_.ReportsLogits(); }
  bool DraftsAtOnce() const override { return drafter_.DraftsAtOnce(); }
  int LikelyTokens() const override { return drafter_.LikelyTokens(); }
  bool ReadsTargetCache() const override { return drafter_.ReadsTargetCache(); }
  model::FeatureRequest Needs() const override { return drafter_.Needs(); }
  bool StartsAnywhere() const override { return drafter_.StartsAnywhere(); }

  void Begin(const SequenceStart& start) override {
    const Drafter*& speaker = SpeakerOf(start.seq);
    if (speaker == nullptr) speaker = this;
    if (speaker == this) drafter_.Begin(start);
  }
  void Propose(std::span<const Ask> asks, std::span<round::Proposal> proposals) noexcept override {
    drafter_.UseReducedOutput(reduced_);
    drafter_.UseNarrowWindow(narrow_);
    drafter_.Propose(asks, proposals);
  }
  void Observe(std::span<const Observation> observations) noexcept override {
    for (const Observation& o : observations)
      if (SpeakerOf(o.seq) == this) drafter_.Observe({&o, 1});
  }
  void End(SeqId seq) noexcept override {
    const Drafter*& speaker = SpeakerOf(seq);
    if (speaker != this) return;
    drafter_.End(seq);
    speaker = nullptr;
  }
  void Forget() override { drafter_.Forget(); }
  int Missing(SeqId seq) const noexcept override { return drafter_.Missing(seq); }
  Work TakeWork() noexcept override { return drafter_.TakeWork(); }

 private:
  const Drafter*& SpeakerOf(SeqId seq) const noexcept {
    return shared_->speakers[static_cast<std::size_t>(seq)];
  }

  const std::shared_ptr<Shared> shared_;
  Drafter& drafter_;
  const bool reduced_, narrow_;
};

}  // namespace

OutputViews ViewsOf(std::unique_ptr<Drafter> drafter, int max_sequences) {
  const bool reduced = drafter->HasReducedOutput(), narrow = drafter->NarrowWindow() > 0;
  const auto shared = std::make_shared<Shared>();
  shared->drafter = std::move(drafter);
  shared->speakers.resize(static_cast<std::size_t>(max_sequences));
  OutputViews views = {
      .reduced = nullptr, .whole = std::make_unique<View>(shared, false, false), .narrow = nullptr};
  if (reduced) views.reduced = std::make_unique<View>(shared, true, false);
  if (narrow) views.narrow = std::make_unique<View>(shared, reduced, true);
  return views;
}

}  // namespace foretoken::draft
