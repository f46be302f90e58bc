// SPDX-License-Identifier: Apache-2.0
#include "server/routes/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <utility>

#include "server/api/openai_replies.h"
#include "server/router.h"
#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

std::uint64_t RandomNumber() {
  static thread_local std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// A whole number that JSON readers represent exactly, so that a client can send it back.
std::uint64_t RandomSeed() {
  return RandomNumber() >> (64 - 53);
}

// One prompt of a call, as a request for the engine.
Parsed<Request> Prepare(const Service& service, GenerationCall& call, const Prompt& prompt) {
  Request request = call.request;
  const Engine& engine = service.engine;
  if (const auto* const text = std::get_if<std::string>(&prompt)) {
    request.prompt = *text;
    request.prompt_tokens = engine.Tokenize(*text, request.add_special, false);
  } else {
    request.prompt_tokens = std::get<std::vector<std::int32_t>>(prompt);
  }
  const int context = engine.summary().target.context_size;
  const int n_prompt = static_cast<int>(request.prompt_tokens.size());
  const int room = context - n_prompt;
  if (room <= 0)
    return Refuse(
        BadField(call.chat ? "messages" : "prompt",
                 fmt::format("{} tokens do not fit a context of {}; shorten it", n_prompt, context),
                 "context_length_exceeded"));
  request.max_new_tokens = std::min(call.max_tokens.value_or(room), room);
  if (call.max_tokens && *call.max_tokens > room)
    call.notices.push_back(fmt::format(
        "max_tokens: {} and {} tokens of the prompt are more than the context of {}; {} fit",
        *call.max_tokens, n_prompt, context, room));
  if (request.min_new_tokens > request.max_new_tokens)
    return Refuse(BadField("min_tokens", fmt::format("{} do not fit; {} do", request.min_new_tokens,
                                                     request.max_new_tokens)));
  for (const std::string& text : call.dry_breakers.texts) {
    const auto token = engine.TokenOf(text);
    if (!token && !call.dry_breakers.of_client) continue;
    if (!token) return Refuse(BadField("dry_sequence_breakers", token.error().message));
    request.sampling.dry.breakers.push_back(*token);
  }
  return request;
}

Parsed<std::vector<Prompt>> PromptsOf(const Service& service, GenerationCall& call) {
  if (!call.chat) return std::move(call.prompts);
  ChatOptions format = service.options.chat_format;
  format.add_generation_prompt = call.add_generation_prompt;
  format.tools_json = call.tools_json;
  format.template_kwargs_json = call.template_kwargs_json;
  auto tokens = service.engine.FormatChat(call.messages, format);
  if (tokens) return std::vector<Prompt>{*std::move(tokens)};
  return Refuse({.message = "messages: " + tokens.error().message, .param = "messages"});
}

Echo EchoOf(const Service& service, const GenerationCall& call, const Prompt& prompt,
            const Request& request) {
  if (!call.echo) return {};
  const auto* const text = std::get_if<std::string>(&prompt);
  return {text != nullptr ? *text : service.engine.Detokenize(request.prompt_tokens),
          request.prompt_tokens};
}

struct Prepared {
  std::vector<Job> jobs;
  std::vector<Echo> echoes;  // of each job
};

// The bytes of a copy.
std::size_t BytesOf(const Request& request) {
  std::size_t bytes =
      sizeof(Job) + request.prompt.size() + request.sampling.grammar.size() +
      request.prediction.size() +
      (request.prompt_tokens.size() + request.stop_token_ids.size()) * sizeof(std::int32_t) +
      request.sampling.logit_bias.size() * 64;
  for (const std::string& text : request.stop) bytes += sizeof(text) + text.size();
  return bytes;
}

// A job for each choice: prompts in order, n choices each, with different request ids and so
// different noise.
Parsed<Prepared> PrepareAll(const Service& service, const Charges& charges, GenerationCall& call) {
  auto prompts = PromptsOf(service, call);
  if (!prompts) return Refuse(std::move(prompts).error());
  const auto mailbox = std::make_shared<Mailbox>(charges.bytes);
  const std::uint64_t seed = call.seed ? *call.seed : RandomSeed();
  const auto now = std::chrono::steady_clock::now();
  Prepared prepared;
  for (const Prompt& prompt : *prompts) {
    auto request = Prepare(service, call, prompt);
    if (!request) return Refuse(std::move(request).error());
    request->seed = seed;
    for (int i = 0; i < call.n; ++i) {
      if (service.overload.full()) return Refuse(NoMemory());
      request->id = static_cast<std::uint64_t>(i);
      // Here nobody waits but this client.
      auto checked = service.engine.Prepare(*request);
      if (!checked) return Refuse(OfEngine(checked.error(), call.chat));
      prepared.jobs.push_back({.request = *std::move(checked),
                               .choice = static_cast<int>(prepared.jobs.size()),
                               .first_of_prompt = i == 0,
                               .mailbox = mailbox,
                               .wants_rounds = call.stream,
                               .arrived = now,
                               .held = ByteLedger::Hold(charges.bytes, BytesOf(*request))});
      prepared.echoes.push_back(EchoOf(service, call, prompt, *request));
    }
  }
  return prepared;
}

void LogPrompts(const GenerationCall& call, LogLine& line) {
  for (const ChatMessage& message : call.messages) line.Add(message.role, message.content);
  for (const Prompt& prompt : call.prompts)
    if (const auto* const text = std::get_if<std::string>(&prompt)) line.Add("prompt", *text);
}

ApiError NotTaken(JobQueue::Outcome outcome) {
  if (outcome == JobQueue::Outcome::kFull)
    return {.status = 429,
            .message = "queue: it is full; try again later",
            .type = "rate_limit_error",
            .code = "queue_full",
            .retry_after_s = 1};
  return {.status = 503,
          .message = "server: it is shutting down; ask another, or again when it is back",
          .type = "server_error",
          .code = "draining",
          .retry_after_s = 5};
}

ReplyFrame FrameOf(const Service& service, const GenerationCall& call) {
  const Engine& engine = service.engine;
  const SpeculativeParameters& speculative = call.request.speculative;
  const int tokens =
      speculative.num_speculative_tokens.value_or(engine.summary().num_speculative_tokens);
  const bool drafts = speculative.enabled.value_or(true) && tokens > 0;
  return {.chat = call.chat,
          .id = fmt::format("{}-{:016x}", call.chat ? "chatcmpl" : "cmpl", RandomNumber()),
          .created = static_cast<std::int64_t>(std::time(nullptr)),
          .model = service.limits.name,
          .engine = &engine.summary(),
          .method = drafts ? speculative.method.value_or(engine.summary().method) : "none",
          .num_speculative_tokens = drafts ? tokens : 0,
          .piece = [&engine](std::int32_t token) { return Piece(engine, token); },
          .text_of = [&engine](std::int32_t token) { return Piece(engine, token, false); },
          .logprobs = call.request.logprobs >= 0,
          .echo_logprobs = call.request.prompt_logprobs >= 0,
          .include_usage = call.include_usage,
          .trace = call.trace};
}

}  // namespace

