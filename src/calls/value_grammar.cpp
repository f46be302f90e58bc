// SPDX-License-Identifier: Apache-2.0
#include "calls/value_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "calls/answer_grammar.h"
#include "foretoken/structured_output.h"
#include "grammar/schema/json_texts.h"
#include "grammar/schema/schema_merge.h"

namespace foretoken::calls {
namespace {

using grammar::GbnfWriter;
using grammar::JsonTree;
using grammar::MergedSchema;
using grammar::SchemaSet;
using NotatedPart = ValueNotation::Part;

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Makes a rule for each set of schemas that a value must fit. REQUIRES: JsonSchemaGrammar takes the
// schema, so its size is bounded and no choice leads back to itself.
class NotatedSchema {
 public:
  NotatedSchema(const JsonTree& tree, std::string_view tool, const MakeNotation& make,
                std::vector<std::string>& notices)
      : tree_(tree),
        tool_(tool),
        sets_(tree),
        numbers_(writer_),
        notation_(make(writer_)),
        notices_(notices) {
    DefineAny();
  }

  // Empty: no arguments fit.
  Result<std::string> Rules() {
    FORETOKEN_TRY(const SchemaSet root, sets_.Of({JsonTree::kRoot}));
    return RulesFrom(root.empty() ? any_arguments_ : RuleOf(root, true));
  }
  Result<std::string> AnyRules() { return RulesFrom(any_arguments_); }

 private:
  Result<std::string> RulesFrom(int root) {
    for (std::size_t i = 0; i < to_define_.size() && !writer_.too_large(); ++i) {
      const auto [set, argument, rule] = to_define_[i];  // a copy: more may come
      FORETOKEN_TRY(const NotatedPart body, BodyOf(set, argument));
      writer_.Define(rule, body);
    }
    FORETOKEN_TRY(std::string gbnf, writer_.Write(root));
    const std::string foreign = fmt::format("\n{} ::= ", ValueNotation::kForeign);
    if (const std::size_t at = gbnf.find(foreign); at != gbnf.npos)
      gbnf.replace(at + 1, gbnf.find('\n', at + 1) - at, notation_->ForeignRules());
    return gbnf;
  }

  struct Rule {
    SchemaSet set;
    bool argument = false;  // the arguments themselves
    int rule = -1;
  };

  int NewRule() { return writer_.AddRule(fmt::format("v{}", n_rules_++)); }
  NotatedPart Ruled(NotatedPart part) {
    const int rule = NewRule();
    writer_.Define(rule, part);
    return writer_.Call(rule);
  }

  int RuleOf(const SchemaSet& set, bool argument) {
    SchemaSet key = set;
    std::sort(key.begin(), key.end());
    const auto [known, added] = rule_of_.try_emplace({std::move(key), argument}, -1);
    if (added) to_define_.push_back({set, argument, known->second = NewRule()});
    return known->second;
  }

  Result<NotatedPart> ValueOf(const std::vector<int>& schemas) {
    FORETOKEN_TRY(const SchemaSet set, sets_.Of(schemas));
    return writer_.Call(set.empty() ? any_value_ : RuleOf(set, false));
  }

  NotatedPart Bracketed(std::string_view open, NotatedPart inside, std::string_view close) {
    return writer_.Sequence({writer_.Text(open), inside, writer_.Text(close)});
  }
  NotatedPart BehindComma(NotatedPart part) { return writer_.Sequence({numbers_.Comma(), part}); }
  NotatedPart AnyNumberOf(NotatedPart part) {
    const NotatedPart more = writer_.Repeat(BehindComma(part), 0, GbnfWriter::kNoEnd);
    return writer_.Optional(writer_.Sequence({part, more}));
  }

  void DefineAny() {
    any_value_ = NewRule(), any_object_ = NewRule(), any_list_ = NewRule();
    any_arguments_ = NewRule();
    const NotatedPart value = writer_.Call(any_value_);
    writer_.Define(any_list_, Bracketed("[", AnyNumberOf(value), "]"));
    const auto members = [&](bool argument) {
      return AnyNumberOf(writer_.Sequence({notation_->AnyKey(argument), value}));
    };
    writer_.Define(any_object_, Bracketed("{", members(false), "}"));
    writer_.Define(any_arguments_, members(true));
    writer_.Define(any_value_, writer_.AnyOf({writer_.Call(any_object_), writer_.Call(any_list_),
                                              notation_->AnyText(), numbers_.Number(), Boolean(),
                                              writer_.Text(notation_->Null())}));
  }

  NotatedPart Boolean() {
    return writer_.AnyOf(
        {writer_.Text(notation_->Boolean(true)), writer_.Text(notation_->Boolean(false))});
  }

