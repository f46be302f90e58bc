// SPDX-License-Identifier: Apache-2.0
#include "server/routes/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <random>
#include <span>
#include <utility>

#include "calls/thought.h"
#include "server/api/object_text.h"
#include "server/api/openai_replies.h"
#include "server/net/client_address.h"
#include "server/router.h"
#include "server/routes/answer.h"
#include "server/routes/thought_budget.h"
#include "settings/option_flags.h"

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
Parsed<Request> RequestOf(const Service& service, GenerationCall& call, const Prompt& prompt) {
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
  if (call.drafts) {
    const auto* const text = std::get_if<std::string>(&*call.drafts);
    request.drafts = text != nullptr ? engine.TokenizeMore(*text)
                                     : std::get<std::vector<std::int32_t>>(*call.drafts);
  }
  for (const std::string& text : call.dry_breakers.texts) {
    const auto token = engine.TokenOf(text);
    if (!token && !call.dry_breakers.of_client) continue;
    if (!token) return Refuse(BadField("dry_sequence_breakers", token.error().message));
    request.sampling.dry.breakers.push_back(*token);
  }
  return request;
}

ChatOptions FormatOfChat(const Service& service, const GenerationCall& call) {
  ChatOptions format = service.chat_format;
  format.add_generation_prompt = call.add_generation_prompt;
  format.tools_json = call.tools.json;
  format.template_kwargs_json =
      MergedObjects(format.template_kwargs_json, call.template_kwargs_json);
  return format;
}

Parsed<std::vector<Prompt>> PromptsOf(const Service& service, GenerationCall& call) {
  if (!call.chat) return std::move(call.prompts);
  auto tokens = service.engine.FormatChat(call.messages, FormatOfChat(service, call));
  if (tokens) return std::vector<Prompt>{*std::move(tokens)};
  return Refuse(
      {.message = "messages: " + settings::InFlags(tokens.error().message), .param = "messages"});
}

Echo EchoOf(const Service& service, const GenerationCall& call, const Prompt& prompt,
            const PreparedRequest& prepared) {
  if (!call.echo) return {};
  const auto tokens = prepared.prompt_tokens();
  const auto* const text = std::get_if<std::string>(&prompt);
  return {text != nullptr ? *text : service.engine.Detokenize(tokens),
          {tokens.begin(), tokens.end()}};
}

struct Prepared {
  std::vector<AsyncChoice> choices;
  std::vector<Echo> echoes;  // of each choice
};

// The bytes of a copy.
std::size_t BytesOf(const PreparedRequest& prepared) {
  const Request& request = prepared.request();
  std::size_t bytes = sizeof(AsyncChoice) + request.prompt.size() +
                      request.sampling.grammar.size() + request.prediction.size() +
                      request.cache_salt.size() +
                      (prepared.prompt_tokens().size() + prepared.prediction_tokens().size() +
                       request.stop_token_ids.size() + request.generated.size()) *
                          sizeof(std::int32_t) +
                      request.sampling.logit_bias.size() * 64;
  for (const std::string& text : request.stop) bytes += sizeof(text) + text.size();
  return bytes;
}

void BoundThought(const Service& service, const Prompt& prompt, bool begun, GenerationCall& call) {
  const ModelCalls& model = service.model_calls;
  if (!begun && !model.thinks)
    call.notices.emplace_back(
        "thinking_budget_tokens: the chat template speaks of no thoughts; it changes nothing");
  else
    call.request.sampling.processors.push_back(ThoughtBudget(
        service.engine, *model.thoughts,
        {.prompt = std::get<std::vector<std::int32_t>>(prompt).size(), .begun = begun},
        *call.thought_budget));
}

