// SPDX-License-Identifier: Apache-2.0
#include "foretoken/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/impl.h"

namespace foretoken {

const char* Name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::Open(EngineOptions options) {
  FORETOKEN_TRY(auto impl, Impl::Open(std::move(options)));
  return std::unique_ptr<Engine>(new Engine(std::move(impl)));
}

Result<Completion> Engine::Generate(const Request& request, const OnRound& on_round) {
  FORETOKEN_TRY(auto completions, impl_->Generate({&request, 1}, on_round));
  return std::move(completions.front());
}

Result<std::vector<Completion>> Engine::GenerateBatch(std::span<const Request> requests,
                                                      const OnRound& on_round) {
  return impl_->Generate(requests, on_round);
}

Result<std::vector<float>> Engine::Score(std::span<const std::int32_t> tokens) {
  return impl_->Score(tokens);
}

Result<Measurements> Engine::Measure(const MeasureOptions& options) {
  return impl_->Measure(options);
}

std::vector<std::int32_t> Engine::Tokenize(const std::string& text, bool add_special,
                                           bool parse_special) const {
  return impl_->tokenizer().Encode(text,
                                   {.add_special = add_special, .parse_special = parse_special});
}

std::string Engine::Detokenize(std::span<const std::int32_t> tokens, bool special) const {
  return impl_->tokenizer().Decode(tokens, special);
}

const EngineSummary& Engine::summary() const {
  return impl_->summary();
}

std::vector<Token> Engine::Impl::PromptTokens(const Request& request) const {
  if (!request.prompt_tokens.empty()) return request.prompt_tokens;
  auto tokens = tokenizer_->Encode(
      request.prompt, {.add_special = request.add_special, .parse_special = request.parse_special});
  if (tokens.empty() && tokenizer_->bos()) tokens.push_back(*tokenizer_->bos());
  return tokens;
}

Status Engine::Impl::Check(const Request& request, std::span<const Token> prompt) const {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  FORETOKEN_CHECK_OK(request.sampling.Validate(vocabulary_));
  if (request.speculative.draft_sampling) {
    if (auto status = request.speculative.draft_sampling->Validate(vocabulary_); !status)
      return Fail(std::move(status).error().In("draft sampling"));
  }
  if (request.max_new_tokens < 0)
    return bad(fmt::format("max tokens: {} is negative; use 0 or more", request.max_new_tokens));
  if (request.min_new_tokens < 0)
    return bad(fmt::format("min tokens: {} is negative; use 0 or more", request.min_new_tokens));
  if (request.min_new_tokens > request.max_new_tokens)
    return bad(fmt::format("min tokens: {} is more than max tokens {}; lower it",
                           request.min_new_tokens, request.max_new_tokens));
  if (request.logprobs < -1 || request.logprobs > engine::kMaxTopLogprobs)
    return bad(fmt::format("logprobs: {} is out of range; use 0 to {}", request.logprobs,
                           engine::kMaxTopLogprobs));
  const int k = request.speculative.num_speculative_tokens.value_or(0);
  if (k < 0 || k > kMaxDraft)
    return bad(fmt::format("speculative tokens: {} is out of range; use 0 to {}", k, kMaxDraft));
  const float p_min = request.speculative.draft_p_min.value_or(0);
  if (!(p_min >= 0 && p_min <= 1))
    return bad(fmt::format("draft p-min: {} is out of range; use 0 to 1", p_min));
  for (const auto& stop : request.stop)
    if (stop.empty()) return bad("stop: an empty stop string; drop it");
  for (const Token id : request.stop_token_ids)
    if (id < 0 || id >= vocabulary_)
      return bad(fmt::format("stop token ids: {} is not in the vocabulary; use 0 to {}", id,
                             vocabulary_ - 1));
  for (const Token id : prompt)
    if (id < 0 || id >= vocabulary_)
      return bad(fmt::format("prompt tokens: {} is not in the vocabulary; use 0 to {}", id,
                             vocabulary_ - 1));
  if (options_.speculative.strategy == VerifyStrategy::kGreedy && !request.sampling.greedy())
    return bad(
        fmt::format("verify: 'greedy' with temperature {} would give greedy text; use temperature "
                    "0, or residual or sample-match",
                    request.sampling.temperature));
  if (prompt.empty()) return bad("prompt: it has no tokens; give some text");
  if (static_cast<int>(prompt.size()) >= context_size_)
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format("prompt: {} tokens do not fit a context of {}; shorten it or raise --ctx-size",
                    prompt.size(), context_size_));
  return {};
}

// The rule for a request: asked for by name, else by what its drafts will be.
const verify::Verifier& Engine::Impl::VerifierFor(const Request& request) const {
  if (synthetic_) return *synthetic_;
  switch (options_.speculative.strategy) {
    case VerifyStrategy::kGreedy:
      return *greedy_;
    case VerifyStrategy::kResidual:
      return *residual_;
    case VerifyStrategy::kSampleMatch:
      return *sample_match_;
    case VerifyStrategy::kAuto:
      break;
  }
  if (request.sampling.greedy()) return *greedy_;
  const bool drafts_are_drawn =
      drafter_->ReportsLaws() &&
      !request.speculative.draft_sampling.value_or(request.sampling).greedy();
  return drafts_are_drawn ? *residual_ : *sample_match_;
}

