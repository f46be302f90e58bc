// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/preparation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "base/argument_checks.h"
#include "engine/requests/job.h"
#include "foretoken/drafts.h"
#include "grammar/grammar_walk.h"
#include "sampling/logprobs.h"
#include "text/emitter.h"

namespace foretoken::engine {
namespace {

constexpr std::size_t kMaxSaltBytes = 1024;

}  // namespace

Result<PreparedRequest> Preparation::Prepare(Request request) const {
  PreparedRequest prepared;
  prepared.prepared_by_ = this;
  prepared.prompt_ = PromptTokens(request);
  FORETOKEN_CHECK_OK(Check(request, prepared.prompt_));
  if (request.embedding) request.speculative.enabled = false;
  prepared.prediction_ = PredictionTokens(request);
  if (!request.embedding) request.sampling = Drawable(std::move(request.sampling));
  FORETOKEN_TRY(prepared.grammar_, grammars_.Of(request.sampling));
  if (!request.generated.empty())
    FORETOKEN_CHECK_OK(
        CheckGenerated(request, static_cast<int>(prepared.prompt_.size()), prepared.grammar_));
  prepared.prompt_.insert(prepared.prompt_.end(), request.generated.begin(),
                          request.generated.end());
  prepared.request_ = std::move(request);
  return prepared;
}

SamplingParameters Preparation::Drawable(SamplingParameters sampling) const {
  for (const Token token : tokenizer_.never_drawn())
    sampling.logit_bias.insert_or_assign(token, -std::numeric_limits<float>::infinity());
  return sampling;
}

std::vector<Token> Preparation::PromptTokens(Request& request) const {
  if (!request.prompt_tokens.empty()) return std::exchange(request.prompt_tokens, {});
  auto tokens = tokenizer_.Encode(
      request.prompt, {.add_special = request.add_special, .parse_special = request.parse_special});
  if (tokens.empty() && tokenizer_.bos()) tokens.push_back(*tokenizer_.bos());
  return tokens;
}

std::vector<Token> Preparation::PredictionTokens(const Request& request) const {
  auto tokens =
      tokenizer_.Encode(request.prediction, {.add_special = false, .parse_special = false});
  if (tokens.size() > static_cast<std::size_t>(limits_.context)) {
    tokens.resize(static_cast<std::size_t>(limits_.context));
    tokens.shrink_to_fit();
  }
  return tokens;
}

Status Preparation::Check(const Request& request, std::span<const Token> prompt) const {
  FORETOKEN_CHECK_OK(request.sampling.Validate(limits_.vocabulary));
  if (request.speculative.draft_sampling) {
    if (auto status = request.speculative.draft_sampling->Validate(limits_.vocabulary); !status)
      return Fail(std::move(status).error().In("draft_sampling"));
  }
  FORETOKEN_CHECK_OK(CheckOutput(request));
  FORETOKEN_CHECK_OK(CheckEmbedding(request));
  FORETOKEN_CHECK_OK(CheckTokens("stop_token_ids", request.stop_token_ids, limits_.vocabulary));
  FORETOKEN_CHECK_OK(CheckTokens("prompt_tokens", prompt, limits_.vocabulary));
  FORETOKEN_CHECK_OK(rules_.Check(request));
  if (limits_.records && !rules_.FirstTokenIsTargets(request))
    return InvalidField("first_target",
                        "a trace begins with a token of the target's; leave it on, or record "
                        "nothing");
  FORETOKEN_CHECK_OK(CheckRoom(request, prompt));
  return CheckDrafts(request, static_cast<int>(prompt.size()));
}

Status Preparation::CheckDrafts(const Request& request, int n_prompt) const {
  if (!request.drafts) {
    if (request.generated.empty()) return {};
    return InvalidField("generated", "nothing is to be verified behind it; give drafts");
  }
  if (request.drafts->size() > kMaxDraft)
    return InvalidField("drafts", fmt::format("{} are more than the {} of one pass; give fewer",
                                              request.drafts->size(), kMaxDraft));
  FORETOKEN_CHECK_OK(CheckTokens("drafts", *request.drafts, limits_.vocabulary));
  FORETOKEN_CHECK_OK(CheckTokens("generated", request.generated, limits_.vocabulary));
  if (limits_.records)
    return InvalidField("drafts", "a trace has no drafts of callers; record nothing");
  if (request.prompt_logprobs >= 0)
    return InvalidField("prompt_logprobs", "drafts are given too; ask for them in another request");
  const int n = static_cast<int>(request.generated.size());
  if (n > 0 && n_prompt + n >= limits_.context)
    return FailField(ErrorCode::kTooLarge, "generated",
                     fmt::format("{} tokens and the {} of the prompt do not fit a context of {}; "
                                 "the text has ended",
                                 n, n_prompt, limits_.context));
  if (n > 0 && n >= request.max_new_tokens)
    return InvalidField("generated",
                        fmt::format("{} tokens, and the request may have {}; the text has ended", n,
                                    request.max_new_tokens));
  return {};
}

// Follows the text as the engine's thread will, so that this thread finds the grammar's states. The
// engine's thread might have to find them again, all at once, so the work is that of a first token.
Status Preparation::CheckGenerated(const Request& request, int n_prompt,
                                   const std::shared_ptr<const grammar::Grammar>& grammar) const {
  const std::vector<Token> ends = EndTokensOf(request, end_tokens_);
  text::Emitter emitter(tokenizer_, request.stop, ends,
                        std::min(request.max_new_tokens, limits_.context - n_prompt),
                        request.control_texts);
  std::string shown;
  for (const Token token : request.generated)
    if (emitter.Push(token, shown))
      return InvalidField("generated",
                          fmt::format("the text ends with token {} of {}; nothing follows it",
                                      emitter.n_tokens(), request.generated.size()));
  grammar::GrammarWalk walk(grammar);
  walk.Begin(static_cast<int>(request.generated.size()));
  for (const Token token : request.generated) {
    walk.Push(token);
    if (walk.work() > grammar::GrammarWalk::kMaxWork)
      return Fail(grammar::ErrorOf(grammar::GrammarFailure::kRequestWork));
    if (!walk.follows())
      return InvalidField("generated",
                          fmt::format("token {} of {} does not follow the grammar; give the tokens "
                                      "that requests with this grammar gave",
                                      walk.length(), request.generated.size()));
  }
  return {};
}

Status Preparation::CheckOutput(const Request& request) const {
  if (request.max_new_tokens < 0)
    return InvalidField("max_new_tokens",
                        fmt::format("{} is negative; use 0 or more", request.max_new_tokens));
  if (request.min_new_tokens < 0)
    return InvalidField("min_new_tokens",
                        fmt::format("{} is negative; use 0 or more", request.min_new_tokens));
  if (request.min_new_tokens > request.max_new_tokens)
    return InvalidField("min_new_tokens",
                        fmt::format("{} is more than the {} of max_new_tokens; lower it",
                                    request.min_new_tokens, request.max_new_tokens));
  if (request.logprobs < -1 || request.logprobs > sampling::kMaxTopLogprobs)
    return InvalidField("logprobs", fmt::format("{} is out of range; use 0 to {}", request.logprobs,
                                                sampling::kMaxTopLogprobs));
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > sampling::kMaxTopLogprobs)
    return InvalidField("prompt_logprobs",
                        fmt::format("{} is out of range; use 0 to {}", request.prompt_logprobs,
                                    sampling::kMaxTopLogprobs));
  if (request.cache_salt.size() > kMaxSaltBytes)
    return InvalidField("cache_salt", fmt::format("{} bytes are more than {}; give a shorter one",
                                                  request.cache_salt.size(), kMaxSaltBytes));
  if (request.slot < -1 || request.slot >= limits_.slots)
    return InvalidField(
        "slot", fmt::format("there is no {}; use -1, or 0 to {}", request.slot, limits_.slots - 1));
  for (const auto& stop : request.stop)
    if (stop.empty()) return InvalidField("stop", "an empty stop string; drop it");
  return {};
}

