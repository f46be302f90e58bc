// SPDX-License-Identifier: Apache-2.0
#include "foretoken/verification.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/aligned_buffer.h"
#include "base/argument_checks.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "foretoken/speculative_config.h"
#include "foretoken/verifier.h"
#include "kernels/dispatch.h"
#include "sampling/logprobs.h"
#include "sampling/sampler.h"
#include "verify/custom_verifier.h"
#include "verify/rules.h"
#include "verify/synthetic.h"

namespace foretoken {
namespace {

TokenOrigin OriginOf(round::NextKind kind) {
  if (kind == round::NextKind::kPlain) return TokenOrigin::kPlain;
  return kind == round::NextKind::kBonus ? TokenOrigin::kBonus : TokenOrigin::kRecovered;
}

// Keeps only the options that rules read.
SpeculativeOptions RuleOptions(const SpeculativeOptions& o) {
  return {.strategy = o.strategy,
          .synthetic_acceptance_rate = o.synthetic_acceptance_rate,
          .synthetic_acceptance_each = o.synthetic_acceptance_each,
          .acceptance_threshold = o.acceptance_threshold,
          .skip_sample_adjustment = o.skip_sample_adjustment,
          .typical_epsilon = o.typical_epsilon,
          .typical_delta = o.typical_delta,
          .relaxed_top_n = o.relaxed_top_n,
          .relaxed_delta = o.relaxed_delta};
}

Status CheckOptions(const VerificationOptions& o) {
  if (o.vocabulary_size < 1)
    return InvalidArgument(
        fmt::format("vocabulary size: {} is out of range; use 1 or more", o.vocabulary_size));
  FORETOKEN_CHECK_OK(o.sampling.Validate(o.vocabulary_size));
  const SamplingParameters& draft = o.draft_sampling.value_or(o.sampling);
  if (auto status = draft.Validate(o.vocabulary_size); !status)
    return Fail(std::move(status).error().In("draft sampling"));
  if (!o.sampling.grammar.empty() || !draft.grammar.empty())
    return InvalidArgument(
        "grammar: it needs the texts of a vocabulary's tokens, and logits have none; leave "
        "it out, or mask the logits");
  FORETOKEN_CHECK_OK(SpeculativeConfig::Create(RuleOptions(o.speculative)));
  const VerifyStrategy strategy = o.speculative.strategy;
  if (o.verifier && strategy != VerifyStrategy::kAuto)
    return InvalidArgument(
        fmt::format("verifier: '{}' is given, and the strategy '{}' too; drop one of them",
                    o.verifier->name(), Name(strategy)));
  if (strategy == VerifyStrategy::kGreedy && !o.sampling.greedy())
    return InvalidArgument(
        fmt::format("verify: 'greedy' with temperature {} would give greedy text; use "
                    "temperature 0, or residual or sample-match",
                    o.sampling.temperature));
  return {};
}

Status CheckRows(const char* what, const TokenRows& rows, std::size_t n, int vocabulary) {
  if (rows.rows != static_cast<int>(n))
    return InvalidArgument(
        fmt::format("{}: {} rows are given where {} are needed", what, rows.rows, n));
  if (n > 0 && (rows.data == nullptr || rows.vocabulary_size < vocabulary))
    return InvalidArgument(
        fmt::format("{}: rows of {} numbers are given; give one for each of the {} tokens", what,
                    rows.data == nullptr ? 0 : rows.vocabulary_size, vocabulary));
  return {};
}

Status CheckUniforms(const char* what, std::span<const double> numbers, std::size_t n) {
  if (numbers.empty()) return {};
  if (numbers.size() != n)
    return InvalidArgument(
        fmt::format("{}: {} uniform numbers are given where {} are needed; give all or none", what,
                    numbers.size(), n));
  for (const double u : numbers)
    if (!(u >= 0 && u < 1))
      return InvalidArgument(
          fmt::format("{}: {} is not a uniform number; give one in [0, 1)", what, u));
  return {};
}

}  // namespace

class DraftVerification::Impl {
 public:
  Impl(VerificationOptions options, const kernels::Kernels& kernels)
      : options_(std::move(options)),
        vocabulary_(options_.vocabulary_size),
        kernels_(kernels),
        rules_(options_.speculative),
        target_(ConfigOf(options_.sampling), vocabulary_, kernels),
        drafter_(ConfigOf(options_.draft_sampling.value_or(options_.sampling)), vocabulary_,
                 kernels),
        scratch_(2 * static_cast<std::size_t>((vocabulary_ + 15) / 16 * 16)) {
    if (options_.verifier)
      own_.emplace(options_.verifier,
                   verify::CustomSettings{.vocabulary = vocabulary_, .on_fault = {}});
    if (const SpeculativeOptions& o = options_.speculative; o.synthetic_acceptance_rate)
      synthetic_.emplace(*o.synthetic_acceptance_rate, o.synthetic_acceptance_each);
  }

