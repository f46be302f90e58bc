// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "foretoken/catalogue.h"
#include "server/api/object_text.h"
#include "server/api/openai_logprobs.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

// An object without its end, so that more members can follow; and members with the end.
std::string Opened(const Json& object) {
  std::string text = OneLine(object);
  text.pop_back();
  return text;
}
std::string Closing(const Json& members) {
  return "," + OneLine(members).substr(1);
}

Json Base(const ReplyFrame& frame, bool chunk) {
  const char* const object = !frame.chat ? "text_completion"
                             : chunk     ? "chat.completion.chunk"
                                         : "chat.completion";
  return {{"id", frame.id},
          {"object", object},
          {"created", frame.created},
          {"model", frame.model},
          {"system_fingerprint", std::string("foretoken-") + kVersion}};
}

// The calls among these parts, which begin with the `next`th call of the choice or go on with the
// one before it. whole: each with all of its arguments; otherwise as additions to what came before.
Json CallsJson(const ReplyFrame& frame, int choice, int next,
               std::span<const calls::AnswerPart> parts, bool whole) {
  using Kind = calls::AnswerPart::Kind;
  Json list = Json::array();
  const auto add = [&](Json call, int index) {
    Json entry = Json::object();
    if (!whole) entry["index"] = index;
    entry.update(call);
    list.push_back(std::move(entry));
  };
  for (const calls::AnswerPart& part : parts) {
    if (part.kind == Kind::kName) {
      const std::string id =
          fmt::format("call_{}_{}_{}", frame.id.substr(frame.id.find('-') + 1), choice, next);
      add({{"id", id},
           {"type", "function"},
           {"function", {{"name", part.text}, {"arguments", ""}}}},
          next++);
    } else if (part.kind == Kind::kArguments) {
      if (list.empty()) add({{"function", {{"arguments", ""}}}}, next - 1);
      Json& arguments = list.back()["function"]["arguments"];
      arguments = arguments.text() + part.text;
    }
  }
  return list;
}

// The text among these parts, or what is of another kind; nothing if there is none.
std::optional<std::string> TextOf(std::span<const calls::AnswerPart> parts,
                                  calls::AnswerPart::Kind kind = calls::AnswerPart::Kind::kText) {
  std::optional<std::string> text;
  for (const calls::AnswerPart& part : parts)
    if (part.kind == kind) text = text.value_or("") + part.text;
  return text;
}

Json MessageJson(const ReplyFrame& frame, int index, std::span<const calls::AnswerPart> parts) {
  Json message = {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}};
  const std::optional<std::string> content = TextOf(parts);
  if (const auto thought = TextOf(parts, calls::AnswerPart::Kind::kThought))
    message["reasoning_content"] = *thought;
  Json calls = CallsJson(frame, index, 0, parts, true);
  message["content"] = content || calls.empty() ? Json(content.value_or("")) : Json(nullptr);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

void AddChoice(const ReplyFrame& frame, const Choice& choice, int index, LongText& text) {
  const Completion& completion = choice.end.completion;
  auto parts = frame.PartsOf(completion.text);
  text.AddLater([&frame, &choice, index, parts = std::move(parts)](std::string& out) {
    const std::string& all = choice.end.completion.text;
    Json json = {{"index", index}};
    if (frame.chat)
      json["message"] = MessageJson(frame, index, parts);
    else
      json["text"] = choice.echo.text + all;
    out += (index > 0 ? "," : "") + Opened(json) + ",\"logprobs\":";
  });
  AddLogprobs(frame, choice, text);
  text.Add(
      Closing({{"finish_reason", FinishName(completion.finish_reason, choice.facts.has_calls)}}));
}

const char* OriginName(TokenOrigin origin) {
  constexpr std::array<const char*, 4> kNames = {"plain", "accepted", "recovered", "bonus"};
  return kNames[static_cast<std::size_t>(origin)];
}

Json TraceJson(const ReplyFrame& frame, const StreamPart& part) {
  const RoundRecord& round = *part.round;
  Json tokens = Json::array(), rejected = Json::array();
  for (const RoundToken& token : round.tokens) {
    Json json = {
        {"id", token.id}, {"text", frame.piece(token.id)}, {"origin", OriginName(token.origin)}};
    if (token.logprobs) json["logprob"] = Logprob(token.logprobs->logprob);
    tokens.push_back(std::move(json));
  }
  for (const std::int32_t id : round.rejected)
    rejected.push_back({{"id", id}, {"text", frame.piece(id)}});
  return {{"round", part.round_number},
          {"drafter", NullIfEmpty(round.drafter)},
          {"drafted", round.drafted},
          {"tokens", std::move(tokens)},
          {"rejected", std::move(rejected)}};
}

Json PartChoice(const ReplyFrame& frame, int index, const std::string* text, bool first) {
  Json json = {{"index", index}};
  if (frame.chat) {
    json["delta"] = Json::object();
    if (first) json["delta"]["role"] = "assistant";
    if (text != nullptr) json["delta"]["content"] = *text;
  } else {
    json["text"] = text != nullptr ? *text : "";
  }
  json["logprobs"] = nullptr;
  json["finish_reason"] = nullptr;
  return json;
}

}  // namespace

