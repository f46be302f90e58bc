// SPDX-License-Identifier: Apache-2.0
// The table of verbs. FORETOKEN_SERVER is defined where the program has the server.
#include <algorithm>
#include <array>

#include "cli/verb.h"

namespace foretoken::cli {

extern const Verb kBenchVerb, kCertifyVerb, kChatVerb, kCheckPairVerb, kClusterVerb,
    kCompletionVerb, kGenerateVerb, kHelpVerb, kInspectVerb, kManVerb, kQuantizeVerb, kReplayVerb,
    kServeVerb, kTokenizeVerb, kTuneVerb, kVersionVerb;

namespace {

constexpr std::array kVerbs = {&kGenerateVerb,  &kChatVerb,
#ifdef FORETOKEN_SERVER
                               &kServeVerb,
#endif
                               &kInspectVerb,   &kTokenizeVerb, &kQuantizeVerb, &kBenchVerb,
                               &kCheckPairVerb, &kTuneVerb,     &kClusterVerb,  &kCertifyVerb,
                               &kReplayVerb,    &kHelpVerb,     &kVersionVerb,  &kCompletionVerb,
                               &kManVerb};

}  // namespace

std::span<const Verb* const> Verbs() {
  return kVerbs;
}

const Verb* FindVerb(std::string_view name) {
  const auto* const verb = std::find_if(kVerbs.begin(), kVerbs.end(),
                                        [&](const Verb* row) { return row->name == name; });
  return verb == kVerbs.end() ? nullptr : *verb;
}

}  // namespace foretoken::cli
