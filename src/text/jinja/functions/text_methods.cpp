// SPDX-License-Identifier: Apache-2.0
// The methods of texts.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/methods.h"
#include "text/jinja/values/printf_format.h"

namespace foretoken::text::jinja {
namespace {

// One call of a method.
struct Call {
  Environment& environment;
  const TextObject& self;
  std::string_view name;
  const Arguments& arguments;

  const Characters& text() const { return self.characters; }
  Value Text(Characters made) const {
    return TextValue(environment.budget, std::move(made), self.markup);
  }
  Result<Value> Texts(const List<CharactersView>& parts,
                      SequenceKind kind = SequenceKind::kList) const {
    Values items;
    items.reserve(parts.size());
    for (const CharactersView part : parts) {
      FORETOKEN_CHECK_OK(environment.budget.status());
      items.push_back(Text(Characters(part)));
    }
    return ListValue(environment.budget, std::move(items), kind);
  }
};

Result<Value> Strip(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"chars"}));
  FORETOKEN_TRY(const Characters* const set, bound.Text(0, nullptr));
  // The set is sorted, and searched for each character.
  if (set != nullptr) call.environment.budget.Spend(32 * set->size());
  const CharactersView view = set == nullptr ? CharactersView() : CharactersView(*set);
  const Ends ends = call.name == "strip"    ? Ends::kBoth
                    : call.name == "lstrip" ? Ends::kLeft
                                            : Ends::kRight;
  const CharactersView left = Stripped(call.text(), ends, set == nullptr ? nullptr : &view);
  const std::size_t removed = call.text().size() - left.size();
  call.environment.budget.Spend(set == nullptr ? removed : 4 * removed);
  return call.Text(Characters(left));
}

// The part of the text that the arguments `start` and `end` leave; nothing if start is behind it.
Result<std::optional<std::pair<std::size_t, std::size_t>>> Window(const Call& call,
                                                                  const Bound& bound) {
  const auto n = static_cast<std::int64_t>(call.text().size());
  FORETOKEN_TRY(std::int64_t begin, bound.Integer(1, 0));
  FORETOKEN_TRY(std::int64_t end, bound.Integer(2, n));
  if (begin < 0) begin = std::max<std::int64_t>(0, begin + n);
  if (end < 0) end = std::max<std::int64_t>(0, end + n);
  end = std::min(end, n);
  if (begin > end) return std::nullopt;
  return std::pair(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
}

Result<Value> StartsOrEnds(const Call& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"text", "start", "end"}, 1));
  FORETOKEN_TRY(const auto window, Window(call, bound));
  Values parts = {bound[0]};
  const Sequence* const tuple = bound[0].sequence();
  if (tuple != nullptr && tuple->kind == SequenceKind::kTuple) parts = tuple->items;
  for (const Value& part : parts) {
    if (!part.IsText())
      return InvalidArgument(fmt::format("{} first arg must be str or a tuple of str, not {}",
                                         call.name, TypeName(bound[0])));
    if (!window) continue;
    call.environment.budget.Spend(std::min(part.text().size(), call.text().size()));
    const CharactersView view =
        CharactersView(call.text()).substr(window->first, window->second - window->first);
    if (call.name == "startswith" ? BeginsWith(view, part.text()) : EndsWith(view, part.text()))
      return Value(true);
  }
  return Value(false);
}

Result<Value> Find(const Call& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"text", "start", "end"}, 1));
  FORETOKEN_TRY(const auto window, Window(call, bound));
  if (!bound[0].IsText())
    return InvalidArgument(fmt::format("must be str, not {}", TypeName(bound[0])));
  const Characters& part = bound[0].text();
  call.environment.budget.Spend(call.text().size());
  std::size_t found = kNowhere;
  if (window) {
    const CharactersView view = CharactersView(call.text()).substr(0, window->second);
    const bool last = call.name == "rfind" || call.name == "rindex";
    found = last ? FindLastText(view, part) : FindText(view, part, window->first);
    if (last && found != kNowhere && found < window->first) found = kNowhere;
  }
  if (found != kNowhere) return Value(static_cast<std::int64_t>(found));
  if (call.name == "index" || call.name == "rindex") return InvalidArgument("substring not found");
  return Value(std::int64_t{-1});
}