LongText ReplyText(const ReplyFrame& frame, std::span<const Choice> choices, int n) {
  LongText text;
  text.Add(Opened(Base(frame, false)) + ",\"choices\":[");
  for (std::size_t i = 0; i < choices.size(); ++i)
    AddChoice(frame, choices[i], static_cast<int>(i), text);
  Json rest = {{"usage", UsageJson(UsageOf(choices, n))}};
  PutStatistics(rest, frame, choices);
  text.Add("]" + Closing(rest));
  return text;
}

LongText VerifiedText(const ReplyFrame& frame, const Choice& choice) {
  const Completion& completion = choice.end.completion;
  const std::int64_t accepted = completion.speculation.accepted;
  Json json = Base(frame, false);
  json["object"] = "verification";
  json["accepted"] = accepted;
  json["next"] = nullptr;
  if (accepted < std::ssize(completion.token_ids)) {
    const std::int32_t next = completion.token_ids.back();
    json["next"] = {{"id", next}, {"text", frame.piece(next)}};
  }
  json["tokens"] = completion.token_ids;
  json["text"] = completion.text;
  json["finish_reason"] = nullptr;
  if (completion.finish_reason != FinishReason::kVerified)
    json["finish_reason"] = Name(completion.finish_reason);
  LongText text;
  text.Add(Opened(json) + ",\"logprobs\":");
  AddLogprobs(frame, choice, text);
  Json rest = {{"usage", UsageJson(UsageOf({&choice, 1}, 1))}};
  PutStatistics(rest, frame, {&choice, 1});
  text.Add(Closing(rest));
  return text;
}

std::string PartJson(const ReplyFrame& frame, const StreamPart& part) {
  Json json = Base(frame, true);
  Json choice = PartChoice(frame, part.choice, &part.text, false);
  if (part.parts) {
    Json& delta = choice["delta"] = Json::object();
    if (const auto thought = TextOf(*part.parts, calls::AnswerPart::Kind::kThought))
      delta["reasoning_content"] = *thought;
    if (const auto text = TextOf(*part.parts)) delta["content"] = *text;
    Json calls = CallsJson(frame, part.choice, part.n_calls, *part.parts, false);
    if (!calls.empty()) delta["tool_calls"] = std::move(calls);
  }
  if (part.round != nullptr && frame.logprobs) {
    std::vector<LogprobOf> tokens;
    for (const RoundToken& token : part.round->tokens)
      if (token.logprobs) tokens.push_back({token.id, &*token.logprobs});
    choice["logprobs"] = LogprobsJson(frame, tokens, part.text_offset);
  }
  json["choices"] = Json::array({std::move(choice)});
  if (frame.include_usage) json["usage"] = nullptr;
  if (frame.trace && part.round != nullptr) json["foretoken"] = TraceJson(frame, part);
  return OneLine(json);
}

LongText EchoParts(const ReplyFrame& frame, int choice, const Echo& echo,
                   std::vector<TokenLogprobs> logprobs) {
  static constexpr std::size_t kTokens = 64;  // in a part
  struct EchoedPrompt {
    std::vector<TokenLogprobs> logprobs;
    std::vector<LogprobOf> tokens;
    TextOffsets offsets;
  };
  const auto prompt =
      std::make_shared<EchoedPrompt>(EchoedPrompt{std::move(logprobs), {}, {frame, echo}});
  if (frame.echo_logprobs) prompt->tokens = EchoTokens(echo, prompt->logprobs);
  const std::size_t n = std::max<std::size_t>(1, (prompt->tokens.size() + kTokens - 1) / kTokens);
  LongText text;
  text.AddEach(n, [&frame, choice, &echo, prompt](std::size_t i, std::string& out) {
    Json json = Base(frame, true);
    const std::string rest;  // the text of the prompt goes with the first one
    Json part = PartChoice(frame, choice, i == 0 ? &echo.text : &rest, i == 0);
    const auto tokens = std::span(prompt->tokens).subspan(i * kTokens);
    if (frame.echo_logprobs)
      part["logprobs"] =
          FourLists(frame, tokens.first(std::min(tokens.size(), kTokens)), prompt->offsets);
    json["choices"] = Json::array({std::move(part)});
    if (frame.include_usage) json["usage"] = nullptr;
    out += EventText(OneLine(json));
  });
  return text;
}

std::string EndPartJson(const ReplyFrame& frame, int choice, FinishReason reason, bool has_calls,
                        std::span<const Choice> all) {
  Json json = Base(frame, true);
  Json last = PartChoice(frame, choice, nullptr, false);
  last["finish_reason"] = FinishName(reason, has_calls);
  json["choices"] = Json::array({std::move(last)});
  if (frame.include_usage) json["usage"] = nullptr;
  if (!all.empty()) PutStatistics(json, frame, all);
  return OneLine(json);
}

std::string UsagePartJson(const ReplyFrame& frame, const Usage& usage) {
  Json json = Base(frame, true);
  json["choices"] = Json::array();
  json["usage"] = UsageJson(usage);
  return OneLine(json);
}

}  // namespace foretoken::server
