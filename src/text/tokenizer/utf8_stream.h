// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/utf8_stream.h: turns tokens into a stream of text that never splits a character.
#pragma once

#include <string>
#include <string_view>

namespace foretoken::text {

// Bytes go in as tokens produce them; whole UTF-8 characters come out. An incomplete character is
// held back until its bytes have arrived. Bytes that can never become valid come out as U+FFFD (one
// for each maximal invalid part, as Unicode recommends).
class Utf8Stream {
 public:
  // Appends the bytes of one token; returns what may be shown now.
  std::string Push(std::string_view bytes);
  // The end of the text: returns what is still held back, made valid.
  std::string Finish();

 private:
  // At most 3 bytes.
  std::string pending_;
};

}  // namespace foretoken::text
