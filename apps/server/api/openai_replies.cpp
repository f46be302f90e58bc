// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_replies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "calls/thought.h"
#include "foretoken/catalogue.h"
#include "server/api/stats_json.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double kLeastLogprob = -9999;  // instead of -inf, which JSON lacks; as other servers do

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// An object without its end, so that more members can follow; and members with the end.
std::string Opened(const OrderedJson& object) {
  std::string text = Dump(object);
  text.pop_back();
  return text;
}
std::string Closing(const OrderedJson& members) {
  return "," + Dump(members).substr(1);
}

void PutIfAny(OrderedJson& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

OrderedJson NullIfEmpty(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

double Logprob(float value) {
  return std::isfinite(value) ? static_cast<double>(value) : kLeastLogprob;
}

std::optional<double> PerSecond(std::int64_t n, double ms) {
  if (n <= 0 || !(ms > 0)) return std::nullopt;
  return 1000.0 * static_cast<double>(n) / ms;
}

OrderedJson ChatToken(const PieceOf& piece, std::int32_t id, float logprob) {
  const std::string text = piece(id);
  std::vector<int> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", Logprob(logprob)}, {"bytes", std::move(bytes)}};
}

struct LogprobOf {
  std::int32_t id;
  const TokenLogprobs* logprobs;  // null: none, as for a prompt's first token
};

OrderedJson ChatEntry(const PieceOf& piece, const LogprobOf& entry) {
  OrderedJson token = ChatToken(piece, entry.id, entry.logprobs->logprob);
  token["top_logprobs"] = OrderedJson::array();
  for (const auto& [top, logprob] : entry.logprobs->top)
    token["top_logprobs"].push_back(ChatToken(piece, top, logprob));
  return token;
}

// The entries of OpenAI's four lists for completions.
constexpr std::array<const char*, 4> kLists = {"tokens", "token_logprobs", "top_logprobs",
                                               "text_offset"};

OrderedJson ValueEntry(const LogprobOf& token) {
  return token.logprobs != nullptr ? OrderedJson(Logprob(token.logprobs->logprob))
                                   : OrderedJson(nullptr);
}

OrderedJson TopEntry(const PieceOf& piece, const LogprobOf& token) {
  if (token.logprobs == nullptr) return nullptr;
  OrderedJson top = OrderedJson::object();
  for (const auto& [other, logprob] : token.logprobs->top) top[piece(other)] = Logprob(logprob);
  return top;
}

// The offset of each token in the text, in bytes; first those of the prompt, if it is echoed. A
// text may lack the space with which its first token begins, so a prompt's offsets are counted from
// its end.
class TextOffsets {
 public:
  explicit TextOffsets(const ReplyFrame& frame, std::size_t begin) : frame_(&frame), next_(begin) {}
  TextOffsets(const ReplyFrame& frame, const Echo& echo)
      : frame_(&frame), next_(echo.text.size()), n_echoed_(echo.tokens.size()) {
    for (const std::int32_t id : echo.tokens) left_ += frame.text_of(id).size();
  }
  // The offset of the next token.
  std::size_t Pass(std::int32_t id) {
    if (n_echoed_ == 0) return std::exchange(next_, next_ + frame_->piece(id).size());
    --n_echoed_;
    const std::size_t offset = next_ - std::min(left_, next_);
    left_ -= frame_->text_of(id).size();
    return offset;
  }

 private:
  const ReplyFrame* frame_;
  std::size_t next_ = 0, left_ = 0;
  std::size_t n_echoed_ = 0;  // tokens before those of the answer
};

OrderedJson FourLists(const ReplyFrame& frame, std::span<const LogprobOf> tokens,
                      TextOffsets& offsets) {
  std::array<OrderedJson, 4> lists = {OrderedJson::array(), OrderedJson::array(),
                                      OrderedJson::array(), OrderedJson::array()};
  for (const LogprobOf& token : tokens) {
    lists[0].push_back(frame.piece(token.id));
    lists[1].push_back(ValueEntry(token));
    lists[2].push_back(TopEntry(frame.piece, token));
    lists[3].push_back(offsets.Pass(token.id));
  }
  OrderedJson json;
  for (std::size_t i = 0; i < lists.size(); ++i) json[kLists[i]] = std::move(lists[i]);
  return json;
}

// The log-probabilities of one chunk of a stream.
OrderedJson LogprobsJson(const ReplyFrame& frame, std::span<const LogprobOf> tokens,
                         std::size_t offset) {
  if (!frame.logprobs) return nullptr;
  if (!frame.chat) {
    TextOffsets offsets(frame, offset);
    return FourLists(frame, tokens, offsets);
  }
  OrderedJson content = OrderedJson::array();
  for (const LogprobOf& token : tokens) content.push_back(ChatEntry(frame.piece, token));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// The entries of the prompt, whose first token has none.
std::vector<LogprobOf> EchoTokens(const Echo& echo, std::span<const TokenLogprobs> logprobs) {
  std::vector<LogprobOf> tokens;
  for (std::size_t i = 0; i < echo.tokens.size(); ++i)
    tokens.push_back({echo.tokens[i], i > 0 && i <= logprobs.size() ? &logprobs[i - 1] : nullptr});
  return tokens;
}

// The log-probabilities of a whole reply. They may be many, so they are written in parts.
void AddLogprobs(const ReplyFrame& frame, const Choice& choice, LongText& text) {
  if (!frame.logprobs) return text.Add("null");
  const Completion& completion = choice.end.completion;
  std::vector<LogprobOf> tokens;
  if (frame.echo_logprobs) tokens = EchoTokens(choice.echo, completion.prompt_logprobs);
  for (std::size_t i = 0; i < completion.logprobs.size(); ++i)
    tokens.push_back({completion.token_ids[i], &completion.logprobs[i]});
  const auto all = std::make_shared<const std::vector<LogprobOf>>(std::move(tokens));
  if (frame.chat) {
    text.Add("{\"content\":");
    text.AddList(all->size(), [all, &frame](std::size_t i, std::string& out) {
      out += Dump(ChatEntry(frame.piece, (*all)[i]));
    });
    return text.Add(",\"refusal\":null}");
  }
  const auto add = [&](std::size_t list, std::function<OrderedJson(const LogprobOf&)> entry) {
    text.Add(std::string(list == 0 ? "{\"" : ",\"") + kLists[list] + "\":");
    text.AddList(all->size(), [all, entry = std::move(entry)](std::size_t i, std::string& out) {
      out += Dump(entry((*all)[i]));
    });
  };
  const TextOffsets offsets = frame.echo_logprobs ? TextOffsets(frame, choice.echo)
                                                  : TextOffsets(frame, choice.echo.text.size());
  add(0, [&frame](const LogprobOf& token) -> OrderedJson { return frame.piece(token.id); });
  add(1, ValueEntry);
  add(2, [&frame](const LogprobOf& token) { return TopEntry(frame.piece, token); });
  add(3, [offsets = std::make_shared<TextOffsets>(offsets)](const LogprobOf& token) -> OrderedJson {
    return offsets->Pass(token.id);
  });
  text.Add("}");
}

OrderedJson UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_prompt_tokens}}},
          {"completion_tokens_details",
           {{"reasoning_tokens", usage.reasoning_tokens},
            {"accepted_prediction_tokens", usage.accepted_prediction_tokens},
            {"rejected_prediction_tokens", usage.rejected_prediction_tokens}}}};
}