// Where the template has written the beginning of a thought, answers follow their grammar behind it.
// An answer that may call tools may begin with a thought, too.
void LeaveRoomForThought(const Service& service, const Prompt& prompt, GenerationCall& call,
                         ReplyFrame& frame) {
  constexpr std::size_t kLast = 8;  // tokens that a mark and white space behind it may be
  const ModelCalls& model = service.model_calls;
  std::span<const std::int32_t> tokens = std::get<std::vector<std::int32_t>>(prompt);
  tokens = tokens.last(std::min(tokens.size(), kLast));
  const bool begun = call.add_generation_prompt &&
                     calls::EndsInThought(service.engine.Detokenize(tokens, true), *model.thoughts);
  if (frame.answers) frame.answers->begun = begun;
  if (call.thought_budget) BoundThought(service, prompt, begun, call);
  std::string& grammar = call.request.sampling.grammar;
  if (grammar.empty() || model.whole()) return;
  if (begun)
    grammar = calls::BehindThought(grammar, *model.thoughts, model.control);
  else if (model.thinks && !call.tools.use.tools.empty())
    grammar = calls::PerhapsBehindThought(grammar, *model.thoughts, model.control);
}

// Prompts in order, n choices each, with different request ids and so different noise.
Parsed<Prepared> PrepareAll(const Service& service, const Charges& charges, GenerationCall& call,
                            ReplyFrame& frame) {
  auto prompts = PromptsOf(service, call);
  if (!prompts) return Refuse(std::move(prompts).error());
  if (call.chat) LeaveRoomForThought(service, prompts->front(), call, frame);
  const std::uint64_t seed = call.seed ? *call.seed : RandomSeed();
  Prepared prepared;
  for (const Prompt& prompt : *prompts) {
    auto request = RequestOf(service, call, prompt);
    if (!request) return Refuse(std::move(request).error());
    request->seed = seed;
    auto checked = service.engine.Prepare(*std::move(request));  // nobody waits but this client
    if (!checked) return Refuse(OfEngine(checked.error(), call.chat));
    for (int i = 0; i < call.n; ++i) {
      if (service.overload.full()) return Refuse(NoMemory());
      checked->set_id(static_cast<std::uint64_t>(i));
      prepared.choices.push_back({.request = *checked,
                                  .first_of_prompt = i == 0,
                                  .held = ByteHold(charges.bytes, BytesOf(*checked))});
      prepared.echoes.push_back(EchoOf(service, call, prompt, *checked));
    }
  }
  return prepared;
}

void LogPrompts(const GenerationCall& call, LogLine& line) {
  for (const ChatMessage& message : call.messages) line.Add(message.role, message.content);
  for (const Prompt& prompt : call.prompts)
    if (const auto* const text = std::get_if<std::string>(&prompt)) line.Add("prompt", *text);
}

SubmitOptions OptionsOf(const Service& service, const Charges& charges, const GenerationCall& call,
                        std::chrono::steady_clock::time_point arrived) {
  SubmitOptions options{.arrived = arrived, .rounds = call.stream, .counter = charges.bytes};
  const std::chrono::seconds limit(service.options.request_timeout_s);
  if (limit.count() > 0) options.deadline = std::chrono::steady_clock::now() + limit;
  return options;
}

// How answers of a chat are read; their texts then tell control tokens from text.
calls::AnswerForm ReadAnswers(const ModelCalls& model, GenerationCall& call) {
  ControlTexts& control = call.request.control_texts;
  const bool keeps = std::exchange(control, ControlTexts::kMarked) == ControlTexts::kPlain;
  return {.thoughts = call.divides_thoughts && !model.whole() ? model.thoughts : nullptr,
          .divided = call.divides_thoughts,
          .keeps_control = keeps};
}

ReplyFrame FrameOf(const Service& service, GenerationCall& call) {
  const Engine& engine = service.engine;
  const ModelCalls& model = service.model_calls;
  const SpeculativeParameters& speculative = call.request.speculative;
  const int tokens =
      speculative.num_speculative_tokens.value_or(engine.summary().num_speculative_tokens);
  const bool drafts = speculative.enabled.value_or(true) && tokens > 0 && !call.drafts;
  const bool chat = call.chat && !call.drafts;  // its answer is read as that of a chat
  return {
      .chat = chat,
      .id = fmt::format("{}-{:016x}", chat ? "chatcmpl" : "cmpl", RandomNumber()),
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
      .trace = call.trace,
      .answers = chat ? std::optional(ReadAnswers(model, call)) : std::nullopt,
      .calls = chat && (model.whole() || !call.tools.use.tools.empty()) ? model.format : nullptr,
      .tools = call.tools.use.tools,
      .control = &model.control};
}