void Engine::Impl::Admit(const Request& request, std::size_t index, std::vector<Token> prompt,
                         SeqId seq) {
  const auto& speculative = request.speculative;
  const int k = speculative.enabled.value_or(true)
                    ? speculative.num_speculative_tokens.value_or(
                          *options_.speculative.num_speculative_tokens)
                    : 0;
  const bool drafts = k > 0 && drafter_->name() != "none";
  const verify::Verifier& verifier = VerifierFor(request);
  const Noise noise(request.seed, request.id);
  const int room = context_size_ - static_cast<int>(prompt.size());
  std::vector<Token> end_tokens = request.stop_token_ids;  // all that end this request
  if (!request.ignore_eos)
    end_tokens.insert(end_tokens.end(), end_tokens_.begin(), end_tokens_.end());
  sampling::Sampler sampler({.parameters = request.sampling,
                             .end_tokens = end_tokens,
                             .min_new_tokens = request.min_new_tokens,
                             .noise = noise},
                            vocabulary_, *kernels_);
  const int max_new = std::min(request.max_new_tokens, room);
  sampler.Begin(prompt, max_new + kMaxDraft + 1);
  auto& slot = sequences_[static_cast<std::size_t>(seq)];
  slot.reset(new engine::Sequence{
      .request = &request,
      .index = index,
      .sampler = std::move(sampler),
      .emitter = engine::Emitter(*tokenizer_, request, end_tokens, room),
      .verifier = &verifier,
      .k_ceiling = drafts ? k : 0,
      .lookahead = engine::MakeLookahead(
          {options_.speculative.lookahead, drafts ? k : 0, &*costs_, &survival_}),
      .completion = {}});
  Completion& completion = slot->completion;
  completion.seed = request.seed;
  completion.strategy = verifier.name();
  completion.token_ids.reserve(static_cast<std::size_t>(max_new));
  if (request.logprobs >= 0) completion.logprobs.reserve(static_cast<std::size_t>(max_new));
  auto& stats = completion.speculation;
  for (auto* counts :
       {&stats.drafted_per_position, &stats.judged_per_position, &stats.accepted_per_position})
    counts->resize(static_cast<std::size_t>(slot->k_ceiling));
  stats.k_histogram.resize(static_cast<std::size_t>(slot->k_ceiling) + 1);
  if (drafts)
    drafter_->Begin(
        {.seq = seq,
         .prompt = prompt,
         .max_new_tokens = max_new,
         .sampling = speculative.draft_sampling.value_or(request.sampling),
         .end_tokens = end_tokens,
         .min_new_tokens = request.min_new_tokens,
         .noise = noise,
         .stream = verifier.SharesNoise() ? Stream::kTarget : Stream::kDraft,
         .draft_p_min = speculative.draft_p_min.value_or(options_.speculative.draft_p_min)});
  completion.prompt_token_ids = std::move(prompt);
}

Result<std::vector<Completion>> Engine::Impl::Generate(std::span<const Request> requests,
                                                       const OnRound& on_round) {
  std::vector<std::vector<Token>> prompts;
  for (const Request& request : requests) {
    prompts.push_back(PromptTokens(request));
    FORETOKEN_CHECK_OK(Check(request, prompts.back()));
  }
  std::vector<Completion> completions(requests.size());
  completions_ = &completions;
  std::size_t next = 0;
  const auto admit = [&] {
    for (SeqId seq = 0; seq < static_cast<SeqId>(sequences_.size()) && next < requests.size();
         ++seq) {
      if (sequences_[static_cast<std::size_t>(seq)] != nullptr) continue;
      Admit(requests[next], next, std::move(prompts[next]), seq);
      ++next;
      if (sequences_[static_cast<std::size_t>(seq)]->emitter.tokens_left() <= 0)
        Finish(seq, FinishReason::kLength), --seq;
    }
  };
  do admit();
  while (Step(on_round));
  completions_ = nullptr;
  return completions;
}

Result<std::vector<float>> Engine::Impl::Score(std::span<const Token> tokens) {
  if (static_cast<int>(tokens.size()) > context_size_)
    return Fail(ErrorCode::kTooLarge, fmt::format("score: {} tokens do not fit a context of {}",
                                                  tokens.size(), context_size_));
  for (const Token id : tokens)
    if (id < 0 || id >= vocabulary_)
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("score: token {} is not in the vocabulary of {}", id, vocabulary_));
  std::vector<float> logprobs;
  const int chunk = std::min(target_->options().max_rows, target_->options().max_logit_rows);
  for (int at = 0; at + 1 < static_cast<int>(tokens.size()); at += chunk) {
    const int n = std::min(chunk, static_cast<int>(tokens.size()) - 1 - at);
    const model::Segment segment{0, 0, n, at};
    const kv::Transaction::Rows rows{0, n};
    std::vector<int> logit_rows(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) logit_rows[static_cast<std::size_t>(i)] = i;
    kv::Transaction transaction(*cache_, {&rows, 1});
    target_->Forward(
        {.tokens = tokens.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(n)),
         .segments = {&segment, 1},
         .logit_rows = logit_rows},
        *cache_);
    transaction.Commit({&n, 1});
    for (int i = 0; i < n; ++i)
      logprobs.push_back(logprobs_->Of(target_->logits() + i * target_->logits_stride(),
                                       tokens[static_cast<std::size_t>(at + i + 1)]));
  }
  cache_->Truncate(0, 0);
  return logprobs;
}

}  // namespace foretoken
