// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "foretoken/drafts.h"

namespace foretoken::engine {

Error ThrownBy(std::string_view what) noexcept {
  const Status status = CatchNoMemory("request", [&]() -> Status {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("request: its callback threw an exception: {}; catch it there", what));
  });
  return status.error();
}

std::vector<Token> EndTokensOf(const Request& request, std::span<const Token> of_model) {
  std::vector<Token> tokens = request.stop_token_ids;
  if (!request.ignore_eos) tokens.insert(tokens.end(), of_model.begin(), of_model.end());
  return tokens;
}

void MakeRoomForCounts(SpeculationStats& stats, std::size_t n) {
  for (auto* counts :
       {&stats.drafted_per_position, &stats.verified_per_position, &stats.accepted_per_position})
    counts->resize(std::max(counts->size(), n));
  stats.k_histogram.resize(std::max(stats.k_histogram.size(), n + 1));
}

Admission::Admission(AdmissionSettings settings, const EngineOptions& options,
                     const text::Tokenizer& tokenizer, const kernels::Kernels& kernels,
                     const SpeculationRules& rules, loader::DrafterSet& drafters,
                     kv::BlockTables& cache, OnAdmitted on_admitted)
    : settings_(std::move(settings)),
      options_(options),
      tokenizer_(tokenizer),
      kernels_(kernels),
      rules_(rules),
      drafters_(drafters),
      cache_(cache),
      on_admitted_(std::move(on_admitted)),
      slots_(options.slot_folder.empty() ? 0 : options.max_sequences,
             kv::BlocksFor(settings_.context) * tensor::kKvBlock),
      sequences_(options.max_sequences) {}

Ticket Admission::Add(PreparedRequest request, OnRound on_round, bool in_batch) {
  auto job = std::make_unique<Job>();
  job->prompt = std::move(request.prompt_);
  job->prediction = std::move(request.prediction_);
  job->grammar = std::move(request.grammar_);
  job->request = std::move(request.request_);
  job->salt = NameSalt(job->request.cache_salt);
  job->no_memory = NoMemory("request");
  job->on_round = std::move(on_round);
  job->in_batch = in_batch;
  const Ticket ticket = job->ticket = last_ticket_ + 1;
  const auto at = jobs_.emplace(ticket, std::move(job)).first;
  try {
    waiting_.push_back(at->second.get());
  } catch (const std::bad_alloc&) {
    jobs_.erase(at);
    throw;
  }
  return last_ticket_ = ticket;
}

SaltId Admission::NameSalt(const std::string& cache_salt) {
  const SaltId salt = salts_.Of(cache_salt);
  cache_.NameSalt(salt, cache_salt);
  return salt;
}

Job* Admission::Find(Ticket ticket) const noexcept {
  const auto found = jobs_.find(ticket);
  return found == jobs_.end() ? nullptr : found->second.get();
}

const Sequence* Admission::SequenceOf(Ticket ticket) const noexcept {
  const Job* const job = Find(ticket);
  return job == nullptr || job->seq < 0 ? nullptr : sequences_.Slot(job->seq).get();
}

void Admission::Cancel(Ticket ticket) noexcept {
  if (Job* const job = Find(ticket)) job->cancelled = true;
}

void Admission::Pause(Ticket ticket, bool paused) noexcept {
  if (Job* const job = Find(ticket)) job->paused = paused;
}

std::optional<Completion> Admission::Take(Ticket ticket) noexcept {
  const auto found = jobs_.find(ticket);
  if (found == jobs_.end() || !found->second->completion) return std::nullopt;
  auto completion = std::move(found->second->completion);
  jobs_.erase(found);
  return completion;
}

// Ends running requests that were cancelled, also while a pause keeps them from any pass.
bool Admission::EndCancelled() noexcept {
  bool any = false;
  for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq) {
    const Sequence* const s = sequences_.Slot(seq).get();
    if (s == nullptr || !s->job->cancelled) continue;
    Finish(*s->job, FinishReason::kCancelled);
    any = true;
  }
  return any;
}

bool Admission::Shares(const Job& job) const noexcept {
  return options_.prefix_cache && job.request.reuse_prefix;
}

