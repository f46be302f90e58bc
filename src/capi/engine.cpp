// SPDX-License-Identifier: Apache-2.0
#include "capi/engine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "capi/lists.h"

namespace foretoken::capi {

EngineOptions EngineOptionsOf(const foretoken_options& options) {
  EngineOptions engine = options.engine;
  engine.drafter = DrafterOf(options.caller_drafter);
  return engine;
}

Request RequestOf(const foretoken_options& options, const ProcessorFault& fault) {
  Request request = options.request;
  request.sampling.processors = ProcessorsOf(options.processors, fault);
  return request;
}

namespace {

struct InfoRow {
  std::string_view key;
  std::string (*text)(const AsyncEngine& engine);
};

std::string Joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

std::string Number(std::int64_t number) {
  return fmt::format("{}", number);
}

const EngineSummary& SummaryOf(const AsyncEngine& engine) {
  return engine.engine().summary();
}

constexpr std::array kInfoRows = {
    InfoRow{"model", [](const AsyncEngine& e) { return SummaryOf(e).target.path; }},
    InfoRow{"architecture", [](const AsyncEngine& e) { return SummaryOf(e).target.architecture; }},
    InfoRow{"vocabulary_size",
            [](const AsyncEngine& e) { return Number(SummaryOf(e).target.vocabulary_size); }},
    InfoRow{"context_size",
            [](const AsyncEngine& e) { return Number(SummaryOf(e).target.context_size); }},
    InfoRow{"embedding_size",
            [](const AsyncEngine& e) { return Number(SummaryOf(e).target.embedding_size); }},
    InfoRow{"end_tokens",
            [](const AsyncEngine& e) {
              return fmt::format("{}", fmt::join(SummaryOf(e).target.end_tokens, ","));
            }},
    InfoRow{"methods", [](const AsyncEngine& e) { return Joined(SummaryOf(e).methods); }},
    InfoRow{"method", [](const AsyncEngine& e) { return SummaryOf(e).method; }},
    InfoRow{"strategies", [](const AsyncEngine& e) { return Joined(SummaryOf(e).strategies); }},
    InfoRow{"strategy", [](const AsyncEngine& e) { return SummaryOf(e).strategy; }},
    InfoRow{"controller", [](const AsyncEngine& e) { return SummaryOf(e).controller; }},
    InfoRow{"num_speculative_tokens",
            [](const AsyncEngine& e) { return Number(SummaryOf(e).num_speculative_tokens); }},
    InfoRow{"max_sequences",
            [](const AsyncEngine& e) { return Number(SummaryOf(e).max_sequences); }},
    InfoRow{"lossless", [](const AsyncEngine& e) { return Number(SummaryOf(e).lossless ? 1 : 0); }},
    InfoRow{"threads", [](const AsyncEngine& e) { return Number(SummaryOf(e).threads); }},
    InfoRow{"isa", [](const AsyncEngine& e) { return SummaryOf(e).isa; }},
    InfoRow{"memory_bytes", [](const AsyncEngine& e) { return Number(SummaryOf(e).memory.All()); }},
    InfoRow{"running", [](const AsyncEngine& e) { return Number(e.load().running); }},
    InfoRow{"waiting", [](const AsyncEngine& e) { return Number(e.load().waiting); }},
};

Status CheckTokens(std::span<const std::int32_t> tokens, int vocabulary_size) {
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= vocabulary_size)
      return InvalidField("tokens", fmt::format("{} is not in [0, {}); give tokens of this model",
                                                token, vocabulary_size));
  return {};
}

}  // namespace
}  // namespace foretoken::capi

using foretoken::Status;
namespace capi = foretoken::capi;

extern "C" {

foretoken_status foretoken_engine_open(const foretoken_options* options, foretoken_engine** engine,
                                       foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    *engine = nullptr;
    FORETOKEN_CHECK_OK(capi::NeedsKind(options, FORETOKEN_ENGINE));
    auto made = std::make_unique<foretoken_engine>();
    FORETOKEN_TRY(made->engine,
                  foretoken::AsyncEngine::Open(capi::EngineOptionsOf(*options),
                                               {.max_waiting = options->max_waiting}));
    *engine = made.release();
    return {};
  });
}

void foretoken_engine_close(foretoken_engine* engine) {
  delete engine;
}

foretoken_status foretoken_engine_drain(foretoken_engine* engine, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    engine->engine->Drain();
    return {};
  });
}

foretoken_status foretoken_engine_stop(foretoken_engine* engine, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    engine->engine->Stop();
    return {};
  });
}

foretoken_status foretoken_engine_wait_idle(foretoken_engine* engine, int64_t timeout_ms,
                                            foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    constexpr std::int64_t kDay = 24 * 3600 * 1000;
    do {
      const std::int64_t part = timeout_ms < 0 ? kDay : std::min(timeout_ms, kDay);
      if (engine->engine->AwaitIdle(std::chrono::milliseconds(part))) return {};
      if (timeout_ms > 0) timeout_ms -= part;
    } while (timeout_ms != 0);
    return foretoken::FailField(foretoken::ErrorCode::kDeadline, "timeout_ms",
                                "requests still run or wait; wait longer, or stop the engine");
  });
}

foretoken_status foretoken_engine_info(const foretoken_engine* engine, const char* key, char* text,
                                       size_t capacity, size_t* count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_CHECK_OK(capi::Needs(key, "key"));
    for (const capi::InfoRow& row : capi::kInfoRows)
      if (row.key == key) return capi::GiveText(row.text(*engine->engine), text, capacity, count);
    return foretoken::FailField(foretoken::ErrorCode::kNotFound, foretoken::Shown(key),
                                "an engine has no such key; foretoken.h lists those it has");
  });
}

foretoken_status foretoken_engine_tokenize(const foretoken_engine* engine, const char* text,
                                           size_t size, int32_t add_special, int32_t parse_special,
                                           int32_t* tokens, size_t capacity, size_t* count,
                                           foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_CHECK_OK(capi::NeedsList(text, size, "text"));
    return capi::Give(engine->engine->engine().Tokenize(std::string(capi::TextOf(text, size)),
                                                        add_special != 0, parse_special != 0),
                      tokens, capacity, count);
  });
}

foretoken_status foretoken_engine_detokenize(const foretoken_engine* engine, const int32_t* tokens,
                                             size_t n, int32_t special, char* text, size_t capacity,
                                             size_t* count, foretoken_error** error) {
  return capi::Guarded(error, [&]() -> Status {
    FORETOKEN_CHECK_OK(capi::Needs(engine, "engine"));
    FORETOKEN_CHECK_OK(capi::NeedsList(tokens, n, "tokens"));
    const auto& inner = engine->engine->engine();
    const auto list = capi::ListOf(tokens, n);
    FORETOKEN_CHECK_OK(capi::CheckTokens(list, inner.summary().target.vocabulary_size));
    return capi::GiveText(inner.Detokenize(list, special != 0), text, capacity, count);
  });
}

}  // extern "C"
