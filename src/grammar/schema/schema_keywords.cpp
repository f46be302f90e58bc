// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/schema_keywords.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "grammar/schema/string_formats.h"

namespace foretoken::grammar {
namespace {

constexpr std::pair<std::string_view, JsonTypes> kTypeNames[] = {
    {"null", kNullType},     {"boolean", kBooleanType}, {"integer", kIntegerType},
    {"number", kNumberType}, {"string", kStringType},   {"array", kArrayType},
    {"object", kObjectType}};

// Keywords that describe values but allow all of them.
constexpr auto kAnnotations = std::to_array<std::string_view>(
    {"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
     "$anchor", "$defs", "definitions", "deprecated", "readOnly", "writeOnly", "discriminator",
     "contentMediaType", "contentEncoding", "contentSchema"});

// In how many ways a text may continue at a time, as Grammar::kMaxSituations.
constexpr std::size_t kMaxWays = 4096;

bool IsWhole(const Decimal& number) {
  return number.fraction.empty();
}

class Reader {
 public:
  Reader(const JsonTree& tree, int node) : tree_(tree), node_(node) {}

  Result<SchemaKeywords> Read() {
    const Json& schema = tree_[node_];
    if (schema.is_boolean()) {
      keywords_.never = !schema.boolean();
      return std::move(keywords_);
    }
    if (!schema.is_object())
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("{}: it is not a schema; give an object, true or false", tree_.Place(node_)));
    for (std::size_t i = 0; i < schema.size(); ++i)
      FORETOKEN_CHECK_OK(ReadKeyword(schema.members()[i].name, tree_.Children(node_)[i]));
    FORETOKEN_CHECK_OK(ReadTuple());
    return std::move(keywords_);
  }

 private:
  using Method = Status (Reader::*)();
  struct Keyword {
    std::string_view name;
    Method read;
    JsonTypes implies;
  };