// Where the request's text goes on with a recurrent state that a sequence still has, that one; or else
// the one whose state has been of no use for longest. kNoSequence: all are taken.
SeqId Admission::FreeSequence(const Job& job) const noexcept {
  const SeqId known = Shares(job) && !job.reads_prompt() ? cache_.SequenceOf(job.prompt, job.salt)
                                                         : kv::BlockTables::kNoSequence;
  if (known >= 0 && sequences_.Slot(known) == nullptr) return known;
  SeqId found = kv::BlockTables::kNoSequence;
  for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()); ++seq) {
    if (sequences_.Slot(seq) != nullptr) continue;
    if (found < 0 || cache_.ended(seq) < cache_.ended(found)) found = seq;
  }
  return found;
}

void Admission::AdmitFirst(SeqId seq) noexcept {
  Job& job = *waiting_.front();
  waiting_.pop_front();
  job.seq = seq;
  if (!TryFor(job, [&] { Admit(job, seq); })) return Finish(job, FinishReason::kError);
  if (job.cancelled) return Finish(job, FinishReason::kCancelled);
  const Sequence& s = sequences_.At(seq);
  if (s.emitter.tokens_left() <= 0 && !s.awaits_prompt()) Finish(job, FinishReason::kLength);
}

void Admission::Admit(Job& job, SeqId seq) {
  const Request& request = job.request;
  const verify::Verifier& verifier = rules_.VerifierFor(request);
  const std::span<const Token> own =
      std::span(job.prompt).first(job.prompt.size() - request.generated.size());
  const int room = settings_.context - static_cast<int>(own.size());
  const int max_new = std::min(request.max_new_tokens, room);
  const std::vector<Token> end_tokens = EndTokensOf(request, settings_.end_tokens);
  sampling::Sampler sampler({.parameters = request.sampling,
                             .end_tokens = end_tokens,
                             .min_new_tokens = request.min_new_tokens,
                             .noise = Noise(request.seed, request.id),
                             .grammar = job.grammar},
                            settings_.vocabulary, kernels_);
  sampler.Begin(own, max_new + kMaxDraft + 1);
  for (const Token token : request.generated) sampler.Push(token);
  auto& slot = sequences_.Slot(seq);
  slot.reset(new Sequence{.job = &job,
                          .sampler = std::move(sampler),
                          .emitter = text::Emitter(tokenizer_, request.stop, end_tokens, max_new,
                                                   request.control_texts),
                          .verifier = &verifier,
                          .drafters = rules_.DraftersFor(request)});
  slot->emitter.GoOnBehind(request.generated);
  Completion& completion = slot->completion;
  completion.seed = request.seed;
  completion.slot = request.slot < 0 ? static_cast<int>(seq) : request.slot;
  completion.strategy = verifier.name();
  BeginThinking(*slot);
  const bool relaxes = slot->drafts() && slot->thinking.relaxes();
  completion.lossless = rules_.Lossless(verifier, slot->drafts()) && !relaxes;
  completion.notices = rules_.NoticesOf(request);
  completion.token_ids.reserve(static_cast<std::size_t>(max_new));
  if (request.logprobs >= 0) completion.logprobs.reserve(static_cast<std::size_t>(max_new));
  if (request.prompt_logprobs >= 0) completion.prompt_logprobs.reserve(job.prompt.size() - 1);
  BeginEmbedding(*slot);
  slot->follows_drafts = rules_.FollowsDrafts(request, verifier);
  BeginDrafters(*slot, seq, end_tokens, max_new);
  completion.controller = rules_.ControllerOf(slot->drafts(), slot->follows_drafts);
  on_admitted_(seq, *slot);
  completion.prompt_token_ids = job.prompt;
}

// A template may open a part that thinks at the end of the prompt.
void Admission::BeginThinking(Sequence& s) const {
  if (settings_.thinking == nullptr) return;
  s.thinking = {.verifier = rules_.ThinkingVerifierFor(s.request()), .marks = settings_.thinking};
  if (!s.thinking.relaxes()) return;
  for (const Token token : s.job->prompt) s.thinking.marks->Follow(token, s.thinking.place);
}

void Admission::BeginEmbedding(Sequence& s) const {
  const auto pooling = s.request().embedding;
  if (!pooling) return;
  const auto dim = static_cast<std::size_t>(settings_.dim);
  s.completion.embedding.resize(pooling == Pooling::kNone ? dim * s.job->prompt.size() : dim);
  if (pooling == Pooling::kMean) s.pooled_sum.resize(dim);
}

