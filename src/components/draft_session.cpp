// SPDX-License-Identifier: Apache-2.0
#include "foretoken/draft_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/argument_checks.h"
#include "draft/custom_drafter.h"
#include "foretoken/drafts.h"
#include "foretoken/result.h"
#include "kernels/dispatch.h"

namespace foretoken {
namespace {

constexpr int kAnyVocabulary = 1 << 30;  // of drafters that name tokens and no distributions

}  // namespace

class DraftSession::Impl {
 public:
  Impl(std::shared_ptr<Drafter> drafter, int vocabulary, const kernels::Kernels& kernels)
      : vocabulary_(vocabulary),
        source_(std::move(drafter)),
        drafter_(source_,
                 {.max_sequences = 1,
                  .vocabulary = vocabulary == 0 ? kAnyVocabulary : vocabulary,
                  .max_draft = kMaxDraft,
                  .kernels = &kernels,
                  .on_fault = [this](std::string what) { notices.push_back(std::move(what)); }}) {}
  ~Impl() { End(); }

  Status Begin(const SessionText& request) {
    FORETOKEN_CHECK_OK(Check(request));
    if (!runs_) {
      drafter_.Use({});  // of a Begin that ran out of memory
      FORETOKEN_TRY(auto lease, draft::SequenceLease::One(source_));
      drafter_.Use(std::move(lease));
    }
    text.assign(request.prompt.begin(), request.prompt.end());
    left_ = request.max_new_tokens;
    drafts_.clear();
    runs_ = true;
    drafter_.Begin({.seq = 0,
                    .prompt = text,
                    .max_new_tokens = request.max_new_tokens,
                    .sampling = request.sampling,
                    .end_tokens = request.end_tokens,
                    .min_new_tokens = request.min_new_tokens,
                    .noise = Noise(request.seed, request.id),
                    .stream = request.shares_noise ? Stream::kTarget : Stream::kDraft,
                    .draft_p_min = request.draft_p_min});
    return {};
  }

  static Result<std::vector<Drafts>> Propose(std::span<Impl* const> sessions, int k,
                                             const DraftOptions& options) {
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      FORETOKEN_CHECK_OK(sessions[i]->CheckAsk(k, options));
      if (sessions[i]->source_ != sessions.front()->source_)
        return InvalidArgument(
            "sessions: they have several drafters; let those of one draft together");
      for (std::size_t j = 0; j < i; ++j)
        if (sessions[j] == sessions[i])
          return InvalidArgument("sessions: one comes twice; give each once");
    }
    std::vector<round::Proposal> proposals(sessions.size());
    std::vector<std::size_t> waiting(sessions.size());
    std::iota(waiting.begin(), waiting.end(), std::size_t{0});
    while (!waiting.empty()) waiting = Ask(sessions, k, options, waiting, proposals);
    std::vector<Drafts> drafts;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      sessions[i]->drafts_.assign(proposals[i].tokens.begin(), proposals[i].tokens.end());
      drafts.push_back(sessions[i]->Copied(proposals[i], options));
    }
    return drafts;
  }

  Status Observe(std::span<const std::int32_t> committed) {
    if (!runs_) return InvalidArgument("observed tokens: no text has begun; call Begin first");
    FORETOKEN_CHECK_OK(CheckTokens("observed tokens", committed, most_tokens()));
    if (static_cast<std::int64_t>(committed.size()) > left_)
      return InvalidArgument(
          fmt::format("observed tokens: {} are given, and {} of max_new_tokens are left; "
                      "begin with more",
                      committed.size(), left_));
    const auto differing =
        std::mismatch(drafts_.begin(), drafts_.end(), committed.begin(), committed.end()).first;
    const draft::Observation observation = {
        .seq = 0,
        .committed = committed,
        .drafted = static_cast<int>(drafts_.size()),
        .accepted = static_cast<int>(differing - drafts_.begin())};
    drafter_.Observe({&observation, 1});
    text.insert(text.end(), committed.begin(), committed.end());
    left_ -= static_cast<int>(committed.size());
    drafts_.clear();
    return {};
  }

  void End() {
    if (!std::exchange(runs_, false)) return;
    drafter_.End(0);
    drafter_.Use({});
    text.clear();
  }

  DrafterWork TakeWork() { return std::exchange(work_, {}); }

  std::vector<std::int32_t> text;
  std::vector<std::string> notices;

 private:
  Status CheckAsk(int k, const DraftOptions& options) const {
    if (!runs_) return InvalidArgument("drafts: no text has begun; call Begin first");
    if (k < 0 || k > kMaxDraft)
      return InvalidArgument(fmt::format("drafts: {} is out of range; use 0 to {}", k, kMaxDraft));
    if ((options.distributions || options.logits) && vocabulary_ == 0)
      return InvalidArgument(
          "drafts: the vocabulary's size is not known; give it to DraftSession::Create");
    return {};
  }

  // Asks once for the drafts of sessions[waiting]. Returns those that must be asked again, because a
  // draft model reads a long text in parts.
  static std::vector<std::size_t> Ask(std::span<Impl* const> sessions, int k,
                                      const DraftOptions& options,
                                      std::span<const std::size_t> waiting,
                                      std::span<round::Proposal> proposals) {
    std::vector<draft::CustomDrafter*> drafters;
    std::vector<draft::Ask> asks;
    std::vector<int> before;
    for (const std::size_t i : waiting) {
      Impl& session = *sessions[i];
      drafters.push_back(&session.drafter_);
      asks.push_back({0, std::min(k, session.left_), options.logits});
      before.push_back(session.drafter_.Missing(0));
    }
    std::vector<round::Proposal> made(asks.size());
    draft::CustomDrafter::ProposeTogether(drafters, asks, made);
    const draft::Drafter::Work work = drafters.front()->TakeWork();
    std::vector<std::size_t> unread;
    for (std::size_t w = 0; w < waiting.size(); ++w) {
      Impl& session = *sessions[waiting[w]];
      session.work_.forwards += work.forwards;
      session.work_.read_tokens += work.catch_up_rows;
      session.work_.read_ms += work.catch_up_ms;
      proposals[waiting[w]] = made[w];
      if (asks[w].max_tokens > 0 && made[w].length() == 0 &&
          session.drafter_.Missing(0) < before[w])
        unread.push_back(waiting[w]);
    }
    return unread;
  }

  int most_tokens() const { return vocabulary_ == 0 ? kAnyVocabulary : vocabulary_; }

  Status Check(const SessionText& request) const {
    if (request.prompt.empty()) return InvalidArgument("prompt: it has no tokens; give some");
    FORETOKEN_CHECK_OK(CheckTokens("prompt tokens", request.prompt, most_tokens()));
    FORETOKEN_CHECK_OK(CheckTokens("end tokens", request.end_tokens, most_tokens()));
    FORETOKEN_CHECK_OK(request.sampling.Validate(most_tokens()));
    const auto length = static_cast<std::int64_t>(request.prompt.size()) + request.max_new_tokens;
    if (request.max_new_tokens < 0 || length > kMaxTextTokens)
      return InvalidArgument(
          fmt::format("max tokens: {} is out of range; use 0 to {} less the prompt",
                      request.max_new_tokens, kMaxTextTokens));
    if (request.min_new_tokens < 0 || request.min_new_tokens > request.max_new_tokens)
      return InvalidArgument(fmt::format("min tokens: {} is out of range; use 0 to max tokens",
                                         request.min_new_tokens));
    if (!(request.draft_p_min >= 0 && request.draft_p_min <= 1))
      return InvalidArgument(
          fmt::format("draft p-min: {} is out of range; use 0 to 1", request.draft_p_min));
    return {};
  }

  Drafts Copied(const round::Proposal& proposal, const DraftOptions& options) const {
    Drafts drafts;
    drafts.tokens.assign(proposal.tokens.begin(), proposal.tokens.end());
    drafts.vocabulary_size = vocabulary_;
    const auto n = static_cast<std::size_t>(vocabulary_);
    for (int i = 0; proposal.q != nullptr && i < proposal.length(); ++i) {
      const float* const q = proposal.Distribution(i);
      drafts.probabilities.push_back(q[proposal.tokens[static_cast<std::size_t>(i)]]);
      if (options.distributions) drafts.distributions.insert(drafts.distributions.end(), q, q + n);
    }
    if (options.logits && proposal.logits != nullptr)
      drafts.logits.assign(proposal.logits, proposal.logits + drafts.tokens.size() * n);
    return drafts;
  }

  const int vocabulary_;  // 0: not known
  const std::shared_ptr<Drafter> source_;
  draft::CustomDrafter drafter_;
  DrafterWork work_;
  std::vector<std::int32_t> drafts_;  // of the last proposal
  int left_ = 0;                      // tokens that the text may still get
  bool runs_ = false;
};

