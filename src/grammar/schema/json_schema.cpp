// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/work_count.h"
#include "foretoken/result.h"
#include "foretoken/structured_output.h"
#include "grammar/grammar_program.h"
#include "grammar/pattern/regex.h"
#include "grammar/schema/json_texts.h"
#include "grammar/schema/key_complement.h"
#include "grammar/schema/schema_merge.h"

namespace foretoken {
namespace grammar {
namespace {

using Part = GbnfWriter::Part;

constexpr std::size_t kMaxRules = 1 << 14;
constexpr std::size_t kMaxWork = std::size_t{1} << 23;  // of Converter::WorkOf
constexpr int kNoEnd = GbnfWriter::kNoEnd;

// Makes a rule for each set of schemas that some value must fit.
class Converter {
 public:
  explicit Converter(const JsonTree& tree) : tree_(tree), sets_(tree), json_(writer_) {}

  Result<std::string> Convert() {
    FORETOKEN_TRY(const SchemaSet root, sets_.Of({JsonTree::kRoot}));
    const int rule = RuleOf(root);
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      const std::size_t work = WorkOf(rules_[i].set);
      CountWork(work);
      n_work_ += work;
      if (n_work_ <= kMaxWork) FORETOKEN_CHECK_OK(Define(i));
      if (rules_.size() > kMaxRules || n_work_ > kMaxWork || writer_.too_large())
        return Fail(ErrorCode::kTooLarge,
                    fmt::format("{}: with it the schema makes too large a grammar; give fewer "
                                "alternatives, or smaller ones",
                                PlaceOf(rules_[i])));
    }
    FORETOKEN_CHECK_OK(CheckChoices());
    FORETOKEN_TRY(std::string text, writer_.Write(rule));
    if (!text.empty()) return text;
    return Fail(ErrorCode::kInvalidArgument,
                contradiction_.empty()
                    ? "#: no value fits it, some always need themselves; let a $ref be optional"
                    : contradiction_);
  }

 private:
  struct Rule {
    SchemaSet set;
    int rule = -1;                  // of the writer
    std::vector<std::size_t> ways;  // rules of its alternatives
  };

  std::string PlaceOf(const Rule& rule) const {
    return tree_.Place(rule.set.empty() ? JsonTree::kRoot : rule.set.front().node);
  }

  // A bound for the work of merging the schemas of a set: each name, and each value of the shortest
  // list, is looked up in all.
  std::size_t WorkOf(const SchemaSet& set) const {
    constexpr std::size_t kNoValues = std::size_t(-1);
    std::size_t n = 0, n_values = kNoValues;
    for (const SchemaMember& member : set) {
      const SchemaKeywords& k = sets_.Keywords(member);
      n += 1 + k.required.size() + k.prefix_items.size();
      if (!member.any_of_decided) n += k.any_of.size();
      if (!member.one_of_decided) n += k.one_of.size();
      if (k.properties >= 0) n += tree_[k.properties].size();
      if (k.values) n_values = std::min(n_values, k.values->size());
    }
    return (n + (n_values == kNoValues ? 0 : n_values)) * set.size();
  }

  std::size_t IndexOf(const SchemaSet& set) {
    SchemaSet key = set;
    std::sort(key.begin(), key.end());
    const auto [known, added] = index_of_.try_emplace(std::move(key), rules_.size());
    if (added) rules_.push_back({set, writer_.AddRule(fmt::format("v{}", rules_.size()))});
    return known->second;
  }
  int RuleOf(const SchemaSet& set) { return rules_[IndexOf(set)].rule; }

  Result<Part> ValueOf(const std::vector<int>& schemas) {
    FORETOKEN_TRY(const SchemaSet set, sets_.Of(schemas));
    return set.empty() ? json_.AnyValue() : writer_.Call(RuleOf(set));
  }

