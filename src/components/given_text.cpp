// SPDX-License-Identifier: Apache-2.0
#include "components/given_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foretoken/catalogue.h"
#include "foretoken/drafts.h"

namespace foretoken {
namespace {

bool ReadsText(const SamplingParameters& s) {
  return s.repetition_penalty != 1 || s.frequency_penalty != 0 || s.presence_penalty != 0 ||
         s.dry.multiplier > 0 || !s.processors.empty();
}

TokenRows First(TokenRows rows, std::size_t n) {
  rows.rows = std::min(rows.rows, static_cast<int>(n));
  return rows;
}

}  // namespace

// Like a request with the engine's settings.
void GivenText::BeginController(bool by_text) {
  if (std::exchange(controls_, true) && by_text == by_text_) return;
  by_text_ = by_text;
  parts_.controller().Begin(
      kSeq,
      {.most = *parts_.opened().options.speculative.num_speculative_tokens, .by_text = by_text});
}

void GivenText::Leave() noexcept {
  EndDrafter();
  Close();
  controls_ = false;
}

void GivenText::EndDrafter() noexcept {
  if (begun_ >= 0) parts_.drafters()[std::exchange(begun_, -1)].drafter->End(kSeq);
}

void GivenText::Reset() noexcept {
  parts_.controller().Reset(kSeq);
  position_ = 0;
}

// The text as a request for nothing.
Result<Request> GivenText::Checked(std::span<const Token> context,
                                   const GivenSampling& given) const {
  Request request;
  request.prompt_tokens.assign(context.begin(), context.end());
  request.sampling = given.sampling;
  request.max_new_tokens = 0;
  FORETOKEN_CHECK_OK(parts_.preparation().Check(request, context));
  const auto length = static_cast<int>(context.size());
  if (given.n_generated < 0 || given.n_generated > length)
    return InvalidArgument(fmt::format("generated tokens: {} of a text of {}; use 0 to {}",
                                       given.n_generated, length, length));
  request.sampling = parts_.preparation().Drawable(std::move(request.sampling));
  return request;
}

// n: tokens of the text.
Result<int> GivenText::DrafterFor(const Request& request, const GivenSampling& given,
                                  std::size_t n) const {
  const loader::DrafterSet& drafters = parts_.drafters();
  const auto fits = [&](int d) {
    const loader::DrafterEntry& entry = drafters[d];
    const draft::DrafterSpec* const spec = entry.spec;
    return entry.reads_features() == !given.hidden_states.empty() &&
           !entry.drafter->ReadsTargetCache() &&
           (spec == nullptr || spec->joins_others || spec->Serves(request));
  };
  const auto found = std::find_if(drafters.defaults().begin(), drafters.defaults().end(), fits);
  const std::string& method = parts_.summary().method;
  if (found == drafters.defaults().end() && given.hidden_states.empty())
    return InvalidArgument(fmt::format(
        "drafts: '{}' does not draft from a text alone; give hidden states to a head, or "
        "open the decoder with standalone, ngram, suffix or a drafter of your own",
        method));
  if (found == drafters.defaults().end())
    return InvalidArgument(fmt::format(
        "drafts: '{}' does not draft from given hidden states; leave them out, or open the "
        "decoder with an EAGLE or MTP head or a DFlash drafter",
        method));
  if (given.hidden_states.empty()) return *found;
  const auto width = static_cast<std::size_t>(parts_.summary().hidden_states.width);
  const std::size_t rows = given.hidden_states.size() / width;
  if (rows * width != given.hidden_states.size() || rows > n - 1 ||
      (rows < n - 1 && !drafters[*found].drafter->StartsAnywhere()))
    return InvalidArgument(fmt::format(
        "hidden states: {} numbers are given; give {} for each of the {} tokens before the last",
        given.hidden_states.size(), width, n - 1));
  return *found;
}

// The text that takes the place of an earlier one keeps the part of a draft model's cache that both
// share.
Status GivenText::BeginDrafter(const Request& request, std::span<const Token> context,
                               const GivenSampling& given) {
  const engine::Opened& opened = parts_.opened();
  FORETOKEN_TRY(const auto grammar, parts_.preparation().GrammarOf(given.sampling));
  const engine::SpeculationRules& rules = parts_.speculation();
  const verify::Verifier& rule = rules.VerifierFor(request);
  if (begun_ != round_.drafter) EndDrafter();
  begun_ = round_.drafter;
  const int n = static_cast<int>(context.size());
  drafter().Begin({.seq = kSeq,
                   .prompt = context,
                   .n_generated = given.n_generated,
                   .max_new_tokens = std::min(opened.context - n, kMaxDraft),
                   .sampling = request.sampling,
                   .end_tokens = opened.end_tokens,
                   .noise = Noise(given.seed, given.request_id),
                   .stream = rule.SharesNoise() ? Stream::kTarget : Stream::kDraft,
                   .draft_p_min = opened.options.speculative.draft_p_min,
                   .prediction = {},
                   .own_text_only = rules.FollowsDrafts(request, rule),
                   .grammar = grammar});
  if (given.hidden_states.empty()) return {};
  const int width = parts_.summary().hidden_states.width,
            rows = static_cast<int>(given.hidden_states.size()) / width;
  const draft::Observation observation = {
      .seq = kSeq,
      .committed = {},
      .features = given.hidden_states.data(),
      .n_features = rows,
      .feature_stride = width,
      .feature_parts = parts_.drafters()[round_.drafter].feature_parts,
      .first_position = n - 1 - rows};
  drafter().Observe({&observation, 1});
  return {};
}

round::Proposal GivenText::Ask(int n, bool logits) {
  const draft::Ask ask{kSeq, n, logits};
  round::Proposal proposal;
  int before = 0;
  do {  // a long text is read in parts
    before = drafter().Missing(kSeq);
    drafter().Propose({&ask, 1}, {&proposal, 1});
  } while (n > 0 && proposal.length() == 0 && drafter().Missing(kSeq) < before);
  forwards_ += drafter().TakeWork().forwards;
  return proposal;
}

// n_made: drafts that a lookup has made; -1: none are made yet.
int GivenText::Choose(int n_made, int room) {
  const draft_length::Offer offer = {.drafter = round_.drafter,
                                     .most = n_made < 0 ? room : n_made,
                                     .made = n_made >= 0,
                                     .evidence = round_.proposal.evidence,
                                     .missing = drafter().Missing(kSeq)};
  draft_length::Plan plan = {
      .seq = kSeq, .context = static_cast<int>(round_.context.size()) - 1, .offers = {&offer, 1}};
  parts_.controller().Choose({&plan, 1});
  return plan.k;
}

Result<round::Proposal> GivenText::DraftAfter(std::span<const Token> context,
                                              const GivenSampling& given,
                                              const engine::DraftWants& wants, int most) {
  FORETOKEN_TRY(const Request request, Checked(context, given));
  FORETOKEN_TRY(const int d, DrafterFor(request, given, context.size()));
  const engine::SpeculationRules& rules = parts_.speculation();
  const verify::Verifier& rule = rules.VerifierFor(request);
  const std::string& controller = parts_.opened().options.speculative.controller;
  BeginController(FindController(controller)->follows_load && rules.FollowsDrafts(request, rule));
  const bool again =
      round_.open && d == round_.drafter && std::ranges::equal(context, round_.context);
  // Where nothing was drafted, there was nothing to verify.
  if (round_.open && !again && round_.proposal.length() == 0) Observe(0, 0);
  round_.open = false;
  round_.context.assign(context.begin(), context.end());
  round_.given = given;
  round_.given.hidden_states = {};
  round_.drafter = d;
  round_.proposal = {};
  if (!again) round_.length = parts_.controller().Most(kSeq, 1);
  if (wants.length) round_.length = *wants.length;
  if (round_.length > 0) {
    FORETOKEN_CHECK_OK(BeginDrafter(request, context, given));
    const bool instant = parts_.drafters()[d].instant, logits = wants.logits || rule.NeedsLogits();
    const int room = std::min(kMaxDraft, parts_.context_size() - static_cast<int>(context.size()));
    if (instant) round_.proposal = Ask(std::min(round_.length, room), logits);
    if (!again) {
      const int k = Choose(instant ? round_.proposal.length() : -1, room);
      if (!wants.length) round_.length = k;
    }
    const int k = std::min({round_.length, room, most});
    if (!instant) round_.proposal = Ask(k, logits);
    auto& tokens = round_.proposal.tokens;
    tokens = tokens.first(std::min(tokens.size(), static_cast<std::size_t>(std::max(k, 0))));
  }
  round_.open = true;
  return round_.proposal;
}

VerificationOptions GivenText::VerificationFor(const GivenSampling& given) const {
  const engine::Opened& opened = parts_.opened();
  VerificationOptions options{.vocabulary_size = opened.vocabulary,
                              .speculative = opened.options.speculative,
                              .sampling = parts_.preparation().Drawable(given.sampling),
                              .verifier = opened.options.verifier,
                              .seed = given.seed,
                              .request_id = given.request_id,
                              .isa = opened.options.isa};
  Request request;
  request.sampling = given.sampling;
  const verify::Verifier& verifier = parts_.speculation().VerifierFor(request);
  for (const auto& rule : parts_.speculation().verifiers().rules)
    if (&verifier == rule.get())
      options.speculative.strategy = *VerifyStrategy::Named(rule->name());
  return options;
}

Result<VerifiedDrafts> GivenText::Verify(std::span<const Token> drafts,
                                         const TokenRows& target_logits,
                                         const GivenSampling* given) {
  BeginController(by_text_);
  const GivenSampling& how = given != nullptr ? *given : round_.given;
  if (!round_.open && ReadsText(how.sampling))
    return InvalidArgument(
        "sampling: penalties and processors look at the text before the drafts, and there is none; "
        "call Draft with it first (with num_steps = 0 for drafts of your own), or Step");
  VerificationInput input{.position = position_, .drafts = drafts, .target_logits = target_logits};
  const round::Proposal& made = round_.proposal;
  const std::size_t n = drafts.size();
  const bool own =
      n > 0 && n <= made.tokens.size() && std::ranges::equal(drafts, made.tokens.first(n));
  if (round_.open) {
    input.text = round_.context;
    input.n_generated = how.n_generated;
    input.position.reset();
  }
  if (own) {
    input.draft_probabilities = First(parts_.RowsOf(made, made.q), n);
    input.draft_logits = First(parts_.RowsOf(made, made.logits), n);
  }
  FORETOKEN_TRY(const VerifiedDrafts verified, foretoken::Verify(VerificationFor(how), input));
  position_ = input.position.value_or(static_cast<Pos>(input.text.size())) + verified.accepted + 1;
  // A controller that weighs costs learns only from its drafter's drafts, and from rounds in which it
  // wanted none.
  const bool weighs = FindController(parts_.summary().controller)->weighs_costs;
  if (own || (n > 0 && !weighs))
    Observe(static_cast<int>(n), verified.accepted);
  else if (round_.open && made.length() == 0)
    Observe(0, 0);
  Close();
  return verified;
}

// The caller may still look at the drafts.
void GivenText::Close() noexcept {
  round_.open = false;
  round_.given = {};
  round_.proposal = {};
}

// A round of these drafts, which takes the time that passes and drafts of the engine are known to
// take: the pass was the caller's.
void GivenText::Observe(int drafted, int accepted) noexcept {
  const draft_length::RoundCosts& costs = parts_.costs();
  const int d = std::max(0, round_.drafter), context = static_cast<int>(round_.context.size());
  double us = 0;
  if (costs.known()) us = costs.PassUs(1 + drafted, context) + costs.RestUs();
  if (costs.known() && drafted > 0 && !parts_.drafters()[d].instant)
    us += costs.DraftsUs(d, drafted, drafted, context);
  parts_.controller().Observe(kSeq, {.drafter = d,
                                     .evidence = round_.proposal.evidence,
                                     .drafted = drafted,
                                     .accepted = accepted,
                                     .context = context,
                                     .us = us});
}

}  // namespace foretoken