Result<Value> Count(const Call& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"text", "start", "end"}, 1));
  FORETOKEN_TRY(const auto window, Window(call, bound));
  if (!bound[0].IsText())
    return InvalidArgument(fmt::format("must be str, not {}", TypeName(bound[0])));
  if (!window) return Value(std::int64_t{0});
  const Characters& part = bound[0].text();
  call.environment.budget.Spend(call.text().size());
  if (part.empty()) return Value(static_cast<std::int64_t>(window->second - window->first + 1));
  const CharactersView view = CharactersView(call.text()).substr(0, window->second);
  std::int64_t count = 0;
  for (std::size_t at = window->first; (at = FindText(view, part, at)) != kNowhere;
       at += part.size())
    ++count;
  return Value(count);
}

List<CharactersView> SplitAtSpace(CharactersView text, std::int64_t most, bool from_right) {
  List<CharactersView> parts;
  const Ends near = from_right ? Ends::kRight : Ends::kLeft;
  text = Stripped(text, near);
  while (!text.empty()) {
    if (most == 0) {
      parts.push_back(Stripped(text, from_right ? Ends::kLeft : Ends::kRight));
      parts.back() = from_right ? Stripped(text, Ends::kRight) : text;
      break;
    }
    --most;
    std::size_t size = 0;
    while (size < text.size() && !IsSpace(from_right ? text[text.size() - 1 - size] : text[size]))
      ++size;
    parts.push_back(from_right ? text.substr(text.size() - size) : text.substr(0, size));
    from_right ? text.remove_suffix(size) : text.remove_prefix(size);
    text = Stripped(text, near);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

// The separator is not empty.
List<CharactersView> SplitAt(CharactersView text, CharactersView separator, std::int64_t most) {
  List<CharactersView> parts;
  for (std::size_t at = 0; most != 0 && (at = FindText(text, separator)) != kNowhere; --most) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.push_back(text);
  return parts;
}

List<CharactersView> SplitAtFromRight(CharactersView text, CharactersView separator,
                                      std::int64_t most) {
  List<CharactersView> parts;
  for (; most != 0; --most) {
    const std::size_t at = FindLastText(text, separator);
    if (at == kNowhere) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Result<Value> Split(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"sep", "maxsplit"}));
  FORETOKEN_TRY(const Characters* const separator, bound.Text(0, nullptr));
  FORETOKEN_TRY(const std::int64_t most, bound.Integer(1, -1));
  if (separator != nullptr && separator->empty()) return InvalidArgument("empty separator");
  const bool from_right = call.name == "rsplit";
  call.environment.budget.Spend(call.text().size());
  if (separator == nullptr) return call.Texts(SplitAtSpace(call.text(), most, from_right));
  return call.Texts(from_right ? SplitAtFromRight(call.text(), *separator, most)
                               : SplitAt(call.text(), *separator, most));
}

Result<Value> Partition(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"sep"}, 1));
  FORETOKEN_TRY(const Characters* const separator, bound.Text(0, nullptr));
  if (separator == nullptr) return InvalidArgument("must be str, not NoneType");
  if (separator->empty()) return InvalidArgument("empty separator");
  const bool last = call.name == "rpartition";
  const CharactersView text = call.text();
  call.environment.budget.Spend(text.size());
  const std::size_t at = last ? FindLastText(text, *separator) : FindText(text, *separator);
  List<CharactersView> parts = {text, {}, {}};
  if (at == kNowhere && last)
    parts = {{}, {}, text};
  else if (at != kNowhere)
    parts = {text.substr(0, at), *separator, text.substr(at + separator->size())};
  return call.Texts(parts, SequenceKind::kTuple);
}