// The statistics of all choices of a reply together.
struct Together {
  SpeculationStats speculation;
  Timings timings;
  DrafterCounts drafters;
  double actual_ms = 0, plain_ms = 0, queue_ms = 0, first_token_ms = 0;
  std::string strategy, controller;
  bool lossless = true;
  std::uint64_t seed = 0;
};

void AddDrafters(const DrafterCounts& from, DrafterCounts& to) {
  for (const auto& [name, count] : from) {
    DrafterCount& sum = to[name];
    sum.rounds += count.rounds;
    sum.drafted += count.drafted;
    sum.accepted += count.accepted;
  }
}

Together Sum(std::span<const Choice> choices) {
  Together sum;
  for (const Choice& choice : choices) {
    const Completion& completion = choice.end.completion;
    sum.speculation.Add(completion.speculation);
    sum.timings.prompt_ms += completion.timings.prompt_ms;
    sum.timings.decode_ms += completion.timings.decode_ms;
    sum.timings.prompt_tokens += completion.timings.prompt_tokens;
    sum.timings.decoded_tokens += completion.timings.decoded_tokens;
    AddDrafters(choice.end.drafters, sum.drafters);
    sum.actual_ms += choice.end.actual_ms;
    sum.plain_ms += choice.end.plain_ms;
    sum.queue_ms = std::max(sum.queue_ms, choice.end.queue_ms);
    sum.first_token_ms = std::max(sum.first_token_ms, choice.end.first_token_ms);
    sum.strategy = completion.strategy;
    sum.controller = completion.controller;
    sum.lossless = completion.lossless;
    sum.seed = completion.seed;
  }
  return sum;
}

