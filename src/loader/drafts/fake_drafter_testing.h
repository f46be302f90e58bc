// SPDX-License-Identifier: Apache-2.0
// loader/drafts/fake_drafter_testing.h: a drafter whose drafts a test decides, for unit tests.
#pragma once

#include <algorithm>
#include <functional>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "draft/drafter.h"
#include "foretoken/drafts.h"
#include "model/fake_runner_testing.h"

namespace foretoken::loader {

// Drafts what the target would choose at temperature 0, but for every wrong_every-th token of a
// draft (0: never), and at most `most` tokens.
class FakeDrafter final : public draft::Drafter {
 public:
  FakeDrafter(const model::FakeRunner& target, int vocabulary)
      : target_(target), vocabulary_(vocabulary) {}

  std::string_view name() const override { return "fake"; }
  bool ReportsDistributions() const override { return reports_distributions; }
  bool ReportsLogits() const override { return reports_logits; }
  bool DraftsAtOnce() const override { return at_once; }
  int LikelyTokens() const override { return n_likely; }
  void Begin(const draft::SequenceStart& start) override {
    if (fails_to_begin) throw std::bad_alloc();
    ++n_begun;
    temperature = start.sampling.temperature;
    salt = start.salt, teaches = start.teaches;
    At(start.seq).assign(start.prompt.begin(), start.prompt.end());
  }
  void Propose(std::span<const draft::Ask> asks,
               std::span<round::Proposal> proposals) noexcept override {
    drafts_.resize(asks.size());
    if (spends_time) spends_time(std::min(asks[0].max_tokens, most));
    for (std::size_t i = 0; i < asks.size(); ++i) {
      std::vector<Token> text = At(asks[i].seq);
      const std::size_t before = text.size();
      for (int n = 1; n <= std::min(asks[i].max_tokens, most); ++n) {
        const auto logits = target_.LogitsAfter(text);
        const auto best =
            static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
        const bool wrong = wrong_every > 0 && n % wrong_every == 0;
        text.push_back(wrong ? (best + 1) % vocabulary_ : best);
      }
      drafts_[i].assign(text.begin() + static_cast<std::ptrdiff_t>(before), text.end());
      proposals[i] = {.tokens = drafts_[i], .evidence = evidence};
    }
  }
  void Observe(std::span<const draft::Observation> observations) noexcept override {
    for (const draft::Observation& o : observations) {
      At(o.seq).insert(At(o.seq).end(), o.committed.begin(), o.committed.end());
      n_accepted += o.accepted, n_drafted += o.drafted;
      if (o.likely != nullptr) likely.assign(o.likely, o.likely + o.n_likely);
    }
  }
  void End(SeqId seq) noexcept override { At(seq).clear(), ++n_ended; }
  Work TakeWork() noexcept override {
    return tells_work ? tells_work() : Work{.not_finite = not_finite};
  }

  int wrong_every = 0, most = kMaxDraft, evidence = 0, n_likely = 0, not_finite = 0;
  bool reports_distributions = false, reports_logits = false, at_once = false;
  bool fails_to_begin = false;
  std::function<void(int)> spends_time;  // called with the tokens that the first ask gets
  std::function<Work()> tells_work;      // what TakeWork tells
  int n_begun = 0, n_ended = 0;          // requests
  float temperature = 0;                 // of the last one
  SaltId salt = kNoSalt;                 // the same
  bool teaches = true;                   // the same
  int n_accepted = 0, n_drafted = 0;     // as it was told
  std::vector<Token> likely;             // of the last observation, at its first token

 private:
  std::vector<Token>& At(SeqId seq) { return texts_[static_cast<std::size_t>(seq)]; }

  const model::FakeRunner& target_;
  int vocabulary_;
  std::vector<Token> texts_[8];
  std::vector<std::vector<Token>> drafts_;
};

}  // namespace foretoken::loader
