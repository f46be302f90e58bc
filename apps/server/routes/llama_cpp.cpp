// SPDX-License-Identifier: Apache-2.0
// server/routes/llama_cpp.cpp: llama.cpp's own paths.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "server/api/llama_cpp_replies.h"
#include "server/api/llama_cpp_schema.h"
#include "server/router.h"
#include "server/routes/fill_marks.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

// The tokens of a prompt. What models begin with precedes a text at its beginning.
std::vector<std::int32_t> TokensOf(const Engine& engine, const std::vector<Prompt>& parts) {
  std::vector<std::int32_t> tokens;
  for (const Prompt& part : parts) {
    const auto* const text = std::get_if<std::string>(&part);
    const std::vector<std::int32_t> more =
        text == nullptr ? std::get<std::vector<std::int32_t>>(part)
        : text->empty() && &part != &parts.front()
            ? std::vector<std::int32_t>()
            : engine.Tokenize(*text, &part == &parts.front(), true);
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

void LogLlamaCppPrompts(const LlamaCppCall& call, LogLine& line) {
  for (const std::vector<Prompt>& parts : call.prompts)
    for (const Prompt& part : parts)
      if (const auto* const text = std::get_if<std::string>(&part)) line.Add("prompt", *text);
  if (!call.gap.prefix.empty()) line.Add("input_prefix", call.gap.prefix);
  if (!call.gap.suffix.empty()) line.Add("input_suffix", call.gap.suffix);
}

// Generates what the call's prompts ask for, which are tokens by now.
HttpResponse LlamaCppAnswer(Service& service, const HttpRequest& request, LlamaCppCall call,
                            LogLine& line) {
  const Engine& engine = service.engine;
  GenerationCall& generation = call.generation;
  for (const auto& [text, bias] : call.biases)
    for (const std::int32_t token : engine.Tokenize(text, false, false))
      generation.request.sampling.logit_bias[token] = bias;
  generation.trace = generation.stream;  // so that a stream has the tokens of all rounds
  LlamaCppReply reply{
      .settings_json = LlamaCppSettingsJson(generation, engine.summary().target.context_size),
      .stop = generation.request.stop,
      .return_tokens = call.return_tokens,
      .response_fields = std::move(call.response_fields),
      .text_of =
          [&engine](std::span<const std::int32_t> tokens) {
            return engine.Detokenize(tokens, true);
          },
      .n = generation.n};
  for (const Prompt& prompt : generation.prompts)
    reply.prompt_sizes.push_back(std::get<std::vector<std::int32_t>>(prompt).size());
  return Generate(service, request, std::move(generation), LlamaCppWriter(std::move(reply)), line);
}

HttpResponse LlamaCppRefusal(Service& service, const HttpRequest& request, ApiError error,
                             LogLine& line) {
  return Generate(service, request, Refuse(std::move(error)), LlamaCppWriter({}), line);
}

HttpResponse LlamaCppCompletion(Service& service, const HttpRequest& request, LogLine& line) {
  auto call = ParseLlamaCppCompletion(request.body, service.limits);
  if (!call) return LlamaCppRefusal(service, request, std::move(call).error(), line);
  if (service.options.log_prompts) LogLlamaCppPrompts(*call, line);
  call->generation.prompts.clear();
  for (const std::vector<Prompt>& parts : call->prompts)
    call->generation.prompts.emplace_back(TokensOf(service.engine, parts));
  return LlamaCppAnswer(service, request, *std::move(call), line);
}

HttpResponse Infill(Service& service, const HttpRequest& request, LogLine& line) {
  auto call = ParseLlamaCppInfill(request.body, service.limits);
  if (!call) return LlamaCppRefusal(service, request, std::move(call).error(), line);
  const auto marks = FindFillMarks(service.engine);
  if (!marks) return LlamaCppRefusal(service, request, marks.error(), line);
  if (service.options.log_prompts) LogLlamaCppPrompts(*call, line);
  GenerationCall& generation = call->generation;
  const auto context = static_cast<std::size_t>(service.engine.summary().target.context_size);
  // As much for the answer as is asked for, but no more than half.
  const auto length = static_cast<std::size_t>(std::max(generation.max_tokens.value_or(1), 1));
  std::size_t n_left_out = 0;
  std::vector<std::int32_t> prompt = GapTokens(service.engine, *marks, call->gap,
                                               context - std::min(length, context / 2), n_left_out);
  generation.prompts = {Prompt(std::move(prompt))};
  if (n_left_out > 0)
    generation.notices.push_back(
        fmt::format("input_extra: the first {} of {} do not fit and are left out", n_left_out,
                    call->gap.extra.size()));
  auto& ends = generation.request.stop_token_ids;
  ends.insert(ends.end(), marks->ends.begin(), marks->ends.end());
  return LlamaCppAnswer(service, request, *std::move(call), line);
}

std::string NameOfToken(const Engine& engine, std::int32_t token) {
  return engine.Detokenize({&token, 1}, true);
}

LlamaCppProps PropsOf(const Service& service) {
  const Engine& engine = service.engine;
  const EngineSummary& summary = engine.summary();
  const std::vector<std::int32_t> begin = engine.Tokenize("", true, false);
  const auto& ends = summary.target.end_tokens;
  return {
      .name = service.limits.name,
      .chat_template = service.engine.ChatTemplateText(service.chat_format).value_or(std::string()),
      .bos = begin.empty() ? "" : NameOfToken(engine, begin.front()),
      .eos = ends.empty() ? "" : NameOfToken(engine, ends.front()),
      .slots = summary.max_sequences,
      .running = service.requests.load().running,
      .context = summary.target.context_size,
      .speculative = summary.method != "none" && summary.num_speculative_tokens > 0};
}

HttpResponse Props(Service& service, const HttpRequest&, LogLine&) {
  return {.body = LlamaCppPropsJson(PropsOf(service))};
}

HttpResponse SetProps(Service&, const HttpRequest&, LogLine& line) {
  const ApiError error{.status = 501,
                       .message =
                           "props: they are those of the start and cannot be changed; start "
                           "the server with other flags",
                       .code = "not_implemented"};
  line.Add("error", NameOf(error));
  return {.status = error.status, .body = LlamaCppErrorJson(error)};
}

HttpResponse Slots(Service& service, const HttpRequest&, LogLine&) {
  return {.body = LlamaCppSlotsJson(PropsOf(service))};
}

}  // namespace

extern const Route kLlamaCppCompletionRoute = {
    .method = "POST",
    .path = "/completion",
    .about = "llama.cpp's completions, below",
    .handle = LlamaCppCompletion,
    .refusal = LlamaCppErrorJson,
    .reads =
        [](const ModelLimits& limits) {
          std::string lacks = MissingField(ParseLlamaCppCompletion("{}", limits));
          static_cast<void>(ParseCompletionCall(R"({"prompt": ""})", limits));
          return lacks;
        },
    .reply = "LlamaCppCompletion",
    .event = "LlamaCppEvent"};
extern const Route kInfillRoute = {
    .method = "POST",
    .path = "/infill",
    .about =
        "llama.cpp's: the text between two others, of models that "
        "have tokens for that",
    .handle = Infill,
    .refusal = LlamaCppErrorJson,
    .reads =
        [](const ModelLimits& limits) {
          std::string lacks = MissingField(ParseLlamaCppInfill("{}", limits));
          static_cast<void>(ParseCompletionCall(R"({"prompt": ""})", limits));
          return lacks;
        },
    .reply = "LlamaCppCompletion",
    .event = "LlamaCppEvent"};
extern const Route kPropsRoute = {
    .method = "GET",
    .path = "/props",
    .about =
        "llama.cpp's: `default_generation_settings`, `total_slots`, names of the model and of "
        "the tokens with which texts begin and end",
    .handle = Props,
    .refusal = LlamaCppErrorJson,
    .reply = "LlamaCppProps"};
extern const Route kSetPropsRoute = {.method = "POST",
                                     .path = "/props",
                                     .about = "llama.cpp's; 501, as they cannot be changed",
                                     .handle = SetProps,
                                     .refusal = LlamaCppErrorJson,
                                     .refuses = 501};
extern const Route kSlotsRoute = {
    .method = "GET",
    .path = "/slots",
    .about =
        "llama.cpp's: an entry for each request that may run, `is_processing` for as many as "
        "run",
    .handle = Slots,
    .refusal = LlamaCppErrorJson,
    .reply = "LlamaCppSlots"};

}  // namespace foretoken::server
