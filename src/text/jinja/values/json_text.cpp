// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "text/jinja/values/comparison.h"

namespace foretoken::text::jinja {
namespace {

// A number as JSON has it; Python also writes Infinity and NaN.
std::string NumberText(const Value& value) {
  if (value.IsBoolean()) return value.boolean() ? "true" : "false";
  if (value.IsInteger()) return std::to_string(*value.integer());
  const double number = value.number();
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return FloatText(number);
}

class Writer {
 public:
  Writer(Budget& budget, const JsonStyle& style) : budget_(budget), style_(style) {}

  Status Write(const Value& value, int depth) {
    budget_.Spend();
    budget_.SeeOutput(out_.size());
    FORETOKEN_CHECK_OK(budget_.status());
    if (value.IsText()) return WriteText(value.text());
    if (value.IsNone()) return Plain("null");
    if (value.IsNumber()) return Plain(NumberText(value));
    if (const Dictionary* const dictionary = value.dictionary())
      return WriteDictionary(*dictionary, depth + 1);
    const Sequence* const sequence = value.sequence();
    const bool list = sequence != nullptr && (sequence->kind == SequenceKind::kList ||
                                              sequence->kind == SequenceKind::kTuple);
    if (list) return WriteList(sequence->items, depth + 1);
    return InvalidArgument(
        fmt::format("Object of type {} is not JSON serializable", TypeName(value)));
  }

  Characters Take() { return std::move(out_); }

 private:
  Status Plain(std::string_view ascii) {
    out_ += FromUtf8(ascii);
    return {};
  }

  void Break(int depth) {
    if (!style_.indent) return;
    budget_.Spend(static_cast<std::size_t>(depth) * style_.indent->size());
    out_ += U'\n';
    for (int i = 0; i < depth; ++i) out_ += *style_.indent;
  }

  void Separate(CharactersView separator) {
    budget_.Spend(separator.size());
    out_ += separator;
  }

  Status WriteList(const Values& items, int depth) {
    if (items.empty()) return Plain("[]");
    out_ += U'[';
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) Separate(style_.item_separator);
      Break(depth);
      FORETOKEN_CHECK_OK(Write(items[i], depth));
    }
    Break(depth - 1);
    out_ += U']';
    return {};
  }

  Status WriteDictionary(const Dictionary& dictionary, int depth) {
    if (dictionary.items.empty()) return Plain("{}");
    Values keys, values;
    for (const auto& [key, member] : dictionary.items) {
      keys.push_back(key);
      values.push_back(member);
    }
    if (style_.sort_keys) {
      FORETOKEN_CHECK_OK(SortBy(budget_, keys, false, values));
      const Values unsorted = keys;
      FORETOKEN_CHECK_OK(SortBy(budget_, unsorted, false, keys));
    }
    out_ += U'{';
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i > 0) Separate(style_.item_separator);
      Break(depth);
      FORETOKEN_CHECK_OK(WriteKey(keys[i]));
      Separate(style_.key_separator);
      FORETOKEN_CHECK_OK(Write(values[i], depth));
    }
    Break(depth - 1);
    out_ += U'}';
    return {};
  }

  Status WriteKey(const Value& key) {
    if (key.IsText()) return WriteText(key.text());
    if (key.IsNone()) return Plain("\"null\"");
    if (key.IsNumber()) return Plain('"' + NumberText(key) + '"');
    return InvalidArgument(
        fmt::format("keys must be str, int, float, bool or None, not {}", TypeName(key)));
  }

  Status WriteText(CharactersView text) {
    FORETOKEN_CHECK_OK(budget_.Admit(text.size(), sizeof(char32_t)));
    out_ += U'"';
    for (const char32_t c : text) WriteCharacter(c);
    out_ += U'"';
    return {};
  }

  void WriteCharacter(char32_t character) {
    const char32_t code = CodeOf(character);
    constexpr std::u32string_view kShort = U"\b\f\n\r\t", kLetters = U"bfnrt";
    if (code == U'"' || code == U'\\') {
      out_ += U'\\';
      out_ += character;
    } else if (const std::size_t at = kShort.find(code); at != kNowhere) {
      out_ += U'\\';
      out_ += kLetters[at];
    } else if (code >= 0x10000 && style_.ensure_ascii) {
      out_ +=
          FromUtf8(fmt::format("\\u{:04x}\\u{:04x}", static_cast<unsigned>(0xD7C0 + (code >> 10)),
                               static_cast<unsigned>(0xDC00 + (code & 0x3FF))));
    } else if (code < 0x20 || (code >= 0x7F + 1 && style_.ensure_ascii)) {
      out_ += FromUtf8(fmt::format("\\u{:04x}", static_cast<unsigned>(code)));
    } else {
      out_ += character;
    }
  }

  Budget& budget_;
  const JsonStyle& style_;
  Characters out_;
};

}  // namespace

Result<Characters> ToJson(Budget& budget, const Value& value, const JsonStyle& style) {
  Writer writer(budget, style);
  FORETOKEN_CHECK_OK(writer.Write(value, 0));
  return writer.Take();
}

}  // namespace foretoken::text::jinja
