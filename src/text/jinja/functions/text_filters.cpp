// SPDX-License-Identifier: Apache-2.0
// The filters whose results are texts.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/attributes.h"
#include "text/jinja/functions/filters.h"
#include "text/jinja/functions/methods.h"
#include "text/jinja/values/arithmetic.h"
#include "text/jinja/values/json_text.h"
#include "text/jinja/values/printf_format.h"

namespace foretoken::text::jinja {
namespace {

// The input as a text; markup stays markup.
TextObject SoftText(const FilterCall& call) {
  const TextObject* const object = call.input.text_object();
  return {StrOf(call.budget(), call.input), object != nullptr && object->markup};
}

// The filters that are methods of texts.
Result<Value> ByMethod(const FilterCall& call) {
  const TextObject text = SoftText(call);
  const std::string_view method = call.name == "trim" ? "strip" : call.name;
  return CallTextMethod(call.environment, text, method, call.arguments);
}

Result<Value> TitleCase(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  const TextObject text = SoftText(call);
  constexpr CharactersView kBreaks = U"-({[<";
  Characters out;
  CharactersView rest = text.characters;
  while (!rest.empty()) {
    const auto breaks = [&](char32_t c) {
      return IsSpace(c) || kBreaks.find(CodeOf(c)) != kNowhere;
    };
    std::size_t size = 1;
    while (size < rest.size() && breaks(rest[size]) == breaks(rest[0])) ++size;
    out += Upper(rest.substr(0, 1)) + Lower(rest.substr(1, size - 1));
    rest.remove_prefix(size);
  }
  return TextValue(call.budget(), std::move(out), text.markup);
}

Result<Value> ReplaceText(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"old", "new", "count"}, 2));
  FORETOKEN_TRY(const std::int64_t most, bound.Integer(2, -1));
  FORETOKEN_TRY(Characters out,
                Replaced(call.environment, StrOf(call.budget(), call.input),
                         StrOf(call.budget(), bound[0]), StrOf(call.budget(), bound[1]), most));
  return TextValue(call.budget(), std::move(out));
}

Result<Value> Indent(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"width", "first", "blank"}));
  if (!call.input.IsText())
    return InvalidArgument(fmt::format("indent: '{}' is not a text", TypeName(call.input)));
  Characters space;
  if (bound.Has(0) && bound[0].IsText()) {
    space = bound[0].text();
  } else {
    FORETOKEN_TRY(const std::int64_t width, bound.Integer(0, 4));
    const auto n = static_cast<std::size_t>(std::max<std::int64_t>(0, width));
    FORETOKEN_CHECK_OK(call.budget().Admit(n, sizeof(char32_t)));
    space.assign(n, U' ');
  }
  const Characters text = call.input.text() + U'\n';
  const List<CharactersView> lines = LinesOf(text);
  FORETOKEN_CHECK_OK(call.budget().Admit(lines.size(), (space.size() + 1) * sizeof(char32_t)));
  call.budget().Spend(text.size() + lines.size() * space.size());
  const bool blank = bound.IsTrueAt(2);
  Characters out = bound.IsTrueAt(1) ? space : Characters();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out += U'\n';
    if (i > 0 && (blank || !lines[i].empty())) out += space;
    out += lines[i];
  }
  return TextValue(call.budget(), std::move(out), call.input.text_object()->markup);
}

Result<Value> Join(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"d", "attribute"}));
  FORETOKEN_TRY(const Values items, ItemsOf(call.budget(), call.input));
  const Characters between = bound.Has(0) ? StrOf(call.budget(), bound[0]) : Characters();
  Characters out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    FORETOKEN_TRY(const Value value, PathOf(call.environment, items[i], bound[1]));
    const Characters item = StrOf(call.budget(), value);
    FORETOKEN_CHECK_OK(call.budget().Admit(item.size() + between.size(), sizeof(char32_t)));
    call.budget().SeeOutput(out.size());
    if (i > 0) out += between;
    out += item;
  }
  return TextValue(call.budget(), std::move(out));
}

Result<Value> Center(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"width"}));
  const Value width = bound.Has(0) ? bound[0] : Value(std::int64_t{80});
  return CallTextMethod(call.environment, SoftText(call), "center", {{width}, {}});
}

Result<Value> Format(const FilterCall& call) {
  const auto& [positional, named] = call.arguments;
  if (!positional.empty() && !named.empty())
    return InvalidArgument("format: it takes arguments with names or without, not both");
  Value arguments;
  if (!named.empty()) {
    DictionaryBuilder members(call.budget());
    for (const auto& [name, value] : named) members.Set(name, value);
    arguments = members.Take();
  } else {
    arguments = ListValue(call.budget(), positional, SequenceKind::kTuple);
  }
  const TextObject text = SoftText(call);
  FORETOKEN_TRY(Characters out, FormatByPercent(call.budget(), text.characters, arguments));
  return TextValue(call.budget(), std::move(out), text.markup);
}

