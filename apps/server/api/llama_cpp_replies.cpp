// SPDX-License-Identifier: Apache-2.0
#include "server/api/llama_cpp_replies.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "foretoken/catalogue.h"
#include "server/api/object_text.h"
#include "server/api/openai_logprobs.h"
#include "server/api/reply_statistics.h"
#include "server/net/sse.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMostHeld = 64;  // tokens without a text

std::string_view LlamaCppTypeOf(const ApiError& error) {
  if (error.code == "context_length_exceeded") return "exceed_context_size_error";
  if (error.status == 404) return "not_found_error";
  if (error.status == 501) return "not_supported_error";
  if (error.status == 503) return "unavailable_error";
  return error.type;
}

// Lengths are called as llama.cpp's clients call them.
std::string InLlamaCppWords(std::string message) {
  constexpr std::string_view kLength = "max_tokens: ";
  if (message.starts_with(kLength)) message.replace(0, kLength.size(), "n_predict: ");
  return message;
}

Json BiasesJson(const SamplingParameters& sampling) {
  Json list = Json::array();
  for (const auto& [token, bias] : sampling.logit_bias)
    list.push_back({{"bias", std::isfinite(bias) ? Json(bias) : Json(nullptr)}, {"token", token}});
  return list;
}

Json LlamaCppToken(const ReplyFrame& frame, std::int32_t id, float logprob) {
  const std::string text = frame.piece(id);
  std::vector<int> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return {{"id", id}, {"token", text}, {"bytes", std::move(bytes)}, {"logprob", Logprob(logprob)}};
}

Json LlamaCppProbability(const ReplyFrame& frame, std::int32_t id, const TokenLogprobs& logprobs) {
  Json json = LlamaCppToken(frame, id, logprobs.logprob);
  json["top_logprobs"] = Json::array();
  for (const auto& [other, logprob] : logprobs.top)
    json["top_logprobs"].push_back(LlamaCppToken(frame, other, logprob));
  return json;
}

// The stop text that the answer ends before: the first in the text of all its tokens.
std::string StoppingWord(const ReplyFrame& frame, const Completion& completion,
                         const std::vector<std::string>& stop) {
  if (completion.finish_reason != FinishReason::kStop || stop.empty()) return {};
  std::string text;
  for (const std::int32_t token : completion.token_ids) text += frame.text_of(token);
  std::size_t first = std::string::npos;
  std::string word;
  for (const std::string& candidate : stop)
    if (const std::size_t at = text.find(candidate); at < first) first = at, word = candidate;
  return word;
}

const char* StopType(const Completion& completion, const std::string& word) {
  if (completion.finish_reason == FinishReason::kLength) return "limit";
  if (completion.finish_reason != FinishReason::kStop) return "none";
  return word.empty() ? "eos" : "word";
}

// The named members; "a/b" is the member b of the member a, under this whole name.
Json Chosen(const Json& json, const std::vector<std::string>& names) {
  Json chosen = Json::object();
  for (const std::string& name : names) {
    const Json* value = &json;
    std::size_t begin = 0;
    while (value != nullptr && begin <= name.size()) {
      const std::size_t end = std::min(name.find('/', begin), name.size());
      const auto found =
          value->is_object() ? value->find(name.substr(begin, end - begin)) : value->end();
      value = value->is_object() && found != value->end() ? &*found : nullptr;
      begin = end + 1;
    }
    if (value != nullptr) chosen[name] = *value;
  }
  return chosen;
}

class LlamaCpp final : public ReplyWriter {
 public:
  explicit LlamaCpp(LlamaCppReply reply) : reply_(std::move(reply)) {
    shown_.resize(reply_.prompt_sizes.size() * static_cast<std::size_t>(reply_.n));
  }

