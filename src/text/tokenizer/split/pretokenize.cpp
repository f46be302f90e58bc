// SPDX-License-Identifier: Apache-2.0
// The expressions only refer to ASCII characters, to Unicode classes and to zones. So a text is
// first rewritten to one byte per character: ASCII as it is, anything else as 0x80 + its class +
// 0x10 * its zone. PCRE2 then matches plain bytes. That is faster than its UTF mode, works for
// invalid input, and uses one set of Unicode tables (utf8proc's) for all patterns.
#include "text/tokenizer/split/pretokenize.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/work_count.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr unsigned kZones = 8;

constexpr unsigned Bits(std::initializer_list<CharacterClass> classes) {
  unsigned bits = 0;
  for (const CharacterClass one : classes) bits |= 1u << static_cast<unsigned>(one);
  return bits;
}

using enum CharacterClass;
constexpr unsigned kLetters = Bits({kUpper, kLower, kTitle, kModifier, kOtherLetter});

// A named set of characters: its ASCII part, and its classes beyond ASCII.
struct NamedSet {
  std::string_view name;
  std::string_view ascii;
  unsigned classes;
  bool all_zones = true;
};
constexpr NamedSet kSets[] = {
    {R"(\p{L})", "A-Za-z", kLetters},
    {R"(\p{L0})", "A-Za-z", kLetters, false},
    {R"(\p{N})", "0-9", Bits({kNumber})},
    {R"(\blank)", R"(\t\x0B\x0C )", Bits({kWhitespace})},  // but for \r and \n
    {R"(\s)", R"(\t-\r )", Bits({kWhitespace})},
    {R"(\p{P})", R"(!-#%-*,-/:;?@\[-\]_{})", Bits({kPunctuation})},
    {R"(\p{S})", R"($+<->^`|~)", Bits({kSymbol})},
    {R"(\p{M})", "", Bits({kMark})},
    // Case in ASCII only.
    {R"(\p{upper})", "A-Z", kLetters},
    {R"(\p{lower})", "a-z", kLetters},
    // The case of every letter; marks and letters without case are both.
    {R"(\p{Upper})", "A-Z", Bits({kUpper, kTitle, kModifier, kOtherLetter, kMark})},
    {R"(\p{Lower})", "a-z", Bits({kLower, kModifier, kOtherLetter, kMark})},
};

constexpr std::pair<std::string_view, std::string_view> kSharedAlternatives[] = {
    {R"(\contraction)", R"('[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"},
    {R"(\space)", R"([\s]*[\r\n]+|[\s]+(?![^\s])|[\s]+)"}};

std::string Members(const NamedSet& set) {
  std::string members(set.ascii);
  for (unsigned zone = 0; zone < (set.all_zones ? kZones : 1); ++zone) {
    for (unsigned one = 0; one < 16; ++one) {
      if ((set.classes >> one & 1) != 0)
        members += fmt::format("\\x{:02X}", 0x80 + 16 * zone + one);
    }
  }
  return members;
}

// "\z{13}" to the bytes of all characters of zones 1 and 3.
void ExpandZones(std::string& expression) {
  constexpr std::string_view kOpening = R"(\z{)";
  for (std::size_t at; (at = expression.find(kOpening)) != std::string::npos;) {
    const std::size_t end = expression.find('}', at);
    std::string members;
    for (std::size_t i = at + kOpening.size(); i < end; ++i) {
      const unsigned first = 0x80 + 16 * static_cast<unsigned>(expression[i] - '0');
      members += fmt::format("\\x{:02X}-\\x{:02X}", first, first + 15);
    }
    expression.replace(at, end + 1 - at, members);
  }
}

std::string Expand(std::string_view expression) {
  std::string expanded(expression);
  for (const auto& [name, text] : kSharedAlternatives) expanded = ReplaceAll(expanded, name, text);
  for (const NamedSet& set : kSets) expanded = ReplaceAll(expanded, set.name, Members(set));
  ExpandZones(expanded);
  return expanded;
}

// The subject of the expressions and, unless it is all ASCII, the number of bytes of each of its
// characters.
struct Subject {
  std::string_view classes;
  std::string storage;
  std::vector<std::uint8_t> sizes;
};