Result<Value> Truncate(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"length", "killwords", "end", "leeway"}));
  FORETOKEN_TRY(const std::int64_t length, bound.Integer(0, 255));
  FORETOKEN_TRY(const std::int64_t leeway, bound.Integer(3, 5));
  const Characters dots = U"...";
  FORETOKEN_TRY(const Characters* const end, bound.Text(2, &dots));
  const auto end_size = static_cast<std::int64_t>(end->size());
  if (length < end_size)
    return InvalidArgument(fmt::format("expected length >= {}, got {}", end_size, length));
  if (leeway < 0) return InvalidArgument(fmt::format("expected leeway >= 0, got {}", leeway));
  const auto size = LengthOf(call.input);
  if (!size)
    return InvalidArgument(fmt::format("object of type '{}' has no len()", TypeName(call.input)));
  if (static_cast<std::int64_t>(*size) <= length + leeway) return call.input;
  if (!call.input.IsText())
    return InvalidArgument(fmt::format("truncate: '{}' is not a text", TypeName(call.input)));
  const Characters& text = call.input.text();
  CharactersView cut = CharactersView(text).substr(0, static_cast<std::size_t>(length - end_size));
  call.budget().Spend(cut.size());
  if (!bound.IsTrueAt(1)) {
    const std::size_t space = FindLastText(cut, U" ");
    if (space != kNowhere) cut = cut.substr(0, space);
  }
  return TextValue(call.budget(), Characters(cut) + *end);
}

Result<Value> ToString(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  if (call.input.IsText()) return call.input;
  return TextValue(call.budget(), StrOf(call.budget(), call.input));
}

Result<Value> Safe(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  return TextValue(call.budget(), StrOf(call.budget(), call.input), true);
}

Result<Value> Escape(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  const TextObject* const object = call.input.text_object();
  if (object != nullptr && object->markup && call.name != "forceescape") return call.input;
  const Characters text = StrOf(call.budget(), call.input);
  FORETOKEN_CHECK_OK(call.budget().Admit(text.size(), 6 * sizeof(char32_t)));
  return TextValue(call.budget(), Escaped(text), true);
}

// What transformers gives templates: json.dumps() without escapes for other alphabets.
Result<Value> ToJsonText(const FilterCall& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments,
                            {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style{.ensure_ascii = bound.IsTrueAt(0), .sort_keys = bound.IsTrueAt(3)};
  if (bound.Has(1) && bound[1].IsText()) {
    style.indent = bound[1].text();
  } else if (bound.Has(1) && !bound[1].IsNone()) {
    FORETOKEN_TRY(const std::int64_t width, bound.Integer(1, 0));
    if (width > 1000)
      return InvalidArgument("tojson: an indent of more than 1000 is not supported");
    style.indent = Characters(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), U' ');
  }
  if (style.indent) style.item_separator = U",";
  if (bound.Has(2) && !bound[2].IsNone()) {
    FORETOKEN_TRY(const Values separators, ItemsOf(call.budget(), bound[2]));
    if (separators.size() != 2 || !separators[0].IsText() || !separators[1].IsText())
      return InvalidArgument("tojson: separators are not two texts");
    style.item_separator = separators[0].text();
    style.key_separator = separators[1].text();
  }
  FORETOKEN_TRY(Characters out, ToJson(call.budget(), call.input, style));
  return TextValue(call.budget(), std::move(out));
}

Result<Value> WordCount(const FilterCall& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  std::int64_t count = 0;
  bool inside = false;
  for (const char32_t c : StrOf(call.budget(), call.input)) {
    const char32_t code = CodeOf(c);
    const bool word = code == U'_' || IsAlphanumeric({&code, 1});
    count += word && !inside;
    inside = word;
  }
  return Value(count);
}

}  // namespace

std::vector<FilterRow> TextFilters() {
  return {{"capitalize", ByMethod}, {"lower", ByMethod},    {"upper", ByMethod},
          {"trim", ByMethod},       {"title", TitleCase},   {"replace", ReplaceText},
          {"indent", Indent},       {"join", Join},         {"center", Center},
          {"format", Format},       {"truncate", Truncate}, {"string", ToString},
          {"safe", Safe},           {"escape", Escape},     {"e", Escape},
          {"forceescape", Escape},  {"tojson", ToJsonText}, {"wordcount", WordCount}};
}

}  // namespace foretoken::text::jinja