  Result<NotatedPart> BodyOf(const SchemaSet& set, bool argument) {
    FORETOKEN_TRY(const std::vector<SchemaSet> choices, sets_.Choices(set));
    std::vector<NotatedPart> ways;
    for (const SchemaSet& choice : choices) ways.push_back(writer_.Call(RuleOf(choice, argument)));
    if (!choices.empty()) return writer_.AnyOf(ways);
    FORETOKEN_TRY(const MergedSchema merged, Merge(tree_, sets_, set));
    if (!merged.contradiction.empty()) return writer_.AnyOf({});
    if (merged.values) {
      for (const int value : *merged.values)
        if (!argument || tree_[value].is_object()) ways.push_back(Given(value, argument));
      return writer_.AnyOf(ways);
    }
    if (merged.types & grammar::kObjectType) {
      FORETOKEN_TRY(const NotatedPart object, ObjectOf(merged, argument));
      ways.push_back(object);
    }
    if (!argument) FORETOKEN_CHECK_OK(AddOthers(merged, set, ways));
    return writer_.AnyOf(ways);
  }

  // The ways that are no objects.
  Status AddOthers(const MergedSchema& merged, const SchemaSet& set,
                   std::vector<NotatedPart>& ways) {
    if (merged.types & grammar::kArrayType) {
      FORETOKEN_TRY(const NotatedPart list, ListOf(merged));
      ways.push_back(list);
    }
    if (merged.types & grammar::kStringType) ways.push_back(TextOf(merged, set));
    if (merged.types & grammar::kNumberType) ways.push_back(NumberOf(merged));
    if (merged.types & grammar::kBooleanType) ways.push_back(Boolean());
    if (merged.types & grammar::kNullType) ways.push_back(writer_.Text(notation_->Null()));
    return {};
  }

  // A value of the schema itself.
  NotatedPart Given(int node, bool argument) {
    const Json& value = tree_[node];
    const bool is_object = value.is_object();
    if (value.is_null()) return writer_.Text(notation_->Null());
    if (value.is_boolean()) return writer_.Text(notation_->Boolean(value.boolean()));
    if (value.is_string()) return notation_->Text(value.text());
    if (!is_object && !value.is_array()) return writer_.Text(tree_.Compact(node));
    std::vector<NotatedPart> parts;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (i > 0) parts.push_back(numbers_.Comma());
      if (is_object) parts.push_back(notation_->Key(value.members()[i].name, argument));
      parts.push_back(Given(tree_.Children(node)[i], false));
    }
    const NotatedPart inside = writer_.Sequence(parts);
    return argument ? inside : Bracketed(is_object ? "{" : "[", inside, is_object ? "}" : "]");
  }

  NotatedPart NumberOf(const MergedSchema& merged) {
    const bool whole = (merged.types & grammar::kFractionType) == 0;
    if (!merged.range.low && !merged.range.high)
      return whole ? numbers_.Integer() : numbers_.Number();
    return whole ? WholeNumbers(merged.range, writer_) : RealNumbers(merged.range, writer_);
  }

  NotatedPart TextOf(const MergedSchema& merged, const SchemaSet& set) {
    if (!merged.pattern && merged.min_length == 0 && merged.max_length < 0)
      return notation_->AnyText();
    if (merged.max_length >= 0 && merged.min_length > merged.max_length) return writer_.AnyOf({});
    const auto within = notation_->TextWithin(
        {.least = merged.min_length, .most = merged.max_length, .pattern = merged.pattern});
    if (within) return *within;
    notices_.push_back(
        fmt::format("tools: {} of {} may be any text, because its {} is not followed",
                    tree_.Place(set.front().node), tool_, merged.pattern ? "pattern" : "length"));
    return notation_->AnyText();
  }

  Result<NotatedPart> ListOf(const MergedSchema& merged) {
    if (merged.max_items >= 0 && merged.min_items > merged.max_items) return writer_.AnyOf({});
    const auto n_places = static_cast<int>(merged.prefix_items.size());
    NotatedPart behind = writer_.Text("");  // what follows the items that have a place
    if (merged.max_items < 0 || merged.max_items > n_places) {
      FORETOKEN_TRY(const NotatedPart item, ValueOf(merged.items));
      const int least = std::max(0, merged.min_items - n_places);
      const int most = merged.max_items < 0 ? GbnfWriter::kNoEnd : merged.max_items - n_places;
      if (n_places == 0) return Bracketed("[", Items(item, least, most), "]");
      behind = writer_.Repeat(BehindComma(item), least, most);
    }
    const int last = merged.max_items < 0 ? n_places : std::min(n_places, merged.max_items);
    for (int i = last; i-- > 0;) {
      FORETOKEN_TRY(const NotatedPart item,
                    ValueOf(merged.prefix_items[static_cast<std::size_t>(i)]));
      const NotatedPart here = writer_.Sequence({i == 0 ? item : BehindComma(item), behind});
      behind = Ruled(i < merged.min_items ? here : writer_.Optional(here));
    }
    return Bracketed("[", behind, "]");
  }