// For the turn behind an answer that may have calls.
std::shared_ptr<Conversation> ConversationOf(const Service& service, const GenerationCall& call) {
  const bool goes_on = call.chat && !call.tools.use.tools.empty() && !call.drafts && call.n == 1 &&
                       call.request.reuse_prefix && call.add_generation_prompt;
  if (!goes_on) return nullptr;
  auto conversation = std::make_shared<Conversation>();
  conversation->messages = call.messages;
  conversation->format = FormatOfChat(service, call);
  return conversation;
}

// Templates that do not know how much to think ignore it.
void TellIdleEffort(const ModelCalls& model, const GenerationCall& call,
                    const ReplyWriter& writer) {
  IdleFields* const idle = IdleFields::OfThread();
  const bool known = model.chat_template.find(call.effort_variable) != std::string::npos;
  if (idle != nullptr && !call.effort_variable.empty() && !known)
    idle->Add(InOwnNames("reasoning_effort", writer.own_names()));
}

// The error as a response; also written into the log line.
HttpResponse Refused(const ApiError& of_chat, ReplyWriter& writer, LogLine& line) {
  const ApiError error = InOwnNames(of_chat, writer.own_names());
  line.Add("error", NameOf(error));
  if (!error.param.empty()) line.Add("param", error.param);
  HttpResponse response = ErrorResponse(error);
  response.body = writer.Refusal(error);
  return response;
}

}  // namespace

std::string SaltOf(const Service& service, const HttpRequest& request, const std::string& salt) {
  const ServerOptions& options = service.options;
  if (options.share_among_clients) return salt.empty() ? "" : "\n" + salt;
  return ClientNameOf(request, options.api_keys) + "\n" + salt;
}

Parsed<std::int64_t> CountPrompt(const Service& service, Parsed<GenerationCall> call) {
  if (call) call = WithToolCalls(*std::move(call), service.model_calls);
  if (!call) return Refuse(std::move(call).error());
  auto prompts = PromptsOf(service, *call);
  if (!prompts) return Refuse(std::move(prompts).error());
  return std::ssize(std::get<std::vector<std::int32_t>>(prompts->front()));
}

HttpResponse Generate(Service& service, const HttpRequest& request, Parsed<GenerationCall> parsed,
                      std::unique_ptr<ReplyWriter> writer, LogLine& line) {
  const auto refuse = [&](const ApiError& error) { return Refused(error, *writer, line); };
  const auto conversation = parsed ? ConversationOf(service, *parsed) : nullptr;
  if (parsed && parsed->chat) parsed = WithToolCalls(*std::move(parsed), service.model_calls);
  if (!parsed) return refuse(parsed.error());
  GenerationCall& call = *parsed;
  TellIdleEffort(service.model_calls, call, *writer);
  ReplyFrame frame = FrameOf(service, call);
  line.Add("id", frame.id).Add("stream", call.stream ? "true" : "false");
  if (service.options.log_prompts) LogPrompts(call, line);
  call.request.cache_salt = SaltOf(service, request, call.request.cache_salt);
  if (conversation != nullptr) {
    conversation->cache_salt = call.request.cache_salt;
    conversation->held = ByteHold(request.charges->bytes, conversation->bytes());
  }
  const auto arrived = std::chrono::steady_clock::now();
  auto prepared = PrepareAll(service, *request.charges, call, frame);
  if (!prepared) return refuse(prepared.error());
  const int n_more = static_cast<int>(prepared->choices.size()) - 1;
  for (Quota::Share& share : request.charges->shares)
    if (!share.Grow(n_more)) return refuse(TooManyRequests());
  for (std::string& notice : call.notices)
    frame.notices.push_back(InOwnNames(std::move(notice), writer->own_names()));
  service.next_turns.GiveWay();
  auto events = service.requests.Submit(std::move(prepared->choices),
                                        OptionsOf(service, *request.charges, call, arrived));
  if (!events) return refuse(NotTaken(events.error()));
  auto answer = std::make_unique<Answer>(
      service, *std::move(events),
      Answer::Setting{call.chat, call.n, std::move(prepared->echoes), conversation});
  const auto reply = call.stream ? StreamReply : WholeReply;
  return {.later = reply(service, std::move(answer), std::move(frame), std::move(writer), line)};
}

}  // namespace foretoken::server