Result<std::unique_ptr<DraftSession>> DraftSession::Create(std::shared_ptr<Drafter> drafter,
                                                           int vocabulary_size) {
  if (!drafter) return InvalidArgument("drafter: none is given; give one");
  const int own = drafter->limits().vocabulary_size;
  if (vocabulary_size < 0 || (vocabulary_size > 0 && own > 0 && vocabulary_size != own))
    return InvalidArgument(
        fmt::format("vocabulary size: {} is given, and drafter '{}' has {}; leave it out",
                    vocabulary_size, drafter->name(), own));
  const int size = vocabulary_size > 0 ? vocabulary_size : own;
  if (size == 0 && drafter->ReportsDistributions())
    return InvalidArgument(
        fmt::format("vocabulary size: drafter '{}' does not say it; give it", drafter->name()));
  FORETOKEN_TRY(const kernels::Kernels* const kernels, kernels::KernelsFromEnvironment());
  return std::unique_ptr<DraftSession>(
      new DraftSession(std::make_unique<Impl>(std::move(drafter), size, *kernels)));
}

DraftSession::DraftSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DraftSession::~DraftSession() = default;

Status DraftSession::Begin(const SessionText& request) {
  return CatchNoMemory("drafts", [&] { return impl_->Begin(request); });
}
Result<Drafts> DraftSession::Propose(int k, const DraftOptions& options) {
  DraftSession* const self = this;
  FORETOKEN_TRY(auto drafts, ProposeAll({&self, 1}, k, options));
  return std::move(drafts.front());
}
Result<std::vector<Drafts>> DraftSession::ProposeAll(std::span<DraftSession* const> sessions, int k,
                                                     const DraftOptions& options) {
  return CatchNoMemory("drafts", [&] {
    std::vector<Impl*> impls;
    for (const DraftSession* const session : sessions) impls.push_back(session->impl_.get());
    return Impl::Propose(impls, k, options);
  });
}
Status DraftSession::Observe(std::span<const std::int32_t> committed) {
  return CatchNoMemory("drafts", [&] { return impl_->Observe(committed); });
}
void DraftSession::End() {
  impl_->End();
}
std::span<const std::int32_t> DraftSession::text() const {
  return impl_->text;
}
DrafterWork DraftSession::TakeWork() {
  return impl_->TakeWork();
}
const std::vector<std::string>& DraftSession::notices() const {
  return impl_->notices;
}

}  // namespace foretoken