  Result<VerifiedDrafts> Verify(const VerificationInput& input) {
    FORETOKEN_CHECK_OK(Check(input));
    const verify::Verifier& rule = RuleFor(input);
    if (rule.NeedsLogits() && input.draft_logits.empty() && !input.drafts.empty())
      return InvalidArgument(
          fmt::format("verify: '{}' compares the drafter's logits, and none are given; give "
                      "draft_logits, or use another strategy",
                      rule.name()));
    const auto n = static_cast<Pos>(input.text.size());
    const Pos position = input.position.value_or(n);
    given_ = {position, input.uniforms.accept, input.uniforms.recover, input.uniforms.target};
    Begin(target_, input, position - n);
    const round::Proposal proposal = ProposalOf(input, rule, position - n);
    const TokenRows& rows = input.target_logits;
    const round::Verdict verdict =
        rule.Verify(proposal, {rows.data, rows.stride}, target_, scratch_.data());
    if (target_.TakeProcessorFault())
      return InvalidArgument(
          "logits processor: it left NaN or +infinity; leave finite numbers, or -infinity to ban a "
          "token");
    VerifiedDrafts out{.accepted = verdict.accepted,
                       .next = verdict.next,
                       .origin = OriginOf(verdict.kind),
                       .strategy = NameOf(rule),
                       .lossless = rule.Lossless()};
    if (input.logprobs >= 0) ReadLogprobs(input, out);
    return out;
  }

 private:
  sampling::SamplerConfig ConfigOf(const SamplingParameters& parameters) const {
    return {.parameters = parameters,
            .end_tokens = {},
            .noise = Noise(options_.seed, options_.request_id, given_)};
  }

  Status Check(const VerificationInput& input) const {
    const std::size_t n = input.drafts.size();
    if (n > kMaxDraft)
      return InvalidArgument(fmt::format("drafts: {} are given; give {} at most", n, kMaxDraft));
    FORETOKEN_CHECK_OK(CheckTokens("text", input.text, vocabulary_));
    FORETOKEN_CHECK_OK(CheckTokens("drafts", input.drafts, vocabulary_));
    const int length = static_cast<int>(input.text.size());
    if (input.n_generated < 0 || input.n_generated > length)
      return InvalidArgument(fmt::format("generated tokens: {} of a text of {}; use 0 to {}",
                                         input.n_generated, length, length));
    if (const int position = input.position.value_or(length); position < length)
      return InvalidArgument(
          fmt::format("position: {} lies within the text; use {} or more", position, length));
    FORETOKEN_CHECK_OK(CheckRows("target logits", input.target_logits, n + 1, vocabulary_));
    if (!input.draft_logits.empty())
      FORETOKEN_CHECK_OK(CheckRows("draft logits", input.draft_logits, n, vocabulary_));
    FORETOKEN_CHECK_OK(CheckFinite("target logits", input.target_logits));
    FORETOKEN_CHECK_OK(CheckFinite("draft logits", input.draft_logits));
    if (!input.draft_probabilities.empty()) FORETOKEN_CHECK_OK(CheckProbabilities(input));
    FORETOKEN_CHECK_OK(CheckUniforms("accept", input.uniforms.accept, n));
    FORETOKEN_CHECK_OK(CheckUniforms("recover", input.uniforms.recover, n));
    FORETOKEN_CHECK_OK(CheckUniforms("target", input.uniforms.target, n + 1));
    if (input.logprobs < -1 || input.logprobs > sampling::kMaxTopLogprobs)
      return InvalidArgument(fmt::format("logprobs: {} is out of range; use 0 to {}",
                                         input.logprobs, sampling::kMaxTopLogprobs));
    return {};
  }