std::optional<double> Speedup(double plain_ms, double actual_ms) {
  if (!(plain_ms > 0) || !(actual_ms > 0)) return std::nullopt;
  return plain_ms / actual_ms;
}

// llama.cpp's names, and the waiting times.
OrderedJson TimingsJson(const Together& sum) {
  const Timings& t = sum.timings;
  OrderedJson json = {{"prompt_n", t.prompt_tokens}, {"prompt_ms", t.prompt_ms}};
  if (t.prompt_tokens > 0) json["prompt_per_token_ms"] = t.prompt_ms / t.prompt_tokens;
  PutIfAny(json, "prompt_per_second", PerSecond(t.prompt_tokens, t.prompt_ms));
  json["predicted_n"] = t.decoded_tokens;
  json["predicted_ms"] = t.decode_ms;
  if (t.decoded_tokens > 0) json["predicted_per_token_ms"] = t.decode_ms / t.decoded_tokens;
  PutIfAny(json, "predicted_per_second", PerSecond(t.decoded_tokens, t.decode_ms));
  json["draft_n"] = sum.speculation.drafted;
  json["draft_n_accepted"] = sum.speculation.accepted;
  json["queue_ms"] = sum.queue_ms;
  json["first_token_ms"] = sum.first_token_ms;
  return json;
}

OrderedJson RequestSpeculationJson(const ReplyFrame& frame, const Together& sum) {
  OrderedJson json = {
      {"method", frame.method},
      {"strategy", sum.strategy},
      {"lossless", sum.lossless},
      {"lookahead", sum.controller.empty() ? frame.engine->controller : sum.controller},
      {"num_speculative_tokens", frame.num_speculative_tokens}};
  PutIfAny(json, "estimated_speedup", Speedup(sum.plain_ms, sum.actual_ms));
  PutTimedCounts(json, sum.speculation);
  json["drafters"] = DrafterCountsJson(sum.drafters);
  return json;
}

void PutStatistics(OrderedJson& json, const ReplyFrame& frame, std::span<const Choice> choices) {
  const Together sum = Sum(choices);
  json["seed"] = sum.seed;
  if (auto notices = NoticesOf(frame, choices); !notices.empty())
    json["notices"] = std::move(notices);
  json["timings"] = TimingsJson(sum);
  json["speculation"] = RequestSpeculationJson(frame, sum);
}

