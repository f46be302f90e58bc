// SPDX-License-Identifier: Apache-2.0
#include "server/api/openai_logprobs.h"

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr double kLeastLogprob = -9999;  // instead of -inf, which JSON lacks; as other servers do

Json ChatToken(const PieceOf& piece, std::int32_t id, float logprob) {
  const std::string text = piece(id);
  std::vector<int> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", text}, {"logprob", Logprob(logprob)}, {"bytes", std::move(bytes)}};
}

Json ChatEntry(const PieceOf& piece, const LogprobOf& entry) {
  Json token = ChatToken(piece, entry.id, entry.logprobs->logprob);
  token["top_logprobs"] = Json::array();
  for (const auto& [top, logprob] : entry.logprobs->top)
    token["top_logprobs"].push_back(ChatToken(piece, top, logprob));
  return token;
}

// The entries of OpenAI's four lists for completions.
constexpr std::array<const char*, 4> kLists = {"tokens", "token_logprobs", "top_logprobs",
                                               "text_offset"};

Json ValueEntry(const LogprobOf& token) {
  return token.logprobs != nullptr ? Json(Logprob(token.logprobs->logprob)) : Json(nullptr);
}

Json TopEntry(const PieceOf& piece, const LogprobOf& token) {
  if (token.logprobs == nullptr) return nullptr;
  Json top = Json::object();
  for (const auto& [other, logprob] : token.logprobs->top) top[piece(other)] = Logprob(logprob);
  return top;
}

}  // namespace

double Logprob(float value) {
  return std::isfinite(value) ? static_cast<double>(value) : kLeastLogprob;
}

Json FourLists(const ReplyFrame& frame, std::span<const LogprobOf> tokens, TextOffsets& offsets) {
  std::array<Json, 4> lists = {Json::array(), Json::array(), Json::array(), Json::array()};
  for (const LogprobOf& token : tokens) {
    lists[0].push_back(frame.piece(token.id));
    lists[1].push_back(ValueEntry(token));
    lists[2].push_back(TopEntry(frame.piece, token));
    lists[3].push_back(offsets.Pass(token.id));
  }
  Json json;
  for (std::size_t i = 0; i < lists.size(); ++i) json[kLists[i]] = std::move(lists[i]);
  return json;
}

Json LogprobsJson(const ReplyFrame& frame, std::span<const LogprobOf> tokens, std::size_t offset) {
  if (!frame.logprobs) return nullptr;
  if (!frame.chat) {
    TextOffsets offsets(frame, offset);
    return FourLists(frame, tokens, offsets);
  }
  Json content = Json::array();
  for (const LogprobOf& token : tokens) content.push_back(ChatEntry(frame.piece, token));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

std::vector<LogprobOf> EchoTokens(const Echo& echo, std::span<const TokenLogprobs> logprobs) {
  std::vector<LogprobOf> tokens;
  for (std::size_t i = 0; i < echo.tokens.size(); ++i)
    tokens.push_back({echo.tokens[i], i > 0 && i <= logprobs.size() ? &logprobs[i - 1] : nullptr});
  return tokens;
}

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
      out += OneLine(ChatEntry(frame.piece, (*all)[i]));
    });
    return text.Add(",\"refusal\":null}");
  }
  const auto add = [&](std::size_t list, std::function<Json(const LogprobOf&)> entry) {
    text.Add(std::string(list == 0 ? "{\"" : ",\"") + kLists[list] + "\":");
    text.AddList(all->size(), [all, entry = std::move(entry)](std::size_t i, std::string& out) {
      out += OneLine(entry((*all)[i]));
    });
  };
  const TextOffsets offsets = frame.echo_logprobs ? TextOffsets(frame, choice.echo)
                                                  : TextOffsets(frame, choice.echo.text.size());
  add(0, [&frame](const LogprobOf& token) -> Json { return frame.piece(token.id); });
  add(1, ValueEntry);
  add(2, [&frame](const LogprobOf& token) { return TopEntry(frame.piece, token); });
  add(3, [offsets = std::make_shared<TextOffsets>(offsets)](const LogprobOf& token) -> Json {
    return offsets->Pass(token.id);
  });
  text.Add("}");
}

}  // namespace foretoken::server