  // Masks of the caller's, -infinity, are good logits, as long as they leave a token.
  Status CheckFinite(const char* what, const TokenRows& rows) const {
    for (int i = 0; i < rows.rows; ++i) {
      const float* const row = rows.Row(i).data();
      const kernels::Finiteness worst = kernels_.finiteness(row, vocabulary_);
      if (worst == kernels::Finiteness::kNotANumber)
        return InvalidArgument(
            fmt::format("{}: row {} holds NaN or +infinity; give finite numbers, or "
                        "-infinity where a token is banned",
                        what, i));
      if (worst == kernels::Finiteness::kMinusInfinity &&
          kernels_.max(row, vocabulary_) == -std::numeric_limits<float>::infinity())
        return InvalidArgument(fmt::format("{}: row {} bans every token; leave one", what, i));
    }
    return {};
  }

  Status CheckProbabilities(const VerificationInput& input) const {
    constexpr double kTolerance = 1e-3;
    const TokenRows& rows = input.draft_probabilities;
    FORETOKEN_CHECK_OK(CheckRows("draft probabilities", rows, input.drafts.size(), vocabulary_));
    for (int i = 0; i < rows.rows; ++i) {
      const float* const row = rows.data + i * rows.stride;
      const Token draft = input.drafts[static_cast<std::size_t>(i)];
      const double sum = kernels_.sum(row, vocabulary_);
      if (!(std::abs(sum - 1) <= kTolerance))
        return InvalidArgument(
            fmt::format("draft probabilities: row {} sums to {:.6g}; normalise it", i, sum));
      if (!(row[draft] > 0))
        return InvalidArgument(
            fmt::format("draft probabilities: row {} gives draft {} {:.6g}, so it was not "
                        "drawn from it; give the distribution that it was drawn from",
                        i, draft, row[draft]));
    }
    return {};
  }

  // A program's own verifier outlives this object, so the name is taken from it, not from the
  // adapter that is kept here.
  std::string_view NameOf(const verify::Verifier& rule) const {
    return own_ && &rule == &*own_ ? options_.verifier->name() : rule.name();
  }

  const verify::Verifier& RuleFor(const VerificationInput& input) const {
    if (synthetic_) return *synthetic_;
    if (own_) return *own_;
    if (target_.greedy()) return rules_.Of(VerifyStrategy::kGreedy);
    const VerifyStrategy strategy = options_.speculative.strategy;
    if (strategy != VerifyStrategy::kAuto) return rules_.Of(strategy);
    const bool known =
        !input.draft_probabilities.empty() || (!input.draft_logits.empty() && !drafter_.greedy());
    return rules_.Of(known ? VerifyStrategy::kResidual : VerifyStrategy::kSampleMatch);
  }

  static void Begin(sampling::Sampler& sampler, const VerificationInput& input, Pos first) {
    const auto n = static_cast<std::size_t>(input.n_generated);
    sampler.Begin(input.text.first(input.text.size() - n),
                  input.n_generated + static_cast<int>(input.drafts.size()) + 1, first);
    for (const Token t : input.text.last(n)) sampler.Push(t);
  }