  Status Define(std::size_t index) {
    const SchemaSet set = rules_[index].set;  // a copy: rules_ may move
    FORETOKEN_TRY(const std::vector<SchemaSet> choices, sets_.Choices(set));
    std::vector<Part> ways;
    for (const SchemaSet& choice : choices) {
      const std::size_t way = IndexOf(choice);
      rules_[index].ways.push_back(way);
      ways.push_back(writer_.Call(rules_[way].rule));
    }
    if (choices.empty()) {
      FORETOKEN_TRY(const MergedSchema merged, Merge(tree_, sets_, set));
      FORETOKEN_CHECK_OK(WaysOf(merged, index, ways));
    }
    writer_.Define(rules_[index].rule, writer_.AnyOf(ways));
    return {};
  }

  // A choice that leads to the same set again, without a value between, has no meaning. Rules
  // without remaining alternatives are removed; a cycle stays.
  Status CheckChoices() const {
    std::vector<std::vector<std::size_t>> users(rules_.size());
    std::vector<std::size_t> n_ways(rules_.size()), gone;
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      n_ways[i] = rules_[i].ways.size();
      for (const std::size_t way : rules_[i].ways) users[way].push_back(i);
      if (n_ways[i] == 0) gone.push_back(i);
    }
    for (std::size_t g = 0; g < gone.size(); ++g)
      for (const std::size_t user : users[gone[g]])
        if (--n_ways[user] == 0) gone.push_back(user);
    if (gone.size() == rules_.size()) return {};
    const auto left = std::find_if(n_ways.begin(), n_ways.end(), [](auto n) { return n > 0; });
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: one of its alternatives leads back to it; take that one away",
                            PlaceOf(rules_[static_cast<std::size_t>(left - n_ways.begin())])));
  }

  // One alternative for each type.
  Status WaysOf(const MergedSchema& merged, std::size_t index, std::vector<Part>& ways) {
    const Rule rule = rules_[index];
    if (!merged.contradiction.empty()) {
      if (contradiction_.empty())
        contradiction_ = fmt::format("{}: no value fits it: {}; correct it", PlaceOf(rule),
                                     merged.contradiction);
      return {};
    }
    if (merged.values) {
      for (const int value : *merged.values) ways.push_back(json_.Value(tree_, value));
      return {};
    }
    if (merged.types & kObjectType) {
      FORETOKEN_TRY(const Part object, ObjectOf(merged));
      ways.push_back(object);
    }
    if (merged.types & kArrayType) {
      FORETOKEN_TRY(const Part array, ArrayOf(merged));
      ways.push_back(array);
    }
    if (merged.types & kStringType) {
      FORETOKEN_TRY(const Part string, StringOf(merged, rule));
      ways.push_back(string);
    }
    if (merged.types & kNumberType) {
      FORETOKEN_TRY(const Part number, NumberOf(merged, rule));
      ways.push_back(number);
    }
    if (merged.types & kBooleanType) ways.push_back(json_.Boolean());
    if (merged.types & kNullType) ways.push_back(writer_.Text("null"));
    return {};
  }

  Result<Part> NumberOf(const MergedSchema& merged, const Rule& rule) {
    const NumberRange& range = merged.range;
    const bool whole = (merged.types & kFractionType) == 0;
    if (!range.low && !range.high) return whole ? json_.Integer() : json_.Number();
    if (whole) return WholeNumbers(range, writer_);
    std::size_t n_whole = 0, n_fraction = 0;
    for (const auto* bound : {&range.low, &range.high}) {
      if (!*bound) continue;
      n_whole = std::max(n_whole, (*bound)->value.whole.size());
      n_fraction = std::max(n_fraction, (*bound)->value.fraction.size());
    }
    if (n_whole + n_fraction > kExactDigits)
      return Fail(ErrorCode::kUnsupported,
                  fmt::format("{}: its bounds have more than {} digits before and behind the "
                              "point together; round them, or leave them out",
                              PlaceOf(rule), kExactDigits));
    return RealNumbers(range, writer_);
  }

  Result<Part> StringOf(const MergedSchema& merged, const Rule& rule) {
    const Part quote = writer_.Text("\"");
    if (!merged.pattern) {
      if (merged.min_length == 0 && merged.max_length < 0) return json_.String();
      if (merged.max_length >= 0 && merged.min_length > merged.max_length) return writer_.AnyOf({});
      return writer_.Sequence(
          {quote, writer_.Repeat(json_.Character(), merged.min_length, merged.max_length), quote});
    }
    FORETOKEN_TRY(const Regex* const regex, PatternOf(merged));
    const RegexLength length = LengthOf(*regex);
    const bool fits =
        length.least >= merged.min_length &&
        (merged.max_length < 0 || (length.most != kNoEnd && length.most <= merged.max_length));
    if (!fits)
      return Fail(
          ErrorCode::kUnsupported,
          fmt::format("{}: a length cannot be followed beside a pattern or format that does "
                      "not keep it; say it in the pattern, as in ^[a-z]{{2,5}}$",
                      PlaceOf(rule)));
    return writer_.Sequence({quote, InsideOfString(*regex, json_.Character(), writer_), quote});
  }

  Result<const Regex*> PatternOf(const MergedSchema& merged) {
    if (const auto known = patterns_.find(merged.pattern_at); known != patterns_.end())
      return &known->second;
    auto regex = ParseRegex(*merged.pattern);
    if (!regex) return Fail(std::move(regex).error().In(tree_.Place(merged.pattern_at)));
    return &patterns_.emplace(merged.pattern_at, *std::move(regex)).first->second;
  }

  Result<Part> ArrayOf(const MergedSchema& merged) {
    if (merged.max_items >= 0 && merged.min_items > merged.max_items) return writer_.AnyOf({});
    const auto n_prefix = static_cast<int>(merged.prefix_items.size());
    // What follows item n, built from the end.
    Part rest = writer_.Text("");
    if (merged.max_items < 0 || merged.max_items > n_prefix) {
      FORETOKEN_TRY(const Part item, ValueOf(merged.items));
      const auto left = [&](int n) { return std::max(0, n - std::max(n_prefix, 1)); };
      const Part more =
          writer_.Repeat(writer_.Sequence({json_.Comma(), item}), left(merged.min_items),
                         merged.max_items < 0 ? kNoEnd : left(merged.max_items));
      if (n_prefix == 0) return Bracketed(writer_.Sequence({item, more}), merged.min_items == 0);
      rest = more;
    }
    for (int i = std::min(n_prefix, merged.max_items < 0 ? n_prefix : merged.max_items); i-- > 0;) {
      FORETOKEN_TRY(const Part item, ValueOf(merged.prefix_items[static_cast<std::size_t>(i)]));
      // Long lists get rules of their own.
      const int rule = NewRule("items");
      writer_.Define(rule, writer_.Sequence({item, rest}));
      if (i == 0) return Bracketed(writer_.Call(rule), merged.min_items == 0);
      const Part next = writer_.Sequence({json_.Comma(), writer_.Call(rule)});
      rest = i < merged.min_items ? next : writer_.Optional(next);
    }
    return writer_.Text("[]");
  }

  Part Bracketed(Part items, bool optional) {
    return writer_.Sequence(
        {writer_.Text("["), optional ? writer_.Optional(items) : items, writer_.Text("]")});
  }

  int NewRule(std::string_view kind) {
    return writer_.AddRule(fmt::format("{}{}", kind, n_helpers_++));
  }

  Result<Part> ObjectOf(const MergedSchema& merged) {
    if (merged.open && merged.properties.empty() && merged.additional.empty())
      return json_.AnyObject();
    std::vector<Part> members;
    for (const MergedSchema::Property& property : merged.properties) {
      FORETOKEN_TRY(const Part value, ValueOf(property.schemas));
      members.push_back(writer_.Sequence({json_.Key(property.name), value}));
    }
    Part other = writer_.AnyOf({});
    if (merged.open) {
      FORETOKEN_TRY(const Part value, ValueOf(merged.additional));
      other = writer_.Sequence({OtherKey(merged), writer_.Text(":"), json_.Space(), value});
    }
    return writer_.Sequence(
        {writer_.Text("{"), MembersOf(merged.properties, members, other), writer_.Text("}")});
  }

  Part OtherKey(const MergedSchema& merged) {
    if (merged.properties.empty()) return json_.String();
    std::vector<std::string> names;
    for (const MergedSchema::Property& property : merged.properties) names.push_back(property.name);
    return KeyComplement(
        names, [this] { return NewRule("key"); }, writer_);
  }

  // A comma precedes each member except the first that is present. behind: all members from one on,
  // each with its comma.
  Part MembersOf(const std::vector<MergedSchema::Property>& properties,
                 const std::vector<Part>& members, Part other) {
    const auto with_comma = [this](Part member) {
      return writer_.Sequence({json_.Comma(), member});
    };
    Part behind = writer_.Repeat(with_comma(other), 0, kNoEnd);
    const auto first_required =
        static_cast<std::size_t>(std::find_if(properties.begin(), properties.end(),
                                              [](const auto& p) { return p.required; }) -
                                 properties.begin());
    const std::size_t n_firsts = std::min(first_required + 1, properties.size());
    std::vector<Part> parts;
    for (std::size_t i = n_firsts; i < members.size(); ++i) {
      const Part member = with_comma(members[i]);
      parts.push_back(properties[i].required ? member : writer_.Optional(member));
    }
    parts.push_back(behind);
    behind = writer_.Sequence(parts);
    std::vector<Part> firsts;
    if (first_required == properties.size())
      firsts = {writer_.Text(""),
                writer_.Sequence({other, writer_.Repeat(with_comma(other), 0, kNoEnd)})};
    for (std::size_t i = n_firsts; i-- > 0;) {
      if (n_firsts > 1) behind = Shared(behind);
      firsts.push_back(writer_.Sequence({members[i], behind}));
      const Part member = with_comma(members[i]);
      behind =
          writer_.Sequence({properties[i].required ? member : writer_.Optional(member), behind});
    }
    std::reverse(firsts.begin(), firsts.end());
    return writer_.AnyOf(firsts);
  }

  Part Shared(Part part) {
    const int rule = NewRule("rest");
    writer_.Define(rule, part);
    return writer_.Call(rule);
  }

  const JsonTree& tree_;
  SchemaSets sets_;
  GbnfWriter writer_;
  JsonTexts json_;
  std::map<SchemaSet, std::size_t> index_of_;  // of rules_
  std::vector<Rule> rules_;                    // defined one after the other
  std::map<int, Regex> patterns_;              // by the keyword's node
  int n_helpers_ = 0;
  std::size_t n_work_ = 0;
  std::string contradiction_;  // the first that was found
};

Result<std::string> Convert(std::string_view schema) {
  FORETOKEN_TRY(const JsonTree tree, JsonTree::Parse(schema));
  FORETOKEN_TRY(std::string gbnf, Converter(tree).Convert());
  // What the engine would refuse is refused here, with the schema's name in the message.
  if (const auto program = grammar::CompileGbnf(gbnf); !program)
    return Fail(
        program.error().code,
        "it makes too large a grammar; lower its repetitions (maxItems, maxLength, ...), or "
        "give fewer alternatives");
  return gbnf;
}

}  // namespace
}  // namespace grammar

Result<std::string> JsonSchemaGrammar(std::string_view schema) {
  return CatchNoMemory("json schema", [&]() -> Result<std::string> {
    auto gbnf = grammar::Convert(schema);
    if (!gbnf) return Fail(std::move(gbnf).error().In("json schema"));
    return gbnf;
  });
}

}  // namespace foretoken
