// SPDX-License-Identifier: Apache-2.0
// Encodes many texts with one tokenizer, for tests/compare/tokenizers.py: encode_texts FILE.gguf.
// Standard input holds records: u32 the size of a text, u8 flags (1: names of control tokens count
// as such, 2: begin and end tokens are added, 4: also decode, and fail where the text does not come
// back), the text. Each record gives one line of ids.
#include <cstdint>
#include <cstdio>
#include <string>

#include "formats/checkpoint.h"
#include "text/tokenizer/tokenizer.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: encode_texts FILE.gguf\n");
    return 2;
  }
  const auto file = foretoken::formats::OpenCheckpoint(argv[1]);
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 1;
  }
  const auto tokenizer = foretoken::text::Tokenizer::Load((*file)->metadata());
  if (!tokenizer) {
    std::fprintf(stderr, "%s\n", tokenizer.error().message.c_str());
    return 1;
  }
  std::uint32_t size = 0;
  unsigned char flags = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1 && std::fread(&flags, 1, 1, stdin) == 1) {
    std::string text(size, '\0');
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    const auto tokens =
        (*tokenizer)
            ->Encode(text, {.add_special = (flags & 2) != 0, .parse_special = (flags & 1) != 0});
    for (const auto token : tokens) std::printf("%d ", token);
    std::printf("\n");
    if ((flags & 4) != 0 && (*tokenizer)->Decode(tokens, true) != text) {
      std::fprintf(stderr, "a text did not come back: %s\n", text.c_str());
      return 1;
    }
  }
  return 0;
}
