// SPDX-License-Identifier: Apache-2.0
// Values as texts: str() and repr().
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <string>

#include "text/jinja/values/loop.h"
#include "text/jinja/values/name_table.h"

namespace foretoken::text::jinja {
namespace {

void Append(Characters& out, std::string_view ascii) {
  for (const char c : ascii) out += static_cast<char32_t>(static_cast<unsigned char>(c));
}

void AppendQuotedCharacter(char32_t character, char32_t quote, Characters& out) {
  const char32_t code = CodeOf(character);
  if (code == quote || code == '\\') {
    out += U'\\';
    out += character;
  } else if (code == '\n') {
    Append(out, "\\n");
  } else if (code == '\r') {
    Append(out, "\\r");
  } else if (code == '\t') {
    Append(out, "\\t");
  } else if (IsPrintable(character)) {
    out += character;
  } else {
    const auto number = static_cast<unsigned>(code);
    Append(out, code < 0x100     ? fmt::format("\\x{:02x}", number)
                : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                                 : fmt::format("\\U{:08x}", number));
  }
}

void AppendQuoted(CharactersView text, Characters& out) {
  const bool single = FindText(text, U"'") != kNowhere;
  const char32_t quote = single && FindText(text, U"\"") == kNowhere ? U'"' : U'\'';
  out += quote;
  for (const char32_t c : text) AppendQuotedCharacter(c, quote, out);
  out += quote;
}

void AppendRepr(Budget& budget, const Value& value, int depth, Characters& out);

void AppendItems(Budget& budget, const Values& items, int depth, Characters& out) {
  bool first = true;
  for (const Value& item : items) {
    if (budget.over()) return;
    if (!first) Append(out, ", ");
    first = false;
    AppendRepr(budget, item, depth, out);
  }
}

void AppendSequence(Budget& budget, const Sequence& sequence, int depth, Characters& out) {
  switch (sequence.kind) {
    case SequenceKind::kGenerator:
      return Append(out, "<generator object>");
    case SequenceKind::kRange:
      return Append(out, sequence.step == 1
                             ? fmt::format("range({}, {})", sequence.start, sequence.stop)
                             : fmt::format("range({}, {}, {})", sequence.start, sequence.stop,
                                           sequence.step));
    case SequenceKind::kTuple:
      out += U'(';
      AppendItems(budget, sequence.items, depth, out);
      return Append(out, sequence.items.size() == 1 ? ",)" : ")");
    case SequenceKind::kKeys:
      Append(out, "dict_keys(");
      break;
    case SequenceKind::kValues:
      Append(out, "dict_values(");
      break;
    case SequenceKind::kItems:
      Append(out, "dict_items(");
      break;
    case SequenceKind::kList:
      break;
  }
  out += U'[';
  AppendItems(budget, sequence.items, depth, out);
  Append(out, sequence.kind == SequenceKind::kList ? "]" : "])");
}

void AppendDictionary(Budget& budget, const Dictionary& dictionary, int depth, Characters& out) {
  out += U'{';
  bool first = true;
  for (const auto& [key, member] : dictionary.items) {
    if (budget.over()) return;
    if (!first) Append(out, ", ");
    first = false;
    AppendRepr(budget, key, depth, out);
    Append(out, ": ");
    AppendRepr(budget, member, depth, out);
  }
  out += U'}';
}

void AppendNamespace(Budget& budget, const Namespace& space, int depth, Characters& out) {
  Append(out, "<Namespace {");
  bool first = true;
  for (const auto& [name, value] : space.attributes) {
    if (!first) Append(out, ", ");
    first = false;
    AppendQuoted(FromUtf8(name), out);
    Append(out, ": ");
    AppendRepr(budget, value, depth, out);
  }
  Append(out, "}>");
}

void AppendRepr(Budget& budget, const Value& value, int depth, Characters& out) {
  budget.Spend();
  budget.SeeValueDepth(depth);  // a namespace may contain itself
  budget.SeeOutput(out.size());
  if (budget.over()) return;
  if (value.IsUndefined()) return Append(out, "Undefined");
  if (value.IsNone()) return Append(out, "None");
  if (value.IsBoolean()) return Append(out, value.boolean() ? "True" : "False");
  if (value.IsInteger()) return Append(out, std::to_string(*value.integer()));
  if (value.IsFloat()) return Append(out, FloatText(value.number()));
  if (value.IsText()) {
    budget.Spend(value.text().size());
    if (!value.text_object()->markup) return AppendQuoted(value.text(), out);
    Append(out, "Markup(");
    AppendQuoted(value.text(), out);
    return Append(out, ")");
  }
  if (const Sequence* const sequence = value.sequence())
    return AppendSequence(budget, *sequence, depth + 1, out);
  if (const Dictionary* const dictionary = value.dictionary())
    return AppendDictionary(budget, *dictionary, depth + 1, out);
  if (const auto* const space = value.name_space())
    return AppendNamespace(budget, **space, depth + 1, out);
  if (const auto* const loop = value.loop())
    return Append(out, fmt::format("<LoopContext {}/{}>", (*loop)->index0 + 1, (*loop)->length()));
  Append(out, fmt::format("<{}>", TypeName(value)));
}

}  // namespace

std::string FloatText(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, number, std::chars_format::scientific).ptr;
  const std::string scientific(digits, end);
  const std::size_t e = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(e + 1));
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", scientific.substr(0, e), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  char plain[400];
  const auto last =
      std::to_chars(plain, plain + sizeof plain, number, std::chars_format::fixed).ptr;
  std::string text(plain, last);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

Characters StrOf(Budget& budget, const Value& value) {
  if (value.IsText()) {
    budget.Spend(value.text().size());
    return value.text();
  }
  if (value.IsUndefined()) return {};
  return ReprOf(budget, value);
}

Characters ReprOf(Budget& budget, const Value& value) {
  Characters out;
  AppendRepr(budget, value, 0, out);
  return out;
}

}  // namespace foretoken::text::jinja