Status Preparation::CheckEmbedding(const Request& request) const {
  if (!request.embedding) return {};
  const Pooling pooling = *request.embedding;
  if (pooling == Pooling::kRank && !limits_.scores_pairs)
    return InvalidField("embedding",
                        "the model has no head that scores pairs of texts; use pooling 'none', "
                        "'mean', 'cls' or 'last'");
  if (pooling < Pooling::kNone || pooling > Pooling::kRank)
    return InvalidField("embedding",
                        fmt::format("there is no pooling {}; use 'none', 'mean', 'cls', 'last' or "
                                    "'rank'",
                                    static_cast<int>(pooling)));
  if (request.max_new_tokens > 0 || request.prompt_logprobs >= 0)
    return InvalidField("embedding",
                        "it comes alone; set max_new_tokens to 0 and prompt_logprobs to -1");
  return {};
}

Status Preparation::CheckRoom(const Request& request, std::span<const Token> prompt) const {
  if (prompt.empty()) return InvalidField("prompt", "it has no tokens; give some text");
  const int next = request.embedding ? 0 : 1;  // a token behind it
  if (static_cast<int>(prompt.size()) + next > limits_.context)
    return FailField(ErrorCode::kTooLarge, "prompt",
                     fmt::format("{} tokens do not fit a context of {}; "
                                 "shorten it or raise EngineOptions::context_size",
                                 prompt.size(), limits_.context));
  // The request must be able to run alone, when all others have been preempted.
  const auto n = static_cast<int>(prompt.size());
  const int more = std::min(request.max_new_tokens, limits_.context - n);
  if (n + more > limits_.most_positions)
    return FailField(ErrorCode::kTooLarge, "prompt",
                     fmt::format("{} tokens and up to {} more do not fit a cache of {}; ask for "
                                 "fewer or raise EngineOptions::cache_tokens",
                                 n, more, limits_.most_positions));
  return {};
}

}  // namespace foretoken::engine
