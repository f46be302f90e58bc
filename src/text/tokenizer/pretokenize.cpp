// SPDX-License-Identifier: Apache-2.0
// The expressions only refer to ASCII characters and to Unicode classes. So a text is first
// rewritten to one byte per character: ASCII as it is, anything else as 0x80 + class (+ 0x10 in the
// ideograph and kana blocks). PCRE2 then matches plain bytes. That is faster than its UTF mode,
// works for invalid input, and uses one set of Unicode tables (utf8proc's) for all patterns.
#include "text/tokenizer/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

// In the expressions below, \p{..}, \s and \cjk occur only inside brackets, where Expand replaces
// them.
constexpr std::string_view kLlama3[] = {
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};
constexpr std::string_view kQwen2[] = {
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}]+|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};
constexpr std::string_view kQwen35[] = {
    R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|[\p{N}]| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};

#define FORETOKEN_GPT2 \
  R"('s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|[\s]+(?![^\s])|[\s]+)"
constexpr std::string_view kGpt2[] = {FORETOKEN_GPT2};
constexpr std::string_view kSmolLm[] = {R"([\p{N}])", FORETOKEN_GPT2};
constexpr std::string_view kFalcon[] = {R"([\p{P}$+<=>^~|`]+)", FORETOKEN_GPT2, "[0-9]{3}"};
constexpr std::string_view kDefault[] = {R"([\p{P}$+<=>^~|]+)", FORETOKEN_GPT2, R"([\p{N}]+)",
                                         "[0-9]{3}"};
#undef FORETOKEN_GPT2

constexpr std::string_view kDeepSeek3[] = {
    R"([\p{N}]{1,3})", R"([\cjk]+)",
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};

// These two separate upper and lower case in ASCII only: letters beyond it count as both.
constexpr std::string_view kTekken[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{upper}]*[\p{lower}]+|[^\r\n\p{L}\p{N}]?[\p{upper}]+[\p{lower}]*|[\p{N}]| ?[^\s\p{L}\p{N}]+[\r\n/]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};
constexpr std::string_view kGpt4o[] = {
    R"([^\r\n\p{L}\p{N}]?[\p{upper}]*[\p{lower}]+(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[^\r\n\p{L}\p{N}]?[\p{upper}]+[\p{lower}]*(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])?|[\p{N}]{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|[\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"};

struct NamedPattern {
  std::string_view name;
  Pattern pattern;
};

constexpr Pattern kWholeWords = {kLlama3, true, true, true};

constexpr NamedPattern kPatterns[] = {
    {"", {kDefault}},
    {"default", {kDefault}},
    {"llama-bpe", kWholeWords},
    {"llama3", kWholeWords},
    {"llama-v3", kWholeWords},
    {"falcon3", kWholeWords},
    {"falcon-h1", kWholeWords},
    {"pixtral", kWholeWords},
    {"midm-2.0", kWholeWords},
    {"lfm2", kWholeWords},
    {"dbrx", {kLlama3}},
    {"smaug-bpe", {kLlama3}},
    {"glm4", {kLlama3}},
    {"chatglm-bpe", {kLlama3}},
    {"qwen2", {kQwen2}},
    {"deepseek-r1-qwen", {kQwen2}},
    {"megrez", {kQwen2}},
    {"kormo", {kQwen2}},
    {"f2llmv2", {kQwen2}},
    {"stablelm2", {kQwen2}},
    {"hunyuan", {kQwen2}},
    {"solar-open", {kQwen2}},
    {"grok-2", {kQwen2}},
    {"qwen35", {kQwen35}},
    {"gpt-2", {kGpt2}},
    {"phi-2", {kGpt2}},
    {"gigachat", {kGpt2}},
    {"a.x-4.0", {kGpt2}},
    {"mellum", {kGpt2}},
    {"mpt", {kGpt2}},
    {"olmo", {kGpt2}},
    {"jais", {kGpt2}},
    {"trillion", {kGpt2}},
    {"granite-docling", {kGpt2}},
    {"exaone4", {kGpt2}},
    {"smollm", {kSmolLm}},
    {"starcoder", {kSmolLm}},
    {"refact", {kSmolLm}},
    {"command-r", {kSmolLm}},
    {"codeshell", {kSmolLm}},
    {"exaone", {kSmolLm}},
    {"minerva-7b", {kSmolLm}},
    {"mellum2", {kSmolLm}},
    {"falcon", {kFalcon}},
    {"deepseek-v3", {kDeepSeek3}},
    {"hunyuan-dense", {kDeepSeek3}},
    {"joyai-llm", {kDeepSeek3}},
    {"tekken", {kTekken, true, true, true}},
    {"gpt-4o", {kGpt4o}},
    {"llama4", {kGpt4o}},
    {"kanana2", {kGpt4o}},
    {"talkie", {kGpt4o}},
    {"minimax-m2", {kGpt4o}},
};

constexpr unsigned kCjkBit = 0x10;