  NotatedPart Items(NotatedPart item, int least, int most) {
    const int more = most < 0 ? GbnfWriter::kNoEnd : most - 1;
    const NotatedPart items =
        writer_.Sequence({item, writer_.Repeat(BehindComma(item), std::max(0, least - 1), more)});
    return least == 0 ? writer_.Optional(items) : items;
  }

  Result<NotatedPart> ObjectOf(const MergedSchema& merged, bool argument) {
    NotatedPart inside = writer_.Call(argument ? any_arguments_ : any_object_);
    if (!merged.properties.empty()) {
      FORETOKEN_TRY(inside, MembersOf(merged.properties, argument));
    } else if (!merged.open) {
      inside = writer_.Text("");
    } else if (!merged.additional.empty()) {
      FORETOKEN_TRY(const NotatedPart value, ValueOf(merged.additional));
      inside = AnyNumberOf(writer_.Sequence({notation_->AnyKey(argument), value}));
    } else if (!argument) {
      return inside;  // it has its brackets
    }
    return argument ? inside : Bracketed("{", inside, "}");
  }

  // Two rules for each member: what is left from it on, behind another member and as the first one.
  Result<NotatedPart> MembersOf(std::vector<MergedSchema::Property> properties, bool argument) {
    if (notation_->sorts())
      std::stable_sort(properties.begin(), properties.end(), [](const auto& a, const auto& b) {
        return LowerCase(a.name) < LowerCase(b.name);
      });
    NotatedPart behind = writer_.Text(""), first = writer_.Text("");
    for (std::size_t i = properties.size(); i-- > 0;) {
      FORETOKEN_TRY(const NotatedPart value, ValueOf(properties[i].schemas));
      const NotatedPart member =
          writer_.Sequence({notation_->Key(properties[i].name, argument), value});
      const NotatedPart begun = writer_.Sequence({member, behind});
      first = Ruled(properties[i].required ? begun : writer_.AnyOf({begun, first}));
      const NotatedPart next = BehindComma(member);
      behind =
          Ruled(writer_.Sequence({properties[i].required ? next : writer_.Optional(next), behind}));
    }
    return first;
  }

  const JsonTree& tree_;
  const std::string_view tool_;
  grammar::SchemaSets sets_;
  GbnfWriter writer_;
  grammar::JsonTexts numbers_;
  std::unique_ptr<ValueNotation> notation_;
  std::vector<std::string>& notices_;
  std::map<std::pair<SchemaSet, bool>, int> rule_of_;
  std::vector<Rule> to_define_;
  int n_rules_ = 0, any_value_ = -1, any_object_ = -1, any_list_ = -1, any_arguments_ = -1;
};

// The rules by the tool's schema.
Result<std::string> FollowedRules(const Tool& tool, const std::string& shown,
                                  const MakeNotation& make, std::vector<std::string>& notices) {
  FORETOKEN_TRY(const std::string json, JsonSchemaGrammar(tool.parameters_json));
  FORETOKEN_TRY(const JsonTree tree, JsonTree::Parse(tool.parameters_json));
  FORETOKEN_TRY(std::string gbnf, NotatedSchema(tree, shown, make, notices).Rules());
  if (gbnf.empty())
    return Fail(ErrorCode::kUnsupported, "no arguments fit it that this form can write");
  FORETOKEN_CHECK_OK(CheckGrammar(gbnf));
  return gbnf;
}

}  // namespace

std::string NotatedArguments(const Tool& tool, std::string_view prefix, const MakeNotation& make,
                             std::vector<std::string>& notices) {
  if (!tool.parameters_json.empty()) {
    const std::string shown = grammar::ShownText(tool.name);
    std::vector<std::string> made;
    const auto gbnf = FollowedRules(tool, shown, make, made);
    if (gbnf) {
      notices.insert(notices.end(), made.begin(), made.end());
      return Prefixed(*gbnf, prefix);
    }
    notices.push_back(
        fmt::format("tools: the arguments of {} may be any object, because its schema "
                    "is not followed: {}",
                    shown, gbnf.error().why()));
  }
  const auto any = JsonTree::Parse("{}");
  std::vector<std::string> none;
  return Prefixed(NotatedSchema(*any, "", make, none).AnyRules().value(), prefix);
}

}  // namespace foretoken::calls
