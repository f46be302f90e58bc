// SPDX-License-Identifier: Apache-2.0
// Feeds bytes to the reader of settings files. It gives settings or an Error of one line, never a
// crash, and its result is not larger than the file. Needs no corpus.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/settings_file.h"

namespace {

constexpr std::string_view kSeed =
    "# settings\nserver: {a: [1, {b: 2}]}\ns:\n  gamma: 4\n  method: [ngram, 'suffix']\n"
    "  ewma: {min: 1, \"max\": 2}\n  t:\n    - [1, 4, 8]\n    - [5, 8, 2]\n  off: ~\n";

void Check(const std::string& text, std::string_view section) {
  const auto settings = foretoken::formats::ParseSettings(text, "fuzz.yaml", section);
  if (!settings) {
    const std::string& message = settings.error().message;
    FORETOKEN_CHECK(message.find('\n') == std::string::npos && message.size() < 100'000);
    return;
  }
  const auto lines =
      1 + std::count(text.begin(), text.end(), '\n') + std::count(text.begin(), text.end(), '\r');
  std::size_t bytes = 0;
  for (const auto& [key, value, line] : *settings) {
    FORETOKEN_CHECK(line >= 1 && line <= lines);
    bytes += value.size();
  }
  FORETOKEN_CHECK(bytes <= 8 * text.size() + 8);  // "null" for nothing, nothing repeated
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned) {
  if (size >= 16 || max_size < kSeed.size()) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, kSeed.data(), kSeed.size());
  return kSeed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Check(text, "s");
  Check(text, "");
  return 0;
}