// 一-龥, hiragana, katakana.
constexpr bool IsCjk(char32_t code) {
  return (code >= 0x4E00 && code <= 0x9FA5) || (code >= 0x3040 && code <= 0x30FF);
}

// The class bytes follow the order of CharacterClass.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kClasses = {{
    {R"(\p{L})", R"(A-Za-z\x80\x90)"},
    {R"(\p{N})", R"(0-9\x81\x91)"},
    {R"(\s)", R"(\t-\r \x82\x92)"},
    {R"(\p{P})", R"(!-#%-*,-/:;?@\[-\]_{}\x83\x93)"},
    {R"(\p{S})", R"($+<->^`|~\x84\x94)"},
    {R"(\p{M})", R"(\x85\x95)"},
    {R"(\p{upper})", R"(A-Z\x80\x90)"},
    {R"(\p{lower})", R"(a-z\x80\x90)"},
    {R"(\cjk)", R"(\x90-\x96)"},
}};

std::string Expand(std::string_view expression) {
  std::string expanded(expression);
  for (const auto& [name, bytes] : kClasses) expanded = ReplaceAll(expanded, name, bytes);
  return expanded;
}

// The subject of the expressions and, unless it is all ASCII, the number of bytes of each of its
// characters.
struct Subject {
  std::string_view classes;
  std::string storage;
  std::vector<std::uint8_t> sizes;
};

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c & 0x80) == 0; });
}

void Classify(std::string_view text, Subject& subject) {
  if (IsAscii(text)) {
    subject.classes = text;
    return;
  }
  subject.storage.reserve(text.size());
  subject.sizes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = ReadUtf8(text);
    std::size_t size = 1;
    auto byte = static_cast<unsigned>(text[0]);
    if (character.state != Utf8State::kValid) {
      byte = 0x80u + static_cast<unsigned>(CharacterClass::kSymbol);
    } else if (character.size > 1) {
      size = character.size;
      byte = 0x80u + static_cast<unsigned>(ClassOf(character.code)) +
             (IsCjk(character.code) ? kCjkBit : 0);
    }
    subject.storage.push_back(static_cast<char>(byte));
    subject.sizes.push_back(static_cast<std::uint8_t>(size));
    text.remove_prefix(size);
  }
  subject.classes = subject.storage;
}

}  // namespace

struct Pretokenizer::Stage {
  explicit Stage(std::string_view expression) {
    const std::string expanded = Expand(expression);
    int error = 0;
    PCRE2_SIZE offset = 0;
    code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expanded.data()), expanded.size(), 0, &error,
                         &offset, nullptr);
    FORETOKEN_CHECK(code != nullptr);
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without a JIT the interpreter is used
  }
  ~Stage() { pcre2_code_free(code); }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Appends the lengths of the parts of `text`. After an error of PCRE2 (a match limit) the rest is
  // one part.
  void Split(std::string_view text, pcre2_match_data* match,
             std::vector<std::uint32_t>& parts) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match);
    std::size_t done = 0;
    while (done < text.size()) {
      const int found = pcre2_match(code, subject, text.size(), done, 0, match, nullptr);
      if (found <= 0 || bounds[1] == bounds[0]) break;
      if (bounds[0] > done) parts.push_back(static_cast<std::uint32_t>(bounds[0] - done));
      parts.push_back(static_cast<std::uint32_t>(bounds[1] - bounds[0]));
      done = bounds[1];
    }
    if (done < text.size()) parts.push_back(static_cast<std::uint32_t>(text.size() - done));
  }

  pcre2_code* code = nullptr;
};

Pattern FindPattern(std::string_view name) {
  for (const NamedPattern& named : kPatterns) {
    if (named.name == name) return named.pattern;
  }
  Pattern fallback = {kDefault};
  fallback.known = false;
  return fallback;
}

Pretokenizer::Pretokenizer(const Pattern& pattern) {
  for (const std::string_view expression : pattern.stages) {
    stages_.push_back(std::make_unique<Stage>(expression));
  }
}

Pretokenizer::~Pretokenizer() = default;

std::vector<std::uint32_t> Pretokenizer::Split(std::string_view text) const {
  Subject subject;
  Classify(text, subject);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
  FORETOKEN_CHECK(match != nullptr);

  std::vector<std::uint32_t> parts;
  if (!text.empty()) parts.push_back(static_cast<std::uint32_t>(subject.classes.size()));
  std::vector<std::uint32_t> finer;
  for (const auto& stage : stages_) {
    finer.clear();
    finer.reserve(parts.size());
    std::size_t at = 0;
    for (const std::uint32_t length : parts) {
      stage->Split(subject.classes.substr(at, length), match.get(), finer);
      at += length;
    }
    parts.swap(finer);
  }
  if (subject.sizes.empty()) return parts;

  const std::uint8_t* size = subject.sizes.data();
  for (std::uint32_t& part : parts) {
    const std::uint32_t n_characters = part;
    part = 0;
    for (std::uint32_t i = 0; i < n_characters; ++i) part += *size++;
  }
  return parts;
}

}  // namespace foretoken::text
