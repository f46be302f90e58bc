// SPDX-License-Identifier: Apache-2.0
// capi/options.h: options that foretoken_options_set fills in, by key.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capi/callbacks.h"
#include "capi/errors.h"
#include "foretoken/chat.h"
#include "foretoken/options.h"
#include "foretoken/request.h"

// Has the options of all kinds; each kind reads its own.
struct foretoken_options {
  foretoken_kind kind = FORETOKEN_ENGINE;
  // Engine, and the settings of speculation of a verification.
  foretoken::EngineOptions engine;
  int max_waiting = 64;
  // Request; of a session and a verification: sampling, seed, id and limits.
  foretoken::Request request;
  std::optional<int> deadline_ms;  // after its submission
  foretoken::ChatOptions chat;
  // Session and verification.
  int vocabulary_size = 0;
  std::string drafter;  // "ngram", "suffix", "model"
  float draft_p_min = 0;
  bool shares_noise = true;

  foretoken::capi::CallerDrafter caller_drafter;
  std::vector<foretoken::capi::CallerProcessor> processors;
};

namespace foretoken::capi {

// Sets one option by its key. Errors: kNotFound (no such key), kInvalidArgument, with the key.
[[nodiscard]] Status SetOption(foretoken_options& options, std::string_view key,
                               std::string_view text);
// Sets one that is a list of tokens.
[[nodiscard]] Status SetTokens(foretoken_options& options, std::string_view key,
                               std::span<const std::int32_t> tokens);
// The key of this number, which ends with a NUL; behind the last one a view of nothing.
std::string_view KeyAt(foretoken_kind kind, std::size_t index);

// Options of this kind, that are not NULL.
[[nodiscard]] Status NeedsKind(const foretoken_options* options, foretoken_kind kind);

}  // namespace foretoken::capi