void Admission::BeginDrafters(Sequence& s, SeqId seq, std::span<const Token> end_tokens,
                              int max_new) {
  const Request& request = s.request();
  const SpeculativeParameters& speculative = request.speculative;
  const SpeculativeOptions& options = options_.speculative;
  if (s.drafts())
    s.most_drafts = speculative.num_speculative_tokens.value_or(*options.num_speculative_tokens);
  if (s.verifies()) s.most_drafts = static_cast<int>(s.given().size());
  s.drafts_first = s.verifies();
  MakeRoomForCounts(s.completion.speculation, static_cast<std::size_t>(s.most_drafts));
  if (!s.drafts()) return;
  const SamplingParameters sampling = speculative.draft_sampling.value_or(request.sampling);
  for (const int d : s.drafters) {
    draft::Drafter& drafter = *drafters_[d].drafter;
    s.n_likely = std::max(s.n_likely, drafter.LikelyTokens());
    drafter.Begin({.seq = seq,
                   .prompt = s.sampler.text(),
                   .max_new_tokens = max_new,
                   .sampling = sampling,
                   .end_tokens = end_tokens,
                   .min_new_tokens = request.min_new_tokens,
                   .noise = s.sampler.noise(),
                   .stream = s.verifier->SharesNoise() ? Stream::kTarget : Stream::kDraft,
                   .draft_p_min = speculative.draft_p_min.value_or(options.draft_p_min),
                   .prediction = s.job->prediction,
                   .own_text_only = s.follows_drafts,
                   .salt = s.job->salt,
                   .teaches = request.reuse_prefix,
                   .grammar = s.job->grammar});
  }
  s.drafts_first = !rules_.FirstTokenIsTargets(request) && request.prompt_logprobs < 0;
  s.least_drafts = rules_.LeastDraftsOf(request);
}

void Admission::Finish(Job& job, FinishReason reason) noexcept {
  const SeqId seq = job.seq;
  auto& slot = sequences_.Slot(seq);
  Completion& completion = job.completion.emplace();
  if (slot != nullptr) {
    Sequence& s = *slot;
    std::string rest;
    if (reason == FinishReason::kVerified && !job.error)
      s.emitter.DropHeldBack();
    else
      TryFor(job, [&] { s.emitter.Flush(rest); });  // empty unless the request was cancelled
    if (s.awaits_embedding()) s.completion.embedding.clear();
    completion = std::move(s.completion);
    completion.text = s.emitter.TakeText();
    for (const int d : s.drafters) drafters_[d].drafter->End(seq);
  }
  if (slot != nullptr && !job.error && Shares(job)) {
    KeepSlot(*slot, completion.slot);
    cache_.End(seq, slot->sampler.text(), job.salt);
  } else {
    cache_.Truncate(seq, 0);
  }
  completion.finish_reason = job.error ? FinishReason::kError : reason;
  completion.error = std::move(job.error);
  job.seq = -1;
  slot.reset();
}

// What the cache has of the text. An embedding is no text that anybody goes on with.
void Admission::KeepSlot(const Sequence& s, int slot) noexcept {
  if (slots_.size() == 0 || slot < 0 || s.request().embedding) return;
  const auto text = s.sampler.text();
  const auto n = static_cast<std::size_t>(cache_.length(s.job->seq));
  slots_.Note(slot, text.first(std::min(n, text.size())), s.job->salt,
              kv::RootKey(s.request().cache_salt));
}

SeqId Admission::End(Ticket ticket) noexcept {
  Job* const job = Find(ticket);
  if (job == nullptr || job->completion) return -1;
  const SeqId seq = job->seq;
  if (seq >= 0) {
    Finish(*job, FinishReason::kCancelled);
    return seq;
  }
  std::erase(waiting_, job);
  Completion& completion = job->completion.emplace();
  completion.finish_reason = job->error ? FinishReason::kError : FinishReason::kCancelled;
  completion.error = std::move(job->error);
  completion.prompt_token_ids = std::move(job->prompt);
  completion.seed = job->request.seed;
  return -1;
}

}  // namespace foretoken::engine
