// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/globals.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/date_text.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::string_view kNames[] = {"range", "dict", "namespace", "raise_exception",
                                       "strftime_now"};
constexpr std::uint64_t kMostRange = 100'000;  // as Jinja's sandbox

Result<Value> Range(Environment& environment, const Arguments& arguments) {
  FORETOKEN_TRY(const Bound bound, Bound::Make("range", arguments, {"start", "stop", "step"}, 1));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    if (!bound[i].integer())
      return InvalidArgument(
          fmt::format("'{}' object cannot be interpreted as an integer", TypeName(bound[i])));
  const bool one = arguments.positional.size() == 1;
  const std::int64_t start = one ? 0 : *bound[0].integer();
  const std::int64_t stop = *bound[one ? 0 : 1].integer();
  const std::int64_t step = arguments.positional.size() == 3 ? *bound[2].integer() : 1;
  if (step == 0) return InvalidArgument("range() arg 3 must not be zero");
  std::int64_t distance = 0;
  const bool far = __builtin_sub_overflow(stop, start, &distance);
  const bool towards = (distance > 0) == (step > 0) && distance != 0;
  if (far || (towards && static_cast<std::uint64_t>(std::abs(distance / step)) >= kMostRange))
    return Fail(
        ErrorCode::kTooLarge,
        fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMostRange));
  return RangeValue(environment.budget, start, stop, step);
}

// The members of the first argument, a dictionary or pairs, and then the named arguments.
Result<List<std::pair<Value, Value>>> MembersOf(Environment& environment,
                                                const Arguments& arguments) {
  List<std::pair<Value, Value>> members;
  if (arguments.positional.size() > 1)
    return InvalidArgument(
        fmt::format("dict expected at most 1 argument, got {}", arguments.positional.size()));
  if (!arguments.positional.empty()) {
    const Value& first = arguments.positional.front();
    if (const Dictionary* const dictionary = first.dictionary()) {
      environment.budget.Spend(dictionary->items.size());
      members = dictionary->items;
    } else {
      FORETOKEN_TRY(const Values pairs, ItemsOf(environment.budget, first));
      for (const Value& pair : pairs) {
        FORETOKEN_TRY(const Values two, ItemsOf(environment.budget, pair));
        if (two.size() != 2)
          return InvalidArgument("dictionary update sequence element has a length other than 2");
        if (!IsHashable(two[0]))
          return InvalidArgument(fmt::format("unhashable type: '{}'", TypeName(two[0])));
        members.emplace_back(two[0], two[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named)
    members.emplace_back(TextValue(environment.budget, name), value);
  return members;
}

Result<Value> MakeDictionary(Environment& environment, const Arguments& arguments) {
  FORETOKEN_TRY(const auto members, MembersOf(environment, arguments));
  DictionaryBuilder made(environment.budget);
  for (const auto& [key, value] : members) made.Set(key, value);
  return made.Take();
}

Result<Value> MakeNamespace(Environment& environment, const Arguments& arguments) {
  FORETOKEN_TRY(const auto members, MembersOf(environment, arguments));
  const std::shared_ptr<Namespace> space = Shared(Namespace{});
  for (const auto& [key, value] : members) {
    if (!key.IsText()) return InvalidArgument("namespace: its names are not texts");
    environment.budget.Spend(key.text().size());
    FORETOKEN_CHECK_OK(environment.budget.status());
    space->attributes.Set(Utf8Of(key.text()), value);
  }
  environment.namespaces.push_back(space);
  return Value(space);
}

Result<Value> RaiseException(Environment& environment, const Arguments& arguments) {
  FORETOKEN_TRY(const Bound bound, Bound::Make("raise_exception", arguments, {"message"}, 1));
  constexpr std::size_t kMostCharacters = 16 << 10;  // of a message for a person
  Characters why = StrOf(environment.budget, bound[0]);
  if (why.size() > kMostCharacters) why.replace(kMostCharacters, why.size(), U"...");
  return InvalidArgument(fmt::format("it refuses the conversation: {}", ToUtf8(why)));
}

Result<Value> TextOfNow(Environment& environment, const Arguments& arguments) {
  FORETOKEN_TRY(const Bound bound, Bound::Make("strftime_now", arguments, {"format"}, 1));
  if (!bound[0].IsText()) return InvalidArgument("strftime() argument 1 must be str");
  FORETOKEN_CHECK_OK(environment.budget.Admit(bound[0].text().size(), 16 * sizeof(char32_t)));
  return TextValue(environment.budget, DateText(bound[0].text(), environment.now));
}

}  // namespace

std::optional<Value> GlobalFunction(std::string_view name) {
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames))
    return std::nullopt;
  return Value(std::shared_ptr<const Callable>(
      Shared(Callable{Callable::Kind::kFunction, Utf8Text(name), Value()})));
}

Result<Value> CallGlobal(Environment& environment, std::string_view name,
                         const Arguments& arguments) {
  if (name == "range") return Range(environment, arguments);
  if (name == "dict") return MakeDictionary(environment, arguments);
  if (name == "namespace") return MakeNamespace(environment, arguments);
  if (name == "raise_exception") return RaiseException(environment, arguments);
  return TextOfNow(environment, arguments);
}

}  // namespace foretoken::text::jinja
