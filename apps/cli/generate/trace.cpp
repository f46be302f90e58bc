// SPDX-License-Identifier: Apache-2.0
#include "cli/generate/trace.h"

#include <utility>

#include "cli/terminal.h"
#include "settings/escaped_text.h"

namespace foretoken::cli {
namespace {

constexpr const char* kReset = "\033[0m";

}  // namespace

Trace::Trace(bool colour, bool escapes, Detokenize detokenize)
    : colour_(colour), escapes_(escapes), detokenize_(std::move(detokenize)) {}

std::string Trace::Shown(const std::string& text) const {
  return escapes_ ? settings::Escaped(text) : text;
}

std::string Trace::Accepted(const std::string& text) const {
  if (text.empty()) return "";
  return colour_ ? "\033[32m" + Shown(text) + kReset : "[+" + Shown(text) + "]";
}

std::string Trace::Rejected(const std::string& text) const {
  if (text.empty()) return "";
  return colour_ ? "\033[31;9m" + text + kReset : "[-" + text + "]";
}

std::string Trace::Own(const std::string& text) const {
  if (text.empty()) return "";
  return colour_ ? "\033[1;34m" + Shown(text) + kReset : "[=" + Shown(text) + "]";
}

std::string Trace::Begin(const std::string& prompt) const {
  return "trace: " + Accepted("accepted draft") + ' ' + Rejected("rejected draft") + ' ' +
         Own("the target's own token") + "\n\n" + Shown(prompt);
}

// Rejected text was never part of the output, so its line breaks must not break lines. A token's
// text depends on what precedes it (a leading space at the start of a text), so it is the
// difference between the text with the tokens and the text of the token before.
std::string Trace::RejectedText(std::span<const std::int32_t> rejected) const {
  if (rejected.empty()) return "";
  if (last_token_ < 0) return OnOneLine(detokenize_(rejected));
  std::vector<std::int32_t> tokens = {last_token_};
  const std::string before = detokenize_(tokens);
  tokens.insert(tokens.end(), rejected.begin(), rejected.end());
  const std::string all = detokenize_(tokens);
  return OnOneLine(all.compare(0, before.size(), before) == 0 ? all.substr(before.size()) : all);
}

std::string Trace::Round(const RoundEvent& round) {
  std::string accepted, own;
  for (const TokenEvent& event : round.events) {
    const bool is_draft = event.origin == TokenOrigin::kAccepted;
    (is_draft ? accepted : own) += event.text;
    if (is_draft) last_token_ = event.id;
  }
  std::string out = Accepted(accepted) + Rejected(RejectedText(round.rejected)) + Own(own);
  if (!round.events.empty()) last_token_ = round.events.back().id;
  return out;
}

std::string Trace::Rest(const std::string& text) const {
  return Own(text);
}

}  // namespace foretoken::cli