  LongText Whole(const ReplyFrame& frame, std::span<const Choice> choices, int) override {
    LongText text;
    if (choices.size() > 1) text.Add("[");
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const Completion& completion = choices[i].end.completion;
      const bool probable = frame.logprobs && Shows("completion_probabilities");
      text.AddLater([this, &frame, &completion, i, probable](std::string& out) {
        out += (i > 0 ? "," : "") + Last(frame, static_cast<int>(i), completion, false);
        if (!probable) return;
        out.pop_back();
        out +=
            out.back() == '{' ? "\"completion_probabilities\":" : ",\"completion_probabilities\":";
      });
      if (!probable) continue;
      text.AddList(completion.logprobs.size(),
                   [&frame, &completion](std::size_t token, std::string& out) {
                     out += OneLine(LlamaCppProbability(frame, completion.token_ids[token],
                                                        completion.logprobs[token]));
                   });
      text.Add("}");
    }
    if (choices.size() > 1) text.Add("]");
    return text;
  }

  const char* stream_type() const override { return kEventStream; }
  LongText Begin(const ReplyFrame&, int, const Echo&, std::vector<TokenLogprobs>) override {
    return {};
  }
  std::string Part(const ReplyFrame& frame, const StreamPart& part) override {
    Shown& shown = shown_[static_cast<std::size_t>(part.choice)];
    if (part.round != nullptr)
      for (const RoundToken& token : part.round->tokens) {
        ++shown.n_tokens;
        shown.tokens.push_back(token.id);
        if (token.logprobs)
          shown.probabilities.push_back(LlamaCppProbability(frame, token.id, *token.logprobs));
      }
    // Tokens whose text has not come yet go with the next part, unless they are many.
    if (part.text.empty() && shown.tokens.size() < kMostHeld) return {};
    return Said(part.choice, part.text);
  }
  std::string End(const ReplyFrame& frame, int choice, const Completion& completion, bool,
                  std::span<const Choice>) override {
    const Shown& shown = shown_[static_cast<std::size_t>(choice)];
    const std::string rest = shown.tokens.empty() ? std::string() : Said(choice, "");
    return rest + EventText(Last(frame, choice, completion, true));
  }
  std::string Finish(const ReplyFrame&, const Usage&) override { return {}; }
  std::string Failure(const ApiError& error) override { return EventText(Refusal(error)); }
  std::string Refusal(const ApiError& error) override { return LlamaCppErrorJson(error); }

 private:
  struct Shown {
    std::size_t n_tokens = 0;
    std::vector<std::int32_t> tokens;  // since the last part
    Json probabilities = Json::array();
  };

  bool Shows(std::string_view name) const {
    const auto& names = reply_.response_fields;
    return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
  }

  std::string Said(int choice, const std::string& text) {
    Shown& shown = shown_[static_cast<std::size_t>(choice)];
    Json json = {
        {"index", choice},
        {"content", text},
        {"tokens", std::exchange(shown.tokens, {})},
        {"stop", false},
        {"tokens_predicted", shown.n_tokens},
        {"tokens_evaluated", reply_.prompt_sizes[static_cast<std::size_t>(choice / reply_.n)]}};
    if (!shown.probabilities.empty())
      json["completion_probabilities"] = std::exchange(shown.probabilities, Json::array());
    return EventText(OneLine(json));
  }

  // A whole reply without its probabilities, or the last part of a stream.
  std::string Last(const ReplyFrame& frame, int choice, const Completion& completion,
                   bool streamed) const {
    const std::string word = StoppingWord(frame, completion, reply_.stop);
    const std::size_t n_all = completion.prompt_token_ids.size() + completion.token_ids.size();
    const bool limit = completion.finish_reason == FinishReason::kLength;
    Json settings = JsonOrNull(reply_.settings_json);
    settings["seed"] = completion.seed;
    Json json = {{"index", choice}, {"content", streamed ? "" : completion.text}};
    json["tokens"] = Json::array();
    if (reply_.return_tokens && !streamed) json["tokens"] = completion.token_ids;
    json["id_slot"] = completion.slot;
    json["stop"] = true;
    json["model"] = frame.model;
    json["tokens_predicted"] = completion.token_ids.size();
    json["tokens_evaluated"] = completion.prompt_token_ids.size();
    json["generation_settings"] = std::move(settings);
    json["prompt"] = reply_.text_of(completion.prompt_token_ids);
    json["has_new_line"] = completion.text.find('\n') != std::string::npos;
    json["truncated"] =
        limit && n_all >= static_cast<std::size_t>(frame.engine->target.context_size);
    json["stop_type"] = StopType(completion, word);
    json["stopping_word"] = word;
    json["tokens_cached"] = std::max<std::size_t>(n_all, 1) - 1;  // the last one is not computed
    json["timings"]["cache_n"] = completion.timings.cached_prompt_tokens;
    PutTimings(json["timings"], completion.timings, completion.speculation);
    if (auto notices = LlamaCppNotices(frame, completion); !notices.empty())
      json["notices"] = std::move(notices);
    return OneLine(reply_.response_fields.empty() ? json : Chosen(json, reply_.response_fields));
  }

  static std::vector<std::string> LlamaCppNotices(const ReplyFrame& frame,
                                                  const Completion& completion) {
    std::vector<std::string> notices;
    for (const auto* const list : {&frame.notices, &completion.notices})
      for (const std::string& notice : *list) notices.push_back(InLlamaCppWords(notice));
    return notices;
  }

  const LlamaCppReply reply_;
  std::vector<Shown> shown_;  // of each choice
};

