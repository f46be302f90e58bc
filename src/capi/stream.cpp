// SPDX-License-Identifier: Apache-2.0
#include "capi/stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "capi/engine.h"
#include "capi/lists.h"

namespace foretoken::capi {
namespace {

using Clock = std::chrono::steady_clock;

// A time that is so far away that its sum with the present one has no room counts as never.
Clock::time_point After(std::int64_t ms) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  return Clock::now() + std::chrono::milliseconds(std::min(ms, kMost));
}

Result<std::unique_ptr<foretoken_stream>> SubmitTo(foretoken_engine& engine,
                                                   const foretoken_options& options) {
  const auto fault = std::make_shared<std::atomic<bool>>(false);
  SubmitOptions submit;
  if (options.deadline_ms) {
    if (*options.deadline_ms < 0)
      return InvalidField("deadline_ms", "it is negative; give milliseconds from now on");
    submit.deadline = After(*options.deadline_ms);
  }
  FORETOKEN_TRY(EventStream events,
                engine.engine->Submit(RequestOf(options, fault), std::move(submit)));
  return std::make_unique<foretoken_stream>(std::move(events), fault);
}

void ShowRound(foretoken_stream& stream, const RoundRecord& round) {
  stream.tokens.clear(), stream.origins.clear(), stream.logprobs.clear();
  for (const RoundToken& token : round.tokens) {
    stream.tokens.push_back(token.id);
    stream.origins.push_back(static_cast<std::uint8_t>(token.origin));
    if (token.logprobs) stream.logprobs.push_back(token.logprobs->logprob);
  }
  const bool all = stream.logprobs.size() == stream.tokens.size();
  stream.view.drafted = round.drafted;
  stream.view.text = round.text.c_str();
  stream.view.text_size = round.text.size();
  stream.view.tokens = stream.tokens.data();
  stream.view.origins = stream.origins.data();
  stream.view.logprobs = all && !stream.tokens.empty() ? stream.logprobs.data() : nullptr;
  stream.view.token_count = stream.tokens.size();
  stream.view.rejected = round.rejected.data();
  stream.view.rejected_count = round.rejected.size();
  stream.view.drafter = round.drafter.c_str();
}

// Keeps the result of the end, and says what went wrong.
Status ShowEnd(foretoken_stream& stream, ChoiceEnd end) {
  std::optional<Error> error = end.completion.error;
  stream.result = std::make_unique<foretoken_result>(std::move(end));
  if (stream.fault->load())
    throw CallbackFailed{
        "processor: a function of the caller returned an error; see its reason there"};
  if (error) return Fail(std::move(*error));
  return {};
}

std::optional<StreamEvent> Read(EventStream& events, std::int64_t timeout_ms) {
  if (timeout_ms < 0) return events.Next();
  return timeout_ms == 0 ? events.TryNext() : events.NextUntil(After(timeout_ms));
}

// The next event as stream.view; false: there is none.
Result<bool> Advance(foretoken_stream& stream, std::int64_t timeout_ms) {
  stream.view = {};
  stream.view.text = stream.view.drafter = "";
  stream.last = Read(stream.events, timeout_ms);
  if (!stream.last) return false;
  StreamEvent& event = *stream.last;
  if (event.kind == StreamEvent::Kind::kFailed) return Fail(event.error);
  stream.view.kind = event.kind == StreamEvent::Kind::kBegun   ? FORETOKEN_EVENT_BEGUN
                     : event.kind == StreamEvent::Kind::kRound ? FORETOKEN_EVENT_ROUND
                                                               : FORETOKEN_EVENT_END;
  if (event.kind == StreamEvent::Kind::kRound) ShowRound(stream, event.round);
  if (event.kind == StreamEvent::Kind::kEnd && event.end)
    FORETOKEN_CHECK_OK(ShowEnd(stream, std::move(*event.end)));
  return true;
}

// Reads to the end. After the callback has said that it wants no more, it is not called again.
Status RunToEnd(foretoken_stream& stream, foretoken_on_event on_event, void* user) {
  std::int32_t answer = 0;
  for (;;) {
    FORETOKEN_TRY(const bool more, Advance(stream, -1));
    if (!more || stream.view.kind == FORETOKEN_EVENT_END) break;
    if (on_event == nullptr || answer != 0 || stream.view.kind != FORETOKEN_EVENT_ROUND) continue;
    answer = on_event(user, &stream.view);
    if (answer != 0) stream.events.Cancel();
  }
  if (answer < 0)
    throw CallbackFailed{
        "on_event: a function of the caller returned an error; see its reason there"};
  return {};
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_engine_submit(foretoken_engine* engine, const foretoken_options* request,
                                         foretoken_stream** stream, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(stream, "stream"));
    *stream = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_CHECK_OK(capi::NeedsKind(request, FORETOKEN_REQUEST));
    FORETOKEN_TRY(auto made, capi::SubmitTo(*engine, *request));
    *stream = made.release();
    return {};
  });
}

foretoken_status foretoken_stream_next(foretoken_stream* stream, int64_t timeout_ms,
                                       const foretoken_event** event, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(event, "event"));
    *event = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(stream, "stream"));
    FORETOKEN_TRY(const bool more, capi::Advance(*stream, timeout_ms));
    if (more) *event = &stream->view;
    return {};
  });
}

int32_t foretoken_stream_ended(const foretoken_stream* stream) {
  return stream != nullptr && stream->events.ended() ? 1 : 0;
}

void foretoken_stream_cancel(foretoken_stream* stream) {
  if (stream != nullptr) stream->events.Cancel();
}

foretoken_status foretoken_stream_result(foretoken_stream* stream, foretoken_result** result,
                                         foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(result, "result"));
    *result = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(stream, "stream"));
    if (!stream->result)
      return foretoken::InvalidField("stream",
                                     "it has no result; read it to its end, and take the "
                                     "result once");
    *result = stream->result.release();
    return {};
  });
}

void foretoken_stream_free(foretoken_stream* stream) {
  delete stream;
}

foretoken_status foretoken_engine_generate(foretoken_engine* engine,
                                           const foretoken_options* request,
                                           foretoken_on_event on_event, void* user,
                                           foretoken_result** result, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(result, "result"));
    *result = nullptr;
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_CHECK_OK(capi::NeedsKind(request, FORETOKEN_REQUEST));
    FORETOKEN_TRY(auto stream, capi::SubmitTo(*engine, *request));
    FORETOKEN_CHECK_OK(capi::RunToEnd(*stream, on_event, user));
    *result = stream->result.release();
    return {};
  });
}

}  // extern "C"
