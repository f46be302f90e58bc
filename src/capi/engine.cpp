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

std::string TextOf(const std::string& text) {
  return text;
}

std::string TextOf(std::int64_t number) {
  return fmt::format("{}", number);
}

template <typename Item>
std::string TextOf(const std::vector<Item>& items) {
  return fmt::format("{}", fmt::join(items, ","));
}

// The row of a member of the engine's summary, or of its target's.
template <auto Member>
constexpr InfoRow Row(std::string_view key) {
  return {key, [](const AsyncEngine& engine) {
            const EngineSummary& summary = engine.engine().summary();
            if constexpr (requires { summary.*Member; })
              return TextOf(summary.*Member);
            else
              return TextOf(summary.target.*Member);
          }};
}

using E = EngineSummary;
using M = ModelSummary;
constexpr std::array kInfoRows = {
    Row<&M::path>("model"),
    Row<&M::architecture>("architecture"),
    Row<&M::vocabulary_size>("vocabulary_size"),
    Row<&M::context_size>("context_size"),
    Row<&M::embedding_size>("embedding_size"),
    Row<&M::end_tokens>("end_tokens"),
    Row<&E::methods>("methods"),
    Row<&E::method>("method"),
    Row<&E::strategies>("strategies"),
    Row<&E::strategy>("strategy"),
    Row<&E::controller>("controller"),
    Row<&E::num_speculative_tokens>("num_speculative_tokens"),
    Row<&E::max_sequences>("max_sequences"),
    Row<&E::lossless>("lossless"),  // 1 or 0
    Row<&E::threads>("threads"),
    Row<&E::isa>("isa"),
    InfoRow{"memory_bytes",
            [](const AsyncEngine& e) { return TextOf(e.engine().summary().memory.All()); }},
    InfoRow{"running", [](const AsyncEngine& e) { return TextOf(e.load().running); }},
    InfoRow{"waiting", [](const AsyncEngine& e) { return TextOf(e.load().waiting); }},
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
