// SPDX-License-Identifier: Apache-2.0
#include "server/routes/answer.h"

#include <fmt/format.h>

#include <utility>

#include "foretoken/option_keys.h"
#include "settings/option_flags.h"

namespace foretoken::server {
namespace {

ApiError Unavailable(std::string message, std::string code) {
  return {.status = 503,
          .message = std::move(message),
          .type = "server_error",
          .code = std::move(code),
          .retry_after_s = 5};
}

// What a request calls the library's field; "": nothing of its own.
std::string FieldOf(std::string_view field, bool chat) {
  if (field == "prompt" || field == "prompt_tokens") return chat ? "messages" : "prompt";
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"dry.breakers", "dry_sequence_breakers"},
      {"draft_p_min", "speculative.p_min"},
      {"max_new_tokens", "max_tokens"},
      {"min_new_tokens", "min_tokens"},
      {"min_speculative_tokens", "speculative.n_min"},
      {"num_speculative_tokens", "speculative.n_max"},
      {"rejection_sampling_strategy", "speculative.strategy"},
      {"speculative_method", "speculative.type"},
      {"verify", "speculative.strategy"}};
  for (const auto& [library, request] : kNames)
    if (field == library) return std::string(request);
  for (const SamplingKey& key : SamplingKeys())
    if (field == key.member) return std::string(key.field.name);
  return std::string(field);
}

}  // namespace

ApiError OfEngine(const Error& of_library, bool chat) {
  Error error = of_library;
  error.message = settings::InFlags(std::move(error.message));
  if (error.code == ErrorCode::kNoMemory) return Unavailable(error.message, "out_of_memory");
  if (error.code == ErrorCode::kIo) return Unavailable(error.message, "model_file_changed");
  if (error.code == ErrorCode::kRankLost) return Unavailable(error.message, "rank_lost");
  if (error.code == ErrorCode::kInvalidFile)  // the request is not to blame
    return {.status = 500, .message = error.message, .type = "server_error", .code = "model_error"};
  ApiError api{.message = error.message, .param = FieldOf(error.field, chat)};
  // In the client's words.
  if (api.param != error.field && error.message.starts_with(error.field))
    api = BadField(api.param, error.why());
  if (error.code == ErrorCode::kTooLarge)
    api.code = error.field == "grammar" ? "grammar_too_large" : "context_length_exceeded";
  return api;
}

ApiError OfRequest(const Service& service, const Error& error, bool chat) {
  if (error.code == ErrorCode::kStopped)
    return Unavailable("server: it was stopped; try again", "stopped");
  if (error.code == ErrorCode::kDeadline)
    return Unavailable(fmt::format("request: it took longer than {} s; ask for less, or try again",
                                   service.options.request_timeout_s),
                       "request_timeout");
  return OfEngine(error, chat);
}

ApiError NotTaken(const Error& error) {
  if (error.code == ErrorCode::kStopped) return ShuttingDown();
  if (error.code != ErrorCode::kBusy) return OfEngine(error, false);
  return {.status = 429,
          .message = error.message,
          .type = "rate_limit_error",
          .code = "queue_full",
          .retry_after_s = 1};
}

Answer::Answer(Service& service, EventStream events, Setting setting)
    : service_(service),
      events_(std::move(events)),
      setting_(std::move(setting)),
      choices_(setting_.echoes.size()) {
  for (std::size_t i = 0; i < choices_.size(); ++i) choices_[i].echo = setting_.echoes[i];
}

std::optional<StreamEvent> Answer::Fail(ApiError error) {
  events_.Cancel();
  failure_ = std::move(error);
  failed_ = true;
  return std::nullopt;
}

std::optional<StreamEvent> Answer::Next() {
  if (failed_) return std::nullopt;
  auto event = events_.TryNext();
  if (!event) return std::nullopt;
  if (event->kind == StreamEvent::Kind::kFailed)
    return Fail(OfRequest(service_, event->error, setting_.chat));
  if (event->kind != StreamEvent::Kind::kEnd) return event;
  if (const auto& error = event->end->completion.error)
    return Fail(OfEngine(*error, setting_.chat));
  choices_[static_cast<std::size_t>(event->choice)].end = *std::move(event->end);
  event->end.reset();
  held_.push_back(std::move(event->held));
  ++n_ended_;
  return event;
}

void Answer::Describe(LogLine& line) const {
  double queue_ms = 0, first_ms = 0, total_ms = 0, decode_ms = 0, actual_ms = 0, plain_ms = 0;
  std::int64_t drafted = 0, accepted = 0, decoded = 0;
  std::string reasons;
  for (const auto& [echo, end, facts] : choices_) {
    const Completion& completion = end.completion;
    queue_ms = std::max(queue_ms, end.queue_ms);
    first_ms = std::max(first_ms, end.first_token_ms);
    total_ms = std::max(total_ms, end.total_ms);
    decode_ms += completion.timings.decode_ms;
    decoded += completion.timings.decoded_tokens;
    actual_ms += end.actual_ms;
    plain_ms += end.plain_ms;
    drafted += completion.speculation.drafted;
    accepted += completion.speculation.accepted;
    reasons += (reasons.empty() ? "" : ",") +
               std::string(FinishName(completion.finish_reason, facts.has_calls));
  }
  const Usage all = usage();
  line.Add("prompt_tokens", all.prompt_tokens).Add("completion_tokens", all.completion_tokens);
  line.Add("finish", reasons).AddMs("queue_ms", queue_ms).AddMs("first_token_ms", first_ms);
  line.AddMs("total_ms", total_ms);
  if (decode_ms > 0) line.AddMs("tokens_per_s", 1000.0 * static_cast<double>(decoded) / decode_ms);
  line.Add("drafted", drafted).Add("accepted", accepted);
  if (actual_ms > 0 && plain_ms > 0)
    line.Add("estimated_speedup", fmt::format("{:.2f}", plain_ms / actual_ms));
}

}  // namespace foretoken::server