  Status ReadKeyword(const std::string& name, int value) {
    static constexpr auto kKeywords = std::to_array<Keyword>({
        {"type", &Reader::Type, 0},
        {"enum", &Reader::Enum, 0},
        {"const", &Reader::Const, 0},
        {"anyOf", &Reader::AnyOf, 0},
        {"oneOf", &Reader::OneOf, 0},
        {"allOf", &Reader::AllOf, 0},
        {"$ref", &Reader::Ref, 0},
        {"properties", &Reader::Properties, kObjectType},
        {"required", &Reader::Required, kObjectType},
        {"additionalProperties", &Reader::AdditionalProperties, kObjectType},
        {"items", &Reader::Items, kArrayType},
        {"prefixItems", &Reader::PrefixItems, kArrayType},
        {"additionalItems", &Reader::AdditionalItems, kArrayType},
        {"minItems", &Reader::MinItems, kArrayType},
        {"maxItems", &Reader::MaxItems, kArrayType},
        {"uniqueItems", &Reader::UniqueItems, kArrayType},
        {"minLength", &Reader::MinLength, kStringType},
        {"maxLength", &Reader::MaxLength, kStringType},
        {"pattern", &Reader::Pattern, kStringType},
        {"format", &Reader::Format, 0},
        {"minimum", &Reader::Minimum, kNumberType},
        {"maximum", &Reader::Maximum, kNumberType},
        {"exclusiveMinimum", &Reader::ExclusiveMinimum, kNumberType},
        {"exclusiveMaximum", &Reader::ExclusiveMaximum, kNumberType},
        {"multipleOf", &Reader::MultipleOf, kNumberType},
    });
    name_ = name;
    value_ = value;
    for (const Keyword& keyword : kKeywords)
      if (keyword.name == name)
        return keywords_.implied |= keyword.implies, (this->*keyword.read)();
    if (name.starts_with("x-") ||
        std::find(kAnnotations.begin(), kAnnotations.end(), name) != kAnnotations.end())
      return {};
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: the keyword {} is not supported; write the schema without it",
                            tree_.Place(node_), ShownText(name)));
  }

  // An error about the keyword that is being read.
  tl::unexpected<Error> Bad(std::string_view why,
                            ErrorCode code = ErrorCode::kInvalidArgument) const {
    return Fail(code, fmt::format("{}: {}: {}", tree_.Place(node_), name_, why));
  }
  const Json& value() const { return tree_[value_]; }

  Status Type() {
    const bool list = value().is_array();
    JsonTypes types = 0;
    for (const int node : list ? tree_.Children(value_) : std::vector<int>{value_}) {
      const Json& name = tree_[node];
      const auto found = std::find_if(std::begin(kTypeNames), std::end(kTypeNames),
                                      [&](const auto& type) { return name == type.first; });
      if (found == std::end(kTypeNames))
        return Bad(
            fmt::format("{} is not a type; use null, boolean, integer, number, string, array "
                        "or object",
                        name.is_string() ? ShownText(name.text()) : "it"));
      types |= found->second;
    }
    keywords_.types = types;
    return {};
  }

  Status Enum() {
    if (!value().is_array() || value().empty())
      return Bad("it is not a list of values; give at least one");
    FORETOKEN_CHECK_OK(CheckWays());
    return Values(tree_.Children(value_));
  }
  Status Const() { return Values({value_}); }
  // Values that both keywords allow.
  Status Values(const std::vector<int>& values) {
    const bool other = keywords_.values.has_value();
    std::vector<int> kept, numbers;
    for (const int v : values) {
      const bool common =
          !other || std::binary_search(keywords_.value_numbers.begin(),
                                       keywords_.value_numbers.end(), tree_.ValueNumber(v));
      if (common) kept.push_back(v), numbers.push_back(tree_.ValueNumber(v));
    }
    std::sort(numbers.begin(), numbers.end());
    keywords_.values = std::move(kept);
    keywords_.value_numbers = std::move(numbers);
    return {};
  }

  Status AnyOf() { return Schemas(keywords_.any_of); }
  Status OneOf() { return Schemas(keywords_.one_of); }
  Status AllOf() { return Schemas(keywords_.all_of); }
  Status Schemas(std::vector<int>& out) {
    if (!value().is_array() || value().empty())
      return Bad("it is not a list of schemas; give at least one");
    FORETOKEN_CHECK_OK(CheckWays());
    out = tree_.Children(value_);
    return {};
  }

  Status Ref() {
    const std::string target = tree_.Text(value_);
    if (!value().is_string() || !target.starts_with('#') || (target.size() > 1 && target[1] != '/'))
      return Bad(fmt::format("{} does not lead into this schema; use #/$defs/NAME",
                             value().is_string() ? ShownText(target) : "it"));
    keywords_.ref = tree_.Resolve(std::string_view(target).substr(1));
    if (keywords_.ref < 0)
      return Bad(fmt::format("{} leads nowhere; define it or correct it", ShownText(target)));
    return {};
  }

  Status CheckWays() const {
    if (value().size() <= kMaxWays) return {};
    return Bad(fmt::format("{} are more than {}; give fewer", value().size(), kMaxWays),
               ErrorCode::kTooLarge);
  }

  Status Properties() {
    if (!value().is_object()) return Bad("it is not an object of schemas; give one");
    FORETOKEN_CHECK_OK(CheckWays());
    keywords_.properties = value_;
    return {};
  }

  Status Required() {
    if (!value().is_array()) return Bad("it is not a list of names; give one");
    for (const Json& name : value()) {
      if (!name.is_string()) return Bad("it is not a list of names; give one");
      keywords_.required.push_back(name.text());
    }
    std::sort(keywords_.required.begin(), keywords_.required.end());
    return {};
  }

  Status AdditionalProperties() { return keywords_.additional = value_, Status(); }
  Status AdditionalItems() { return additional_items_ = value_, Status(); }
  Status Items() { return keywords_.items = value_, Status(); }
  Status PrefixItems() { return Schemas(keywords_.prefix_items); }

  // The older form: items is a list, and additionalItems has the meaning of today's items.
  Status ReadTuple() {
    name_ = "items";
    if (keywords_.items < 0 || !tree_[keywords_.items].is_array()) return {};
    if (!keywords_.prefix_items.empty()) return Bad("it is a list beside prefixItems; keep one");
    keywords_.prefix_items = tree_.Children(keywords_.items);
    keywords_.items = additional_items_;
    return {};
  }

  Status MinItems() { return Count(keywords_.min_items); }
  Status MaxItems() { return Count(keywords_.max_items); }
  Status MinLength() { return Count(keywords_.min_length); }
  Status MaxLength() { return Count(keywords_.max_length); }
  Status Count(int& out) {
    const auto number = ValueAsNumber();
    if (!number || number->negative || !IsWhole(*number))
      return Bad("it is not a whole number from 0 on; give one");
    const std::string& digits = number->whole;
    if (digits.size() > 6) return TooMany(digits);
    std::from_chars(digits.data(), digits.data() + digits.size(), out);
    return out > SchemaKeywords::kMaxRepeats ? TooMany(digits) : Status();
  }
  Status TooMany(const std::string& digits) {
    return Bad(fmt::format("{} is more than {}; lower it", digits, SchemaKeywords::kMaxRepeats),
               ErrorCode::kTooLarge);
  }

  Status UniqueItems() {
    if (!value().is_boolean()) return Bad("it is neither true nor false; give one");
    if (!value().boolean()) return {};
    return Bad("grammars cannot compare items; leave it out, or set it to false",
               ErrorCode::kUnsupported);
  }

  Status Pattern() {
    if (!value().is_string()) return Bad("it is not a text; give one");
    return SetPattern(value().text());
  }
  Status Format() {
    if (!value().is_string()) return Bad("it is not a text; give one");
    const std::string_view pattern = PatternOfFormat(value().text());
    if (pattern.empty()) return {};
    keywords_.implied |= kStringType;
    return SetPattern(std::string(pattern));
  }
  Status SetPattern(std::string pattern) {
    if (keywords_.pattern)
      return Bad("a pattern and a format cannot both be followed; keep one",
                 ErrorCode::kUnsupported);
    keywords_.pattern = std::move(pattern);
    keywords_.pattern_at = value_;
    return {};
  }

  std::optional<Decimal> ValueAsNumber() const {
    return value().is_number() ? Decimal::Parse(tree_.Text(value_)) : std::nullopt;
  }
  Status Minimum() { return Side(true, false); }
  Status Maximum() { return Side(false, false); }
  Status ExclusiveMinimum() { return Side(true, true); }
  Status ExclusiveMaximum() { return Side(false, true); }
  Status Side(bool low, bool exclusive) {
    if (!value().is_number()) return Bad("it is not a number; give one");
    const auto bound = ValueAsNumber();
    if (!bound)
      return Bad(fmt::format("it has more than {} digits; round it", Decimal::kMaxDigits),
                 ErrorCode::kTooLarge);
    if (low)
      keywords_.range.RaiseLow({*bound, exclusive});
    else
      keywords_.range.LowerHigh({*bound, exclusive});
    return {};
  }

  Status MultipleOf() {
    const auto number = ValueAsNumber();
    if (!number || number->whole != "1" || !number->fraction.empty() || number->negative)
      return Bad("only 1 can be followed; leave it out", ErrorCode::kUnsupported);
    keywords_.whole_multiple = true;
    return {};
  }

  const JsonTree& tree_;
  const int node_;
  std::string name_;
  int value_ = -1;
  int additional_items_ = SchemaKeywords::kNone;
  SchemaKeywords keywords_;
};

}  // namespace

JsonTypes TypeOf(const Json& value) {
  switch (value.kind()) {
    case Json::Kind::kNull:
      return kNullType;
    case Json::Kind::kBoolean:
      return kBooleanType;
    case Json::Kind::kInteger:
    case Json::Kind::kUnsigned:
      return kIntegerType;
    case Json::Kind::kNumber: {
      const auto number = Decimal::Parse(value.written());
      return number && IsWhole(*number) ? kIntegerType : kFractionType;
    }
    case Json::Kind::kString:
      return kStringType;
    case Json::Kind::kArray:
      return kArrayType;
    case Json::Kind::kObject:
      return kObjectType;
  }
  return 0;
}

Result<SchemaKeywords> ReadSchema(const JsonTree& tree, int node) {
  return Reader(tree, node).Read();
}

}  // namespace foretoken::grammar
