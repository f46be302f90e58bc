// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/printf_format.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "text/jinja/values/number_format.h"

namespace foretoken::text::jinja {
namespace {

// The work of a place: a number may have hundreds of digits.
constexpr std::size_t kTouchedPerPlace = 1024;

// Reads a format from its beginning.
class Scanner {
 public:
  explicit Scanner(CharactersView text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  char32_t Peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? CodeOf(text_[at_ + ahead]) : 0;
  }
  char32_t Next() { return CodeOf(text_[at_++]); }
  // Takes the next character with its mark.
  char32_t Marked() { return text_[at_++]; }
  bool Skip(char32_t c) {
    if (AtEnd() || Peek() != c) return false;
    ++at_;
    return true;
  }
  // The characters up to one of `ends`, or all the rest.
  CharactersView Until(CharactersView ends) {
    const std::size_t begin = at_;
    while (!AtEnd() && ends.find(Peek()) == kNowhere) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  Result<std::int64_t> Number(std::int64_t otherwise, std::int64_t most) {
    if (Peek() < U'0' || Peek() > U'9') return otherwise;
    std::int64_t number = 0;
    while (Peek() >= U'0' && Peek() <= U'9') {
      number = number * 10 + static_cast<std::int64_t>(Next() - U'0');
      if (number > most) return InvalidArgument(fmt::format("a format is wider than {}", most));
    }
    return number;
  }

 private:
  CharactersView text_;
  std::size_t at_ = 0;
};

// The arguments of `%`.
class PercentArguments {
 public:
  explicit PercentArguments(const Value& arguments) : all_(arguments) {
    const Sequence* const sequence = arguments.sequence();
    if (sequence != nullptr && sequence->kind == SequenceKind::kTuple) tuple_ = sequence;
  }

  Result<Value> Next() {
    const std::size_t n = tuple_ == nullptr ? 1 : tuple_->items.size();
    if (n_taken_ >= n) return InvalidArgument("not enough arguments for format string");
    ++n_taken_;
    return tuple_ == nullptr ? all_ : tuple_->items[n_taken_ - 1];
  }

  Result<Value> Named(CharactersView name) {
    const Dictionary* const dictionary = all_.dictionary();
    if (dictionary == nullptr) return InvalidArgument("format requires a mapping");
    const Value* const found = dictionary->Find(ConstantText(Characters(name)));
    if (found == nullptr)
      return InvalidArgument(fmt::format("there is no key '{}'", Shown(ToUtf8(name))));
    return *found;
  }

  bool AllTaken() const {
    if (tuple_ != nullptr) return n_taken_ >= tuple_->items.size();
    return n_taken_ >= 1 || all_.dictionary() != nullptr || all_.sequence() != nullptr;
  }

