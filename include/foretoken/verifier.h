// SPDX-License-Identifier: Apache-2.0
// foretoken/verifier.h: how much of a draft is kept: the verification strategies by name, and a
// verifier of your own.
//
//   class Match final : public foretoken::Verifier {  // sample-match in a few lines
//     std::string_view name() const override { return "match"; }
//     bool lossless() const override { return true; }
//     foretoken::Verdict Verify(foretoken::DraftsToVerify& drafts) override {
//       for (int i = 0;; ++i) {
//         const std::int32_t own = drafts.Sample(i);
//         if (i == drafts.length() || own != drafts.tokens()[i]) return {i, own};
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
#include <optional>
#include <span>
#include <string_view>

namespace foretoken {

// How drafts are verified. docs/speculation.md has the rules, and AllStrategies() (catalogue.h)
// lists the strategies of this build. kAuto: greedy at temperature 0. Above it, sample-match, whose
// text depends on no draft, for deterministic drafters and where the draft length follows measured
// time or the load (cost-model, batch-size); otherwise residual. kGreedy, kResidual, kSampleMatch,
// kTargetProbability and kBlock are lossless. The others change the distribution of the text and
// say so in every result.
class VerifyStrategy {
 public:
  static const VerifyStrategy kAuto, kGreedy, kResidual, kSampleMatch, kTypicalAcceptance,
      kTargetProbability, kLogitComparison, kBlock, kRelaxed;

  // kAuto.
  constexpr VerifyStrategy() = default;
  // Any strategy of this build, or "auto". Empty: there is none of this name.
  static std::optional<VerifyStrategy> Named(std::string_view name);

  constexpr const char* name() const { return name_; }
  friend constexpr bool operator==(VerifyStrategy a, VerifyStrategy b) {
    return std::string_view(a.name_) == b.name_;
  }

 private:
  constexpr explicit VerifyStrategy(const char* name) : name_(name) {}
  const char* name_ = "auto";  // of the registry's row, or of a constant above
};

inline constexpr VerifyStrategy VerifyStrategy::kAuto = VerifyStrategy("auto");
inline constexpr VerifyStrategy VerifyStrategy::kGreedy = VerifyStrategy("greedy");
inline constexpr VerifyStrategy VerifyStrategy::kResidual = VerifyStrategy("residual");
inline constexpr VerifyStrategy VerifyStrategy::kSampleMatch = VerifyStrategy("sample-match");
inline constexpr VerifyStrategy VerifyStrategy::kTypicalAcceptance =
    VerifyStrategy("typical-acceptance");
inline constexpr VerifyStrategy VerifyStrategy::kTargetProbability =
    VerifyStrategy("target-probability");
inline constexpr VerifyStrategy VerifyStrategy::kLogitComparison =
    VerifyStrategy("logit-comparison");
inline constexpr VerifyStrategy VerifyStrategy::kBlock = VerifyStrategy("block");
inline constexpr VerifyStrategy VerifyStrategy::kRelaxed = VerifyStrategy("relaxed");

inline const char* Name(VerifyStrategy strategy) {  // "auto", "typical-acceptance"
  return strategy.name();
}

// Noise of different purposes is independent. A lossless verifier uses no random number twice.
enum class NoisePurpose {
  kTarget,    // a token of the target: what plain decoding draws with
  kCoin,      // accept or reject
  kResidual,  // the token in place of a rejected draft
};

// One sequence's drafts and the target's distributions for them. Position i verifies draft i; the
// last position, i = length(), is behind all drafts. Views are valid until Verify returns. The
// engine owns the object.
class DraftsToVerify {
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
  ~DraftsToVerify() = default;
};

struct Verdict {
  int accepted = 0;        // drafts kept, from the first on; [0, length]
  std::int32_t next = -1;  // one more token, of the vocabulary
};

// All calls come from the thread that calls the engine. After an invalid verdict or an exception,
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
  virtual bool NeedsDistributions() const { return false; }
  virtual Verdict Verify(DraftsToVerify& drafts) = 0;
};

}  // namespace foretoken