OrderedJson Base(const ReplyFrame& frame, bool chunk) {
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
OrderedJson CallsJson(const ReplyFrame& frame, int choice, int next,
                      std::span<const calls::AnswerPart> parts, bool whole) {
  using Kind = calls::AnswerPart::Kind;
  OrderedJson list = OrderedJson::array();
  const auto add = [&](OrderedJson call, int index) {
    OrderedJson entry = OrderedJson::object();
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
      list.back()["function"]["arguments"].get_ref<std::string&>() += part.text;
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

OrderedJson MessageJson(const ReplyFrame& frame, int index,
                        std::span<const calls::AnswerPart> parts) {
  OrderedJson message = {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}};
  const std::optional<std::string> content = TextOf(parts);
  if (const auto thought = TextOf(parts, calls::AnswerPart::Kind::kThought))
    message["reasoning_content"] = *thought;
  OrderedJson calls = CallsJson(frame, index, 0, parts, true);
  message["content"] =
      content || calls.empty() ? OrderedJson(content.value_or("")) : OrderedJson(nullptr);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

void AddChoice(const ReplyFrame& frame, const Choice& choice, int index, LongText& text) {
  const Completion& completion = choice.end.completion;
  auto parts = frame.PartsOf(completion.text);
  text.AddLater([&frame, &choice, index, parts = std::move(parts)](std::string& out) {
    const std::string& all = choice.end.completion.text;
    OrderedJson json = {{"index", index}};
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

OrderedJson TraceJson(const ReplyFrame& frame, const StreamPart& part) {
  const RoundRecord& round = *part.round;
  OrderedJson tokens = OrderedJson::array(), rejected = OrderedJson::array();
  for (const RoundToken& token : round.tokens) {
    OrderedJson json = {
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

OrderedJson PartChoice(const ReplyFrame& frame, int index, const std::string* text, bool first) {
  OrderedJson json = {{"index", index}};
  if (frame.chat) {
    json["delta"] = OrderedJson::object();
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

std::unique_ptr<calls::CallReader> ReplyFrame::Reader() const {
  if (!answers) return nullptr;
  return std::make_unique<calls::AnswerReader>(
      *answers, *control, calls != nullptr ? calls->reader(tools, *control) : nullptr);
}

std::vector<calls::AnswerPart> ReplyFrame::PartsOf(const std::string& text) const {
  const auto reader = Reader();
  if (reader == nullptr) return {{calls::AnswerPart::Kind::kText, text}};
  std::vector<calls::AnswerPart> parts;
  reader->Read(text, parts);
  reader->End(parts);
  return parts;
}

// Doubled, so that a leading space, which the beginning of a text may drop, shows in the second
// one.
std::string Piece(const Engine& engine, std::int32_t token, bool special) {
  const std::array twice = {token, token};
  const std::string text = engine.Detokenize(twice, special);
  return text.substr(text.size() / 2);
}

const char* FinishName(FinishReason reason, bool has_calls) {
  return has_calls && reason == FinishReason::kStop ? "tool_calls" : Name(reason);
}

Usage UsageOf(std::span<const Choice> choices, int n) {
  Usage usage;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceEnd& end = choices[i].end;
    if (i % static_cast<std::size_t>(n) == 0) {
      usage.prompt_tokens += std::ssize(end.completion.prompt_token_ids);
      usage.cached_prompt_tokens += end.completion.timings.cached_prompt_tokens;
    }
    usage.completion_tokens += std::ssize(end.completion.token_ids);
    usage.reasoning_tokens += choices[i].facts.reasoning_tokens;
    if (const auto found = end.drafters.find("prediction"); found != end.drafters.end()) {
      usage.accepted_prediction_tokens += found->second.accepted;
      usage.rejected_prediction_tokens += found->second.drafted - found->second.accepted;
    }
  }
  return usage;
}

std::vector<std::string> NoticesOf(const ReplyFrame& frame, std::span<const Choice> choices) {
  std::vector<std::string> notices = frame.notices;
  for (const Choice& choice : choices)
    for (const std::string& notice : choice.end.completion.notices)
      if (std::find(notices.begin(), notices.end(), notice) == notices.end())
        notices.push_back(notice);
  return notices;
}

LongText ReplyText(const ReplyFrame& frame, std::span<const Choice> choices, int n) {
  LongText text;
  text.Add(Opened(Base(frame, false)) + ",\"choices\":[");
  for (std::size_t i = 0; i < choices.size(); ++i)
    AddChoice(frame, choices[i], static_cast<int>(i), text);
  OrderedJson rest = {{"usage", UsageJson(UsageOf(choices, n))}};
  PutStatistics(rest, frame, choices);
  text.Add("]" + Closing(rest));
  return text;
}

LongText VerifiedText(const ReplyFrame& frame, const Choice& choice) {
  const Completion& completion = choice.end.completion;
  const std::int64_t accepted = completion.speculation.accepted;
  OrderedJson json = Base(frame, false);
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
  OrderedJson rest = {{"usage", UsageJson(UsageOf({&choice, 1}, 1))}};
  PutStatistics(rest, frame, {&choice, 1});
  text.Add(Closing(rest));
  return text;
}

std::string PartJson(const ReplyFrame& frame, const StreamPart& part) {
  OrderedJson json = Base(frame, true);
  OrderedJson choice = PartChoice(frame, part.choice, &part.text, false);
  if (part.parts) {
    OrderedJson& delta = choice["delta"] = OrderedJson::object();
    if (const auto thought = TextOf(*part.parts, calls::AnswerPart::Kind::kThought))
      delta["reasoning_content"] = *thought;
    if (const auto text = TextOf(*part.parts)) delta["content"] = *text;
    OrderedJson calls = CallsJson(frame, part.choice, part.n_calls, *part.parts, false);
    if (!calls.empty()) delta["tool_calls"] = std::move(calls);
  }
  if (part.round != nullptr && frame.logprobs) {
    std::vector<LogprobOf> tokens;
    for (const RoundToken& token : part.round->tokens)
      if (token.logprobs) tokens.push_back({token.id, &*token.logprobs});
    choice["logprobs"] = LogprobsJson(frame, tokens, part.text_offset);
  }
  json["choices"] = OrderedJson::array({std::move(choice)});
  if (frame.include_usage) json["usage"] = nullptr;
  if (frame.trace && part.round != nullptr) json["foretoken"] = TraceJson(frame, part);
  return Dump(json);
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
    OrderedJson json = Base(frame, true);
    const std::string rest;  // the text of the prompt goes with the first one
    OrderedJson part = PartChoice(frame, choice, i == 0 ? &echo.text : &rest, i == 0);
    const auto tokens = std::span(prompt->tokens).subspan(i * kTokens);
    if (frame.echo_logprobs)
      part["logprobs"] =
          FourLists(frame, tokens.first(std::min(tokens.size(), kTokens)), prompt->offsets);
    json["choices"] = OrderedJson::array({std::move(part)});
    if (frame.include_usage) json["usage"] = nullptr;
    out += EventText(Dump(json));
  });
  return text;
}

std::string EndPartJson(const ReplyFrame& frame, int choice, FinishReason reason, bool has_calls,
                        std::span<const Choice> all) {
  OrderedJson json = Base(frame, true);
  OrderedJson last = PartChoice(frame, choice, nullptr, false);
  last["finish_reason"] = FinishName(reason, has_calls);
  json["choices"] = OrderedJson::array({std::move(last)});
  if (frame.include_usage) json["usage"] = nullptr;
  if (!all.empty()) PutStatistics(json, frame, all);
  return Dump(json);
}

std::string UsagePartJson(const ReplyFrame& frame, const Usage& usage) {
  OrderedJson json = Base(frame, true);
  json["choices"] = OrderedJson::array();
  json["usage"] = UsageJson(usage);
  return Dump(json);
}

std::string ErrorJson(const ApiError& error) {
  return Dump({{"error",
                {{"message", error.message},
                 {"type", error.type},
                 {"param", NullIfEmpty(error.param)},
                 {"code", NullIfEmpty(error.code)}}}});
}

LongText TokensText(std::vector<std::int32_t> tokens, PieceOf piece) {
  LongText text;
  text.Add("{\"tokens\":");
  const std::size_t n = tokens.size();
  text.AddList(
      n, [tokens = std::move(tokens), piece = std::move(piece)](std::size_t i, std::string& out) {
        const std::int32_t id = tokens[i];
        out += piece ? Dump({{"id", id}, {"piece", piece(id)}}) : std::to_string(id);
      });
  text.Add("}");
  return text;
}

// Never cuts a character in two, whatever else the bytes are.
LongText NamedText(std::string_view name, std::string content) {
  constexpr std::size_t kPart = 16 << 10;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::vector<std::size_t> ends;
  for (std::size_t end = 0; end < content.size(); ends.push_back(end)) {
    end = std::min(end + kPart, content.size());
    for (int i = 0; i < 3 && end < content.size() && continues(content[end]); ++i) ++end;
  }
  LongText text;
  text.Add("{\"" + std::string(name) + "\":\"");
  const std::size_t n = ends.size();
  text.AddEach(
      n, [content = std::move(content), ends = std::move(ends)](std::size_t i, std::string& out) {
        const std::size_t begin = i == 0 ? 0 : ends[i - 1];
        const std::string quoted = Dump(content.substr(begin, ends[i] - begin));
        out.append(quoted, 1, quoted.size() - 2);
      });
  text.Add("\"}");
  return text;
}

std::string HealthJson(bool draining, AsyncLoad load, const Overload& overload,
                       const Status& files) {
  OrderedJson json = {{"status", !files     ? "error"
                                 : draining ? "draining"
                                            : "ok"},
                      {"running", load.running},
                      {"waiting", load.waiting},
                      {"overload", Name(overload.state())},
                      {"memory",
                       {{"limit_bytes", overload.plan().ceiling},
                        {"resident_bytes", overload.resident()},
                        {"requests_bytes", overload.held()}}}};
  if (!files) json["error"] = files.error().message;
  return Dump(json);
}

std::string VersionJson() {
  return Dump({{"version", kVersion}});
}

}  // namespace foretoken::server