 private:
  const Value& all_;
  const Sequence* tuple_ = nullptr;
  std::size_t n_taken_ = 0;
};

Result<Place> PercentPlace(Scanner& scanner) {
  Place place;
  place.align = '>';
  for (bool more = true; more && !scanner.AtEnd();) {
    switch (scanner.Peek()) {
      case U'-':
        place.align = '<';
        break;
      case U'0':
        if (place.align != '<') place.align = '=', place.fill = U'0';
        break;
      case U'+':
        place.sign = '+';
        break;
      case U' ':
        if (place.sign != '+') place.sign = ' ';
        break;
      case U'#':
        place.alternate = true;
        break;
      default:
        more = false;
    }
    if (more) scanner.Next();
  }
  FORETOKEN_TRY(place.width, scanner.Number(0, kMostWidth));
  if (scanner.Skip(U'.')) {
    FORETOKEN_TRY(place.precision, scanner.Number(0, kMostPrecision));
  }
  while (scanner.Skip(U'h') || scanner.Skip(U'l') || scanner.Skip(U'L')) {
  }
  if (scanner.AtEnd()) return InvalidArgument("incomplete format");
  const char32_t type = scanner.Next();
  place.type = type < 0x80 ? static_cast<char>(type) : '?';
  if (place.fill == U'0' && place.align == '<') place.fill = U' ';
  return place;
}

Result<Characters> PercentNumber(Place place, const Value& value) {
  const bool whole = std::string_view("diuxXo").find(place.type) != std::string_view::npos;
  if (place.type == 'i' || place.type == 'u') place.type = 'd';
  if (!value.IsNumber())
    return InvalidArgument(fmt::format("%{} format: a {} number is required, not {}", place.type,
                                       whole ? "real" : "real", TypeName(value)));
  Value number = value;
  if (whole && value.IsFloat()) {
    if (place.type != 'd')
      return InvalidArgument(
          fmt::format("%{} format: an integer is required, not float", place.type));
    if (!(std::abs(value.number()) < 9e18)) return InvalidArgument("an integer is beyond 64 bits");
    number = Value(static_cast<std::int64_t>(value.number()));
  }
  FORETOKEN_TRY(const std::string digits, NumberDigits(place, number));
  return Padded(place, FromUtf8(digits), true);
}

Result<Characters> PercentText(Budget& budget, Place place, const Value& value) {
  if (place.align == '=') place.align = '>', place.fill = U' ';
  Characters text;
  if (place.type == 'c') {
    const bool character = value.IsText() && value.text().size() == 1;
    if (!character && !value.integer()) return InvalidArgument("%c requires int or char");
    text = character ? value.text()
                     : Characters(1, static_cast<char32_t>(*value.integer() & 0x1FFFFF));
  } else {
    text = place.type == 's' ? StrOf(budget, value) : ReprOf(budget, value);
  }
  if (place.precision >= 0 && text.size() > static_cast<std::size_t>(place.precision))
    text.resize(static_cast<std::size_t>(place.precision));
  return Padded(place, text, true);
}

// ------------------------------------------------------------------ str.format()

Result<Place> BracePlace(CharactersView text) {
  Place place;
  Scanner scanner(text);
  constexpr CharactersView kAligns = U"<>^=";
  if (text.size() >= 2 && kAligns.find(scanner.Peek(1)) != kNowhere) {
    place.fill = scanner.Marked();
    place.align = static_cast<char>(scanner.Next());
  } else if (!scanner.AtEnd() && kAligns.find(scanner.Peek()) != kNowhere) {
    place.align = static_cast<char>(scanner.Next());
  }
  if (scanner.Peek() == U'+' || scanner.Peek() == U'-' || scanner.Peek() == U' ')
    place.sign = static_cast<char>(scanner.Next());
  place.alternate = scanner.Skip(U'#');
  if (scanner.Skip(U'0') && place.align == 0) place.fill = U'0', place.align = '=';
  FORETOKEN_TRY(place.width, scanner.Number(0, kMostWidth));
  if (scanner.Peek() == U',' || scanner.Peek() == U'_')
    place.group = static_cast<char>(scanner.Next());
  if (scanner.Skip(U'.')) {
    FORETOKEN_TRY(place.precision, scanner.Number(0, kMostPrecision));
  }
  if (!scanner.AtEnd()) {
    const char32_t type = scanner.Next();
    place.type = type < 0x80 ? static_cast<char>(type) : '?';
  }
  constexpr std::string_view kTypes = "bcdeEfFgGnosxX%";
  const bool known = place.type == 0 || kTypes.find(place.type) != std::string_view::npos;
  if (!scanner.AtEnd() || !known) return InvalidArgument("Invalid format specifier");
  return place;
}

Result<Characters> InBraces(Budget& budget, const Value& value, CharactersView format) {
  FORETOKEN_TRY(Place place, BracePlace(format));
  if (format.empty()) return StrOf(budget, value);
  if (value.IsNumber() && !(value.IsBoolean() && place.type == 0)) {
    if (place.type == 's')
      return InvalidArgument(
          fmt::format("Unknown format code 's' for object of type '{}'", TypeName(value)));
    FORETOKEN_TRY(const std::string digits, NumberDigits(place, value));
    return Padded(place, FromUtf8(digits), true);
  }
  if (!value.IsText() && !value.IsBoolean())
    return InvalidArgument(
        fmt::format("unsupported format string passed to {}.__format__", TypeName(value)));
  if (place.type != 0 && place.type != 's')
    return InvalidArgument(
        fmt::format("Unknown format code '{}' for object of type 'str'", place.type));
  if (place.align == '=' && place.fill == U'0') place.align = '<';
  Characters text = StrOf(budget, value);
  if (place.precision >= 0 && text.size() > static_cast<std::size_t>(place.precision))
    text.resize(static_cast<std::size_t>(place.precision));
  return Padded(place, text, false);
}

// Finds the values of places.
class BraceArguments {
 public:
  BraceArguments(std::span<const Value> positional, const NameTable& named)
      : positional_(positional), named_(named) {}

