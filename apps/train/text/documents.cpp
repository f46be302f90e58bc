// SPDX-License-Identifier: Apache-2.0
#include "train/text/documents.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "base/files/text_file.h"

namespace foretoken::train {
namespace {

// Length of the UTF-8 sequence at text[i], 0 if there is none.
int Utf8Length(const std::string& text, std::size_t i) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(i);
  const int length = lead < 0x80       ? 1
                     : lead >> 5 == 6  ? 2
                     : lead >> 4 == 14 ? 3
                     : lead >> 3 == 30 ? 4
                                       : 0;
  if (length == 0 || i + static_cast<std::size_t>(length) > text.size()) return 0;
  for (int k = 1; k < length; ++k)
    if (byte(i + static_cast<std::size_t>(k)) >> 6 != 2) return 0;
  return length;
}

Status CheckText(const std::string& text, const std::string& path) {
  for (std::size_t i = 0; i < text.size();) {
    const int length = Utf8Length(text, i);
    const auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || c == 0x7f || (c < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f'))
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: byte {:#04x} at {} is not text; give UTF-8 text (unpack archives, "
                      "convert other encodings with iconv)",
                      path, c, i));
    i += static_cast<std::size_t>(length);
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> ReadDocuments(const std::string& path) {
  FORETOKEN_TRY(const std::string text,
                ReadTextFile(path, {.most_bytes = std::size_t{1} << 40, .pipes = true}));
  FORETOKEN_CHECK_OK(CheckText(text, path));
  std::vector<std::string> documents;
  constexpr std::string_view kEnd = "<|endoftext|>";
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find(kEnd, begin);
    if (end == std::string::npos) end = text.size();
    std::size_t first = begin, last = end;
    while (first < last && std::isspace(static_cast<unsigned char>(text[first]))) ++first;
    while (last > first && std::isspace(static_cast<unsigned char>(text[last - 1]))) --last;
    if (last > first) documents.push_back(text.substr(first, last - first));
    begin = end + kEnd.size();
  }
  if (documents.empty())
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: holds no text; give a file with some", path));
  return documents;
}

}  // namespace foretoken::train