Result<Value> SplitLines(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"keepends"}));
  call.environment.budget.Spend(call.text().size());
  return call.Texts(LinesOf(call.text(), bound.IsTrueAt(0)));
}

Result<Value> Replace(const Call& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"old", "new", "count"}, 2));
  FORETOKEN_TRY(const std::int64_t most, bound.Integer(2, -1));
  for (std::size_t i = 0; i < 2; ++i)
    if (!bound[i].IsText())
      return InvalidArgument(
          fmt::format("replace() argument {} must be str, not {}", i + 1, TypeName(bound[i])));
  FORETOKEN_TRY(Characters made,
                Replaced(call.environment, call.text(), bound[0].text(), bound[1].text(), most));
  return call.Text(std::move(made));
}

Result<Value> Join(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"iterable"}, 1));
  FORETOKEN_TRY(const Values items, ItemsOf(call.environment.budget, bound[0]));
  Characters out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!items[i].IsText())
      return InvalidArgument(
          fmt::format("sequence item {}: expected str instance, {} found", i, TypeName(items[i])));
    FORETOKEN_CHECK_OK(call.environment.budget.Admit(items[i].text().size() + call.text().size(),
                                                     sizeof(char32_t)));
    if (i > 0) out += call.text();
    out += items[i].text();
    call.environment.budget.SeeOutput(out.size());
  }
  return call.Text(std::move(out));
}

Result<Value> Pad(const Call& call) {
  FORETOKEN_TRY(const Bound bound,
                Bound::Make(call.name, call.arguments, {"width", "fillchar"}, 1));
  FORETOKEN_TRY(const std::int64_t width, bound.Integer(0, 0));
  const Characters space = U" ";
  FORETOKEN_TRY(const Characters* const fill, bound.Text(1, &space));
  if (fill->size() != 1)
    return InvalidArgument("The fill character must be exactly one character long");
  const auto n = static_cast<std::int64_t>(call.text().size());
  const auto pad = static_cast<std::size_t>(std::max<std::int64_t>(0, width - n));
  FORETOKEN_CHECK_OK(call.environment.budget.Admit(pad, sizeof(char32_t)));
  // str.center() puts the odd one to the left where the width is odd.
  const std::size_t left = call.name == "rjust" ? pad
                           : call.name == "ljust"
                               ? 0
                               : pad / 2 + (pad & static_cast<std::size_t>(width) & 1);
  return call.Text(Characters(left, (*fill)[0]) + call.text() + Characters(pad - left, (*fill)[0]));
}

Result<Value> ZeroFill(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"width"}, 1));
  FORETOKEN_TRY(const std::int64_t width, bound.Integer(0, 0));
  const auto n = static_cast<std::int64_t>(call.text().size());
  const auto pad = static_cast<std::size_t>(std::max<std::int64_t>(0, width - n));
  FORETOKEN_CHECK_OK(call.environment.budget.Admit(pad, sizeof(char32_t)));
  Characters out = call.text();
  const bool sign = !out.empty() && (CodeOf(out[0]) == U'-' || CodeOf(out[0]) == U'+');
  out.insert(sign ? 1 : 0, pad, U'0');
  return call.Text(std::move(out));
}

Result<Value> RemoveEnd(const Call& call) {
  FORETOKEN_TRY(const Bound bound, Bound::Make(call.name, call.arguments, {"text"}, 1));
  if (!bound[0].IsText())
    return InvalidArgument(
        fmt::format("{}() argument must be str, not {}", call.name, TypeName(bound[0])));
  const Characters& part = bound[0].text();
  CharactersView text = call.text();
  call.environment.budget.Spend(part.size());
  if (call.name == "removeprefix" && BeginsWith(text, part))
    text.remove_prefix(part.size());
  else if (call.name == "removesuffix" && EndsWith(text, part))
    text.remove_suffix(part.size());
  return call.Text(Characters(text));
}

