// SPDX-License-Identifier: Apache-2.0
#include "verify/custom_verifier.h"
#include "foretoken/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <vector>

#include "verify/strategies/greedy.h"

namespace foretoken::verify {
namespace {

// Moves the sampler's text along the drafts to the position that is asked for.
class Draft final : public DraftsToVerify {
 public:
  Draft(const round::Proposal& proposal, LogitsView logits, sampling::Sampler& sampler,
        float* distributions, float* scratch)
      : proposal_(proposal),
        logits_(logits),
        sampler_(sampler),
        distributions_(distributions),
        scratch_(scratch),
        begin_(sampler.position()) {}

  std::span<const std::int32_t> tokens() const override { return proposal_.tokens; }
  std::span<const std::int32_t> text() const override {
    return sampler_.text().first(static_cast<std::size_t>(begin_));
  }
  std::span<const float> TargetDistribution(int i) override {
    if (!Has(i)) return {};
    float* const distribution = distributions_ + i * vocabulary();
    if (!known_[static_cast<std::size_t>(i)]) Compute(i, distribution);
    known_[static_cast<std::size_t>(i)] = true;
    return {distribution, static_cast<std::size_t>(vocabulary())};
  }
  std::span<const float> TargetLogits(int i) const override {
    if (!Has(i)) return {};
    return {logits_.Row(i).logits, static_cast<std::size_t>(vocabulary())};
  }
  std::span<const float> DraftDistribution(int i) const override {
    if (i < 0 || i >= length() || proposal_.q == nullptr) return {};
    return {proposal_.Distribution(i), static_cast<std::size_t>(vocabulary())};
  }
  double Uniform(NoisePurpose purpose, int i) const override {
    const Stream stream = purpose == NoisePurpose::kTarget ? Stream::kTarget
                          : purpose == NoisePurpose::kCoin ? Stream::kCoin
                                                           : Stream::kResidual;
    return sampler_.noise().Uniform(stream, begin_ + i);
  }
  std::int32_t Draw(std::span<const float> weights, double u) const override {
    if (std::ssize(weights) != vocabulary() || !(u >= 0 && u < 1)) return kNoToken;
    double sum = 0;
    for (const float w : weights) {
      if (!(w >= 0) || !std::isfinite(w)) return kNoToken;
      sum += static_cast<double>(w);
    }
    return sum > 0 ? sampler_.Draw(weights.data(), u) : kNoToken;
  }
  std::int32_t Sample(int i) override {
    if (!Has(i)) return kNoToken;
    MoveTo(i);
    return sampler_.Sample(logits_.Row(i), scratch_);
  }

  // REQUIRES: i in [0, length].
  void MoveTo(int i) noexcept {
    const int at = sampler_.position() - begin_;
    if (at > i) sampler_.Pop(at - i);
    for (int j = at; j < i; ++j) sampler_.Push(proposal_.tokens[static_cast<std::size_t>(j)]);
  }
  std::int64_t vocabulary() const { return sampler_.vocabulary(); }

 private:
  bool Has(int i) const { return i >= 0 && i <= length(); }
  void Compute(int i, float* distribution) {
    MoveTo(i);
    if (!sampler_.greedy()) return sampler_.Distribution(logits_.Row(i), distribution);
    std::fill_n(distribution, vocabulary(), 0.0f);
    distribution[sampler_.Argmax(logits_.Row(i))] = 1;
  }

  const round::Proposal& proposal_;
  const LogitsView logits_;
  sampling::Sampler& sampler_;
  float* const distributions_;
  float* const scratch_;
  const Pos begin_;
  std::array<bool, kMaxDraft + 1> known_ = {};  // distributions that were computed
};

}  // namespace

CustomVerifier::CustomVerifier(std::shared_ptr<foretoken::Verifier> verifier,
                               const CustomSettings& settings)
    : verifier_(std::move(verifier)),
      name_(verifier_->name()),
      lossless_(verifier_->lossless()),
      needs_distributions_(verifier_->NeedsDistributions()),
      settings_(settings),
      distributions_(static_cast<std::size_t>(kMaxDraft + 1) *
                     static_cast<std::size_t>(settings.vocabulary)) {}

void CustomVerifier::Report(Fault fault, const std::string& what) const {
  if (std::exchange(reported_[static_cast<std::size_t>(fault)], true)) return;
  if (settings_.on_fault) settings_.on_fault(fmt::format("verifier '{}': {}", name_, what));
}

void CustomVerifier::ReportThrown(const char* what) const noexcept {
  try {
    Report(Fault::kException, fmt::format("Verify threw: {}; catch it there", what));
  } catch (const std::exception&) {  // no memory for a notice
  }
}

round::Verdict CustomVerifier::Verify(const round::Proposal& proposal, LogitsView logits,
                                      sampling::Sampler& sampler, float* scratch) const noexcept {
  if (sampler.greedy() && lossless_) return VerifyGreedy(proposal, logits, sampler);
  Draft draft(proposal, logits, sampler, distributions_.data(), scratch);
  Verdict verdict;
  try {
    verdict = verifier_->Verify(draft);
    if (verdict.accepted < 0 || verdict.accepted > proposal.length() ||
        !sampler.Knows(verdict.next)) {
      Report(Fault::kVerdict,
             fmt::format("of {} drafts {} and token {} were kept, which cannot be, so the target's "
                         "own token was; keep 0 to {}, and a token of the vocabulary",
                         proposal.length(), verdict.accepted, verdict.next, proposal.length()));
      verdict = {0, draft.Sample(0)};
    }
  } catch (const std::exception& e) {
    ReportThrown(e.what());
    verdict = {0, draft.Sample(0)};
  } catch (...) {
    ReportThrown("an exception that is not a std::exception");
    verdict = {0, draft.Sample(0)};
  }
  draft.MoveTo(verdict.accepted);
  return EndWalk(proposal, verdict.accepted, verdict.next, sampler);
}

}  // namespace foretoken::verify
