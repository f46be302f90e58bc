// SPDX-License-Identifier: Apache-2.0
// foretoken/verifier.h: your own rule for how much of a draft is kept.
//
//   class Match final : public foretoken::Verifier {  // sample-match in a few lines
//     std::string_view name() const override { return "match"; }
//     bool lossless() const override { return true; }
//     foretoken::Judgement Judge(foretoken::JudgedDraft& draft) override {
//       for (int i = 0;; ++i) {
//         const std::int32_t own = draft.Sample(i);
//         if (i == draft.length() || own != draft.tokens()[i]) return {i, own};
//       }
//     }
//   };
//   auto engine = foretoken::Engine::Open({.model = "target.gguf",
//                                          .verifier = std::make_shared<Match>()});
//
// It verifies every request of its engine, instead of SpeculativeOptions.strategy. Results contain
// its name and whether it claims to be lossless. docs/speculation.md has the rules for a lossless
// verifier.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace foretoken {

// Noise of different purposes is independent. A lossless rule uses no random number twice.
enum class NoisePurpose {
  kTarget,    // a token of the target: what plain decoding draws with
  kCoin,      // accept or reject
  kResidual,  // the token in place of a rejected draft
};

// One sequence's drafts and the target's distributions for them. Position i verifies draft i; the
// last position, i = length(), is behind all drafts. Views are valid until Judge returns. The
// engine owns the object.
class JudgedDraft {
 public:
  // [length]; may be empty.
  virtual std::span<const std::int32_t> tokens() const = 0;
  int length() const { return static_cast<int>(tokens().size()); }
  // Prompt and committed tokens, without the drafts.
  virtual std::span<const std::int32_t> text() const = 0;

  // [vocabulary]. The distribution that the target's token is drawn from, fully processed, with the
  // drafts before i as text; at temperature 0 all of it is on the best token. Computed on demand.
  // Empty if there is no position i.
  virtual std::span<const float> TargetDistribution(int i) = 0;
  // [vocabulary]: the target's unprocessed logits. Empty if there is no position i.
  virtual std::span<const float> TargetLogits(int i) const = 0;
  // [vocabulary]: the distribution that draft i was drawn from. Empty: the draft was certain, so
  // all of its distribution is on the draft itself.
  virtual std::span<const float> DraftDistribution(int i) const = 0;

  // In [0, 1): a function of the request's seed and id, the purpose and the position only.
  virtual double Uniform(NoisePurpose purpose, int i) const = 0;
  // The token at which the running sum of `weights` (>= 0, [vocabulary]) exceeds u times their sum;
  // -1 if these are not weights.
  virtual std::int32_t Draw(std::span<const float> weights, double u) const = 0;
  // What plain decoding commits at position i if it gets there; -1 if there is no position i.
  virtual std::int32_t Sample(int i) = 0;

 protected:
  ~JudgedDraft() = default;
};

struct Judgement {
  int accepted = 0;        // drafts kept, from the first on; [0, length]
  std::int32_t next = -1;  // one more token, of the vocabulary
};

// All calls come from the thread that calls the engine. After an invalid judgement or an exception,
// no draft is kept and the target's own token is committed; the first fault of each kind becomes a
// notice in EngineSummary.
class Verifier {
 public:
  virtual ~Verifier() = default;
  virtual std::string_view name() const = 0;
  // True if committed tokens have exactly the distribution of plain decoding. At temperature 0 the
  // engine then verifies by `greedy` itself.
  virtual bool lossless() const = 0;
  // True if it reads DraftDistribution: drafters that report no distributions are then refused.
  virtual bool NeedsLaws() const { return false; }
  virtual Judgement Judge(JudgedDraft& draft) = 0;
};

}  // namespace foretoken