Result<Value> Format(const Call& call) {
  FORETOKEN_TRY(Characters made, FormatByBraces(call.environment.budget, call.text(),
                                                call.arguments.positional, call.arguments.named));
  return call.Text(std::move(made));
}

Result<Value> ChangeCase(const Call& call) {
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  call.environment.budget.Spend(call.text().size());
  if (call.name == "upper") return call.Text(Upper(call.text()));
  if (call.name == "lower") return call.Text(Lower(call.text()));
  return call.Text(call.name == "title" ? Title(call.text()) : Capitalized(call.text()));
}

Result<Value> IsKind(const Call& call) {
  struct Row {
    std::string_view name;
    bool (*holds)(CharactersView);
  };
  constexpr Row kRows[] = {
      {"isalnum", IsAlphanumeric}, {"isalpha", IsAlphabetic},      {"isdecimal", IsDecimal},
      {"isdigit", IsDigit},        {"isidentifier", IsIdentifier}, {"islower", IsLower},
      {"isspace", IsWhiteSpace},   {"istitle", IsTitle},           {"isupper", IsUpper}};
  FORETOKEN_CHECK_OK(Bound::Make(call.name, call.arguments, {}));
  call.environment.budget.Spend(call.text().size());
  for (const Row& row : kRows)
    if (row.name == call.name) return Value(row.holds(call.text()));
  return Fail(ErrorCode::kUnsupported,
              fmt::format("the method '{}' is not supported; write it without", call.name));
}

struct MethodRow {
  std::string_view name;
  Result<Value> (*call)(const Call&);
};
constexpr MethodRow kMethods[] = {{"strip", Strip},
                                  {"lstrip", Strip},
                                  {"rstrip", Strip},
                                  {"split", Split},
                                  {"rsplit", Split},
                                  {"splitlines", SplitLines},
                                  {"partition", Partition},
                                  {"rpartition", Partition},
                                  {"replace", Replace},
                                  {"startswith", StartsOrEnds},
                                  {"endswith", StartsOrEnds},
                                  {"join", Join},
                                  {"find", Find},
                                  {"rfind", Find},
                                  {"index", Find},
                                  {"rindex", Find},
                                  {"count", Count},
                                  {"center", Pad},
                                  {"ljust", Pad},
                                  {"rjust", Pad},
                                  {"zfill", ZeroFill},
                                  {"removeprefix", RemoveEnd},
                                  {"removesuffix", RemoveEnd},
                                  {"format", Format},
                                  {"upper", ChangeCase},
                                  {"lower", ChangeCase},
                                  {"title", ChangeCase},
                                  {"capitalize", ChangeCase}};

}  // namespace

Result<Characters> Replaced(Environment& environment, CharactersView text, CharactersView from,
                            CharactersView to, std::int64_t most) {
  Characters out;
  environment.budget.Spend(text.size() + from.size());
  if (from.empty()) {
    FORETOKEN_CHECK_OK(
        environment.budget.Admit(text.size() + 1, (to.size() + 1) * sizeof(char32_t)));
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (most < 0 || static_cast<std::int64_t>(i) < most) out += to;
      if (i < text.size()) out += text[i];
    }
    return out;
  }
  const List<CharactersView> parts = SplitAt(text, from, most);
  FORETOKEN_CHECK_OK(environment.budget.Admit(parts.size(), (to.size() + 1) * sizeof(char32_t)));
  environment.budget.Spend(parts.size() * to.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += to;
    out += parts[i];
  }
  return out;
}

Result<Value> CallTextMethod(Environment& environment, const TextObject& self,
                             std::string_view name, const Arguments& arguments) {
  const Call call{environment, self, name, arguments};
  for (const MethodRow& row : kMethods)
    if (row.name == name) return row.call(call);
  return IsKind(call);
}

}  // namespace foretoken::text::jinja
