// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/caller_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "draft/methods.h"
#include "foretoken/drafter.h"
#include "foretoken/verifier.h"
#include "loader/drafts/file_drafter.h"
#include "text/vocabulary_difference.h"

namespace foretoken::loader {
namespace {

Status CheckName(const char* what, const std::string& name) {
  const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
  if (good) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: '{}' is not a name; use letters, digits, '-' and '_'", what, Shown(name)));
}

}  // namespace

Result<bool> TakeOwnMethod(const EngineOptions& options, std::string& methods) {
  if (!options.drafter) return false;
  const std::string name(options.drafter->name());
  FORETOKEN_CHECK_OK(CheckName("drafter", name));
  constexpr std::array<std::string_view, 5> kTaken = {"auto", "caller", "none", "null",
                                                      "portfolio"};
  if (FindDrafter(name) != nullptr || std::find(kTaken.begin(), kTaken.end(), name) != kTaken.end())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("drafter: '{}' is the name of a method of foretoken's; use another",
                            Shown(name)));
  bool found = methods.empty();
  std::string others;
  for (const std::string_view method : MethodItems(methods)) {
    found |= method == name;
    if (method != name) others += fmt::format("{}{}", others.empty() ? "" : ",", method);
  }
  methods = others;
  return found;
}

Status CheckOwnVerifier(const EngineOptions& options) {
  if (!options.verifier) return {};
  FORETOKEN_CHECK_OK(CheckName("verifier", std::string(options.verifier->name())));
  if (options.speculative.strategy == VerifyStrategy::kAuto) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("verifier: '{}' is given, and the strategy '{}' too; drop one of them",
                          options.verifier->name(), Name(options.speculative.strategy)));
}

Status CheckOwnDrafter(const EngineOptions& options, const text::Tokenizer& target) {
  const auto& own = options.drafter;
  if (!own) return {};
  const auto [sequences, vocabulary] = own->limits();
  const auto in_drafter = [&](std::string why) {
    return Fail(ErrorCode::kMismatch, fmt::format("drafter '{}': {}", Shown(own->name()), why));
  };
  if (sequences > 0 && sequences < options.max_sequences)
    return in_drafter(
        fmt::format("it drafts for {} text(s) at a time, and the engine runs {}; make it for as "
                    "many",
                    sequences, options.max_sequences));
  if (const auto* const model = dynamic_cast<const FileDrafter*>(own.get())) {
    const VocabularyDifference difference = text::CompareVocabularies(target, model->tokenizer());
    if (!difference.same())
      return in_drafter(
          fmt::format("its vocabulary is not the target's: {}; give its file as the draft model, "
                      "which takes the tokens that both share",
                      difference.Describe()));
  }
  if (vocabulary > 0 && vocabulary != target.vocabulary_size())
    return in_drafter(
        fmt::format("it drafts from {} tokens, and the target has {}; use one for this vocabulary",
                    vocabulary, target.vocabulary_size()));
  return {};
}

}  // namespace foretoken::loader