HttpResponse RefuseGeneration(const ApiError& error, LogLine& line) {
  line.Add("error", NameOf(error));
  if (!error.param.empty()) line.Add("param", error.param);
  return ErrorResponse(error);
}

HttpResponse Generate(Service& service, const HttpRequest& request, GenerationCall call,
                      LogLine& line) {
  ReplyFrame frame = FrameOf(service, call);
  line.Add("id", frame.id).Add("stream", call.stream ? "true" : "false");
  if (service.options.log_prompts) LogPrompts(call, line);
  auto prepared = PrepareAll(service, *request.charges, call);
  if (!prepared) return RefuseGeneration(prepared.error(), line);
  const int n_more = static_cast<int>(prepared->jobs.size()) - 1;
  for (Quota::Share& share : request.charges->shares)
    if (!share.Grow(n_more)) return RefuseGeneration(TooManyRequests(), line);
  frame.notices = std::move(call.notices);
  auto answer =
      std::make_unique<Answer>(service, prepared->jobs.front().mailbox,
                               Answer::Setting{call.chat, call.n, std::move(prepared->echoes)});
  const auto outcome = service.queue.Submit(std::move(prepared->jobs));
  if (outcome != JobQueue::Outcome::kTaken) return RefuseGeneration(NotTaken(outcome), line);
  const auto reply = call.stream ? StreamReply : WholeReply;
  return {.later = reply(service, std::move(answer), std::move(frame), line)};
}

}  // namespace foretoken::server