  round::Proposal ProposalOf(const VerificationInput& input, const verify::Verifier& rule,
                             Pos first) {
    round::Proposal proposal{.tokens = input.drafts};
    if (!input.draft_probabilities.empty()) {
      proposal.q = input.draft_probabilities.data;
      proposal.q_stride = input.draft_probabilities.stride;
    } else if (!input.draft_logits.empty() && rule.NeedsDistributions() && !drafter_.greedy()) {
      ComputeDistributions(input, first);
      proposal.q = distributions_.data();
      proposal.q_stride = vocabulary_;
    }
    if (input.draft_logits.empty()) return proposal;
    for (std::size_t i = 0; i < input.drafts.size(); ++i)
      raw_logits_[i] =
          input.draft_logits.Row(static_cast<int>(i))[static_cast<std::size_t>(input.drafts[i])];
    proposal.raw_logits = raw_logits_.data();
    return proposal;
  }

  // What the drafts were drawn from, by the drafter's logits.
  void ComputeDistributions(const VerificationInput& input, Pos first) {
    const std::size_t size = input.drafts.size() * static_cast<std::size_t>(vocabulary_);
    if (distributions_.size() < size) distributions_ = AlignedBuffer<float>(size);
    Begin(drafter_, input, first);
    for (std::size_t i = 0; i < input.drafts.size(); ++i) {
      drafter_.Distribution(input.draft_logits.Row(static_cast<int>(i)).data(),
                            distributions_.data() + i * static_cast<std::size_t>(vocabulary_));
      drafter_.Push(input.drafts[i]);
    }
  }

  void ReadLogprobs(const VerificationInput& input, VerifiedDrafts& out) {
    if (!logprobs_) logprobs_.emplace(vocabulary_, kernels_);
    for (int i = 0; i <= out.accepted; ++i) {
      const Token token = i < out.accepted ? input.drafts[static_cast<std::size_t>(i)] : out.next;
      logprobs_->Read(input.target_logits.Row(i).data(), token, input.logprobs,
                      out.logprobs.emplace_back());
    }
  }

  const VerificationOptions options_;
  const int vocabulary_;
  const kernels::Kernels& kernels_;
  GivenUniforms given_;
  verify::Rules rules_;
  std::optional<verify::CustomVerifier> own_;
  std::optional<verify::Synthetic> synthetic_;
  sampling::Sampler target_, drafter_;
  AlignedBuffer<float> scratch_;        // [2, vocabulary]
  AlignedBuffer<float> distributions_;  // [drafts, vocabulary]: computed from the drafter's logits
  std::array<float, kMaxDraft> raw_logits_ = {};
  std::optional<sampling::LogprobReader> logprobs_;
};

DraftVerification::DraftVerification(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DraftVerification::DraftVerification(DraftVerification&&) noexcept = default;
DraftVerification& DraftVerification::operator=(DraftVerification&&) noexcept = default;
DraftVerification::~DraftVerification() = default;

Result<DraftVerification> DraftVerification::Create(VerificationOptions options) {
  return CatchNoMemory("verification", [&]() -> Result<DraftVerification> {
    FORETOKEN_CHECK_OK(CheckOptions(options));
    FORETOKEN_TRY(const kernels::Kernels* const kernels, kernels::KernelsByName(options.isa));
    return DraftVerification(std::make_unique<Impl>(std::move(options), *kernels));
  });
}

Result<VerifiedDrafts> DraftVerification::Verify(const VerificationInput& input) {
  return CatchNoMemory("verification", [&] { return impl_->Verify(input); });
}

Result<VerifiedDrafts> Verify(VerificationOptions options, const VerificationInput& input) {
  FORETOKEN_TRY(DraftVerification verification, DraftVerification::Create(std::move(options)));
  return verification.Verify(input);
}

}  // namespace foretoken
