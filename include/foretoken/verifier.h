// SPDX-License-Identifier: Apache-2.0
// foretoken/verifier.h: a rule of a program's own for how much of a draft is kept.
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
// It judges every request of its engine in place of SpeculativeOptions.strategy, and its name and
// its word on losslessness stand in the results. docs/speculation.md has the rules that a lossless
// one obeys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace foretoken {

// Noise of different purposes is independent; a lossless rule uses none of it twice.
enum class NoisePurpose {
  kTarget,    // a token of the target's: what plain decoding draws with
  kCoin,      // accept or reject
  kResidual,  // the token in place of a rejected draft
};

// One sequence's drafts and what the target says to them. Position i judges draft i; the last one,
// i = length(), is behind them all. Views hold until Judge returns. The engine owns it.
class JudgedDraft {
 public:
  virtual std::span<const std::int32_t> tokens() const = 0;  // [length]; may be empty
  int length() const { return static_cast<int>(tokens().size()); }
  // Prompt and committed tokens, without the drafts.
  virtual std::span<const std::int32_t> text() const = 0;

  // [vocabulary]. The law that the target's token is drawn from: all processing done, with drafts
  // before i as text; at temperature 0 all of it is on the best token. Computed when it is asked
  // for. Empty where there is no position i.
  virtual std::span<const float> TargetLaw(int i) = 0;
  // [vocabulary]: the target's logits as the model gives them. Empty where there is no position i.
  virtual std::span<const float> TargetLogits(int i) const = 0;
  // [vocabulary]: the law that draft i was drawn from. Empty: it was certain, all of its law is on
  // the draft itself.
  virtual std::span<const float> DraftLaw(int i) const = 0;

  // In [0, 1): a function of the request's seed and id, the purpose and the position alone.
  virtual double Uniform(NoisePurpose purpose, int i) const = 0;
  // The token at which the running sum of `weights` (>= 0, [vocabulary]) exceeds u times their sum;
  // -1 where they are none.
  virtual std::int32_t Draw(std::span<const float> weights, double u) const = 0;
  // What plain decoding commits at position i where it gets there; -1 where there is no position i.
  virtual std::int32_t Sample(int i) = 0;

 protected:
  ~JudgedDraft() = default;
};

struct Judgement {
  int accepted = 0;        // drafts kept, from the first on; [0, length]
  std::int32_t next = -1;  // one more token, of the vocabulary
};

// All calls come from the thread that calls the engine. A judgement that is none, or an exception,
// keeps no draft and takes the target's own token; the first of each kind becomes a notice in
// EngineSummary.
class Verifier {
 public:
  virtual ~Verifier() = default;
  virtual std::string_view name() const = 0;
  // True if committed tokens have the very law of plain decoding. At temperature 0 the engine then
  // judges by `greedy` itself.
  virtual bool lossless() const = 0;
  // True if it reads DraftLaw: then drafters that report none are refused.
  virtual bool NeedsLaws() const { return false; }
  virtual Judgement Judge(JudgedDraft& draft) = 0;
};

}  // namespace foretoken
