// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/utf8_stream.h"

#include "text/tokenizer/unicode.h"

namespace foretoken::text {

std::string Utf8Stream::Push(std::string_view bytes) {
  pending_.append(bytes);
  std::string shown;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Character character = ReadUtf8(rest);
    if (character.state == Utf8State::kIncomplete) break;
    shown.append(character.state == Utf8State::kValid ? rest.substr(0, character.size)
                                                      : kReplacementCharacter);
    rest.remove_prefix(character.size);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return shown;
}

std::string Utf8Stream::Finish() {
  std::string shown(pending_.empty() ? std::string_view() : kReplacementCharacter);
  pending_.clear();
  return shown;
}

}  // namespace foretoken::text