  Result<Value> Find(CharactersView name) {
    const Utf8Text text = Utf8Of(name);
    if (text.find_first_of(".[") != Utf8Text::npos)
      return Fail(ErrorCode::kUnsupported, "format: attributes of arguments are not supported");
    std::size_t place = n_taken_;
    if (text.empty()) {
      ++n_taken_;
    } else if (const auto [end, error] =
                   std::from_chars(text.data(), text.data() + text.size(), place);
               error != std::errc() || end != text.data() + text.size()) {
      if (const Value* const found = named_.Find(text)) return *found;
      return InvalidArgument(fmt::format("format: there is no argument '{}'", Shown(text)));
    }
    if (place >= positional_.size())
      return InvalidArgument(
          fmt::format("Replacement index {} out of range for positional args tuple", place));
    return positional_[place];
  }

 private:
  std::span<const Value> positional_;
  const NameTable& named_;
  std::size_t n_taken_ = 0;
};

Result<Characters> FilledBraces(Budget& budget, Scanner& scanner, BraceArguments& arguments) {
  budget.Spend(kTouchedPerPlace);
  FORETOKEN_TRY(Value value, arguments.Find(scanner.Until(U"!:}")));
  if (scanner.Skip(U'!')) {
    const char32_t conversion = scanner.AtEnd() ? 0 : scanner.Next();
    if (conversion != U'r' && conversion != U's')
      return InvalidArgument("format: only !r and !s are supported");
    value = TextValue(budget, conversion == U'r' ? ReprOf(budget, value) : StrOf(budget, value));
  }
  CharactersView format;
  if (scanner.Skip(U':')) format = scanner.Until(U"{}");
  if (!scanner.Skip(U'}')) return InvalidArgument("expected '}' before end of string");
  return InBraces(budget, value, format);
}

}  // namespace

Result<Characters> FormatByPercent(Budget& budget, CharactersView format, const Value& arguments) {
  Scanner scanner(format);
  PercentArguments values(arguments);
  Characters out;
  budget.Spend(format.size());
  while (!scanner.AtEnd()) {
    FORETOKEN_CHECK_OK(budget.status());
    const char32_t c = scanner.Marked();
    if (CodeOf(c) != U'%') {
      out += c;
      continue;
    }
    std::optional<Value> named;
    if (scanner.Skip(U'(')) {
      const CharactersView name = scanner.Until(U")");
      if (!scanner.Skip(U')')) return InvalidArgument("incomplete format key");
      FORETOKEN_TRY(named, values.Named(name));
    }
    FORETOKEN_TRY(const Place place, PercentPlace(scanner));
    budget.Spend(kTouchedPerPlace);
    if (place.type == '%') {
      out += U'%';
      continue;
    }
    if (std::string_view("diuxXoeEfFgGcrsa").find(place.type) == std::string_view::npos)
      return InvalidArgument(
          fmt::format("unsupported format character '{}'", Shown({&place.type, 1})));
    Value value;
    if (named) {
      value = *named;
    } else {
      FORETOKEN_TRY(value, values.Next());
    }
    const bool number = std::string_view("crsa").find(place.type) == std::string_view::npos;
    FORETOKEN_TRY(const Characters filled,
                  number ? PercentNumber(place, value) : PercentText(budget, place, value));
    FORETOKEN_CHECK_OK(budget.Admit(filled.size(), sizeof(char32_t)));
    out += filled;
  }
  if (!values.AllTaken())
    return InvalidArgument("not all arguments converted during string formatting");
  return out;
}

Result<Characters> FormatByBraces(Budget& budget, CharactersView format,
                                  std::span<const Value> positional, const NameTable& named) {
  Scanner scanner(format);
  BraceArguments arguments(positional, named);
  Characters out;
  budget.Spend(format.size());
  while (!scanner.AtEnd()) {
    const char32_t c = scanner.Marked(), code = CodeOf(c);
    if ((code == U'{' || code == U'}') && scanner.Skip(code)) {
      out += c;
    } else if (code == U'}') {
      return InvalidArgument("Single '}' encountered in format string");
    } else if (code != U'{') {
      out += c;
    } else {
      if (scanner.AtEnd()) return InvalidArgument("Single '{' encountered in format string");
      FORETOKEN_TRY(const Characters filled, FilledBraces(budget, scanner, arguments));
      FORETOKEN_CHECK_OK(budget.Admit(filled.size(), sizeof(char32_t)));
      out += filled;
    }
  }
  return out;
}

}  // namespace foretoken::text::jinja
