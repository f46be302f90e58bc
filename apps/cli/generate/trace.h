// SPDX-License-Identifier: Apache-2.0
// cli/generate/trace.h: shows the rounds of a generation.
//
//   colour     accepted drafts green, rejected ones red and struck through, the target's own token
//   bold blue brackets   [+accepted][-rejected][=the target's own], where there is no colour
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "foretoken/request.h"

namespace foretoken::cli {

class Trace {
 public:
  // Gives the text of rejected tokens, which the stream names only by id.
  using Detokenize = std::function<std::string(std::span<const std::int32_t>)>;

  // escapes: for a terminal, which must not obey the texts.
  Trace(bool colour, bool escapes, Detokenize detokenize);

  // The line that explains the marks, and the prompt, plain.
  std::string Begin(const std::string& prompt) const;
  std::string Round(const RoundEvent& round);
  // Text that no round has shown.
  std::string Rest(const std::string& text) const;

 private:
  std::string Accepted(const std::string& text) const;
  std::string Rejected(const std::string& text) const;
  std::string Own(const std::string& text) const;
  std::string RejectedText(std::span<const std::int32_t> rejected) const;

  std::string Shown(const std::string& text) const;

  bool colour_, escapes_;
  Detokenize detokenize_;
  std::int32_t last_token_ = -1;  // the newest committed token
};

}  // namespace foretoken::cli