Json SlotJson(const LlamaCppProps& props, int id) {
  return {{"id", id},
          {"id_task", -1},
          {"n_ctx", props.context},
          {"speculative", props.speculative},
          {"is_processing", id < props.running}};
}

}  // namespace

std::string LlamaCppErrorJson(const ApiError& error) {
  return OneLine(Json{{"error",
                       {{"code", error.status},
                        {"message", InLlamaCppWords(error.message)},
                        {"type", LlamaCppTypeOf(error)}}}});
}

std::string LlamaCppSettingsJson(const GenerationCall& call, int context) {
  const Request& request = call.request;
  const SamplingParameters& s = request.sampling;
  const int length = call.max_tokens.value_or(-1);
  Json json = {
      {"n_ctx", context},
      {"n_predict", length},
      {"max_tokens", length},
      {"seed", call.seed ? Json(*call.seed) : Json(-1)},
      {"temperature", s.temperature},
      {"top_k", s.top_k},
      {"top_p", s.top_p},
      {"min_p", s.min_p},
      {"typical_p", s.typical_p},
      {"repeat_last_n", s.repetition_window},
      {"repeat_penalty", s.repetition_penalty},
      {"presence_penalty", s.presence_penalty},
      {"frequency_penalty", s.frequency_penalty},
      {"dry_multiplier", s.dry.multiplier},
      {"dry_base", s.dry.base},
      {"dry_allowed_length", s.dry.allowed_length},
      {"dry_penalty_last_n", s.dry.window},
      {"dry_sequence_breakers", call.dry_breakers.texts},
      {"mirostat", 0},
      {"stop", request.stop},
      {"n_keep", 0},
      {"n_discard", 0},
      {"min_keep", 1},
      {"ignore_eos", request.ignore_eos},
      {"stream", call.stream},
      {"n_probs", std::max(request.logprobs, 0)},
      {"logit_bias", BiasesJson(s)},
      {"grammar", s.grammar},
      {"samplers", {"penalties", "dry", "temperature", "top_k", "top_p", "typ_p", "min_p"}},
      {"timings_per_token", false}};
  return OneLine(json);
}

std::unique_ptr<ReplyWriter> LlamaCppWriter(LlamaCppReply reply) {
  return std::make_unique<LlamaCpp>(std::move(reply));
}

std::string LlamaCppPropsJson(const LlamaCppProps& props) {
  Json settings = SlotJson(props, 0);
  settings["is_processing"] = false;
  settings["params"] = JsonOrNull(LlamaCppSettingsJson({}, props.context));
  Json json = {{"default_generation_settings", std::move(settings)},
               {"total_slots", props.slots},
               {"model_alias", props.name},
               {"model_path", props.name},
               {"modalities", {{"vision", false}, {"audio", false}}}};
  if (!props.chat_template.empty()) json["chat_template"] = props.chat_template;
  json["bos_token"] = props.bos;
  json["eos_token"] = props.eos;
  json["build_info"] = std::string("foretoken-") + kVersion;
  json["is_sleeping"] = false;
  return OneLine(json);
}

std::string LlamaCppSlotsJson(const LlamaCppProps& props) {
  Json slots = Json::array();
  for (int i = 0; i < props.slots; ++i) slots.push_back(SlotJson(props, i));
  return OneLine(slots);
}

std::string LlamaCppSavedJson(const LlamaCppSlotAction& action) {
  return OneLine(Json{{"id_slot", action.slot},
                      {"filename", action.filename},
                      {"n_saved", action.counts.tokens},
                      {"n_written", action.counts.bytes},
                      {"timings", {{"save_ms", action.ms}}}});
}

std::string LlamaCppRestoredJson(const LlamaCppSlotAction& action) {
  return OneLine(Json{{"id_slot", action.slot},
                      {"filename", action.filename},
                      {"n_restored", action.counts.tokens},
                      {"n_read", action.counts.bytes},
                      {"timings", {{"restore_ms", action.ms}}}});
}

std::string LlamaCppErasedJson(const LlamaCppSlotAction& action) {
  return OneLine(Json{{"id_slot", action.slot}, {"n_erased", action.counts.tokens}});
}

}  // namespace foretoken::server