bool AllAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return IsAscii(c); });
}

}  // namespace

// The ranges of a pattern as one sorted list: characters from starts[i] to starts[i + 1] - 1 have
// the bits bits[i].
struct Pretokenizer::Zones {
  explicit Zones(std::span<const ZoneRange> ranges) {
    starts.push_back(0);
    for (const ZoneRange& range : ranges) {
      starts.push_back(range.first);
      starts.push_back(range.last + 1);
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
    for (const char32_t start : starts) {
      unsigned all = 0;
      for (const ZoneRange& range : ranges) {
        if (range.first <= start && start <= range.last) all |= range.bits;
      }
      bits.push_back(all);
    }
  }

  unsigned Of(char32_t code) const {
    const auto after = std::upper_bound(starts.begin(), starts.end(), code);
    return bits[static_cast<std::size_t>(after - starts.begin()) - 1];
  }

  std::vector<char32_t> starts;
  std::vector<unsigned> bits;
};

struct Pretokenizer::Stage {
  explicit Stage(const SplitStage& stage) : cut(stage.cut) {
    const std::string expanded = Expand(stage.expression);
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
    for (std::size_t at = 0; at < text.size();) {
      const int found = pcre2_match(code, subject, text.size(), at, 0, match, nullptr);
      if (found <= 0 || bounds[1] == bounds[0]) break;
      CountWork(bounds[1] - at);
      if (cut == Cut::kMatch) {
        if (bounds[0] > done) AddPart(bounds[0], done, parts);
        AddPart(bounds[1], done, parts);
      } else {
        const std::size_t rest = (bounds[1] - bounds[0]) % 3;
        const std::size_t first = bounds[0] + (rest == 0 && cut == Cut::kThreesEnd ? 3 : rest);
        for (std::size_t end = first; end < bounds[1]; end += 3) {
          if (end > done) AddPart(end, done, parts);
        }
        if (cut == Cut::kThreesEnd) AddPart(bounds[1], done, parts);
      }
      at = bounds[1];
    }
    if (done < text.size()) AddPart(text.size(), done, parts);
  }

  static void AddPart(std::size_t end, std::size_t& done, std::vector<std::uint32_t>& parts) {
    parts.push_back(static_cast<std::uint32_t>(end - done));
    done = end;
  }

  pcre2_code* code = nullptr;
  Cut cut;
};

namespace {

template <typename Zones>
void Classify(std::string_view text, const Zones* zones, Subject& subject) {
  if (AllAscii(text)) {
    subject.classes = text;
    return;
  }
  subject.storage.reserve(text.size());
  subject.sizes.reserve(text.size());
  while (!text.empty()) {
    CountWork();
    const Utf8Character character = ReadUtf8(text);
    std::size_t size = 1;
    auto byte = static_cast<unsigned>(text[0]);
    if (character.state != Utf8State::kValid) {
      byte = 0x80u + static_cast<unsigned>(CharacterClass::kSymbol);
    } else if (character.size > 1) {
      size = character.size;
      const CharacterClass kind = ClassOf(character.code);
      byte = 0x80u + static_cast<unsigned>(kind);
      if (zones != nullptr && kind != kWhitespace) byte += 16 * zones->Of(character.code);
    }
    subject.storage.push_back(static_cast<char>(byte));
    subject.sizes.push_back(static_cast<std::uint8_t>(size));
    text.remove_prefix(size);
  }
  subject.classes = subject.storage;
}

}  // namespace

Pretokenizer::Pretokenizer(const SplitRules& rules, bool exact) {
  if (!rules.zones.empty()) zones_ = std::make_unique<Zones>(rules.zones);
  for (const SplitStage& stage : exact && !rules.exact.empty() ? rules.exact : rules.stages) {
    stages_.push_back(std::make_unique<Stage>(stage));
  }
}

Pretokenizer::~Pretokenizer() = default;

std::vector<std::uint32_t> Pretokenizer::Split(std::string_view text) const {
  Subject subject;
  Classify(text, zones_.get(), subject);
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
