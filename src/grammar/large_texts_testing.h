// SPDX-License-Identifier: Apache-2.0
// grammar/large_texts_testing.h: grammars, schemas, patterns and choices that take long, for tests.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "foretoken/structured_output.h"
#include "grammar/grammar_cache.h"
#include "grammar/words_testing.h"

namespace foretoken::grammar {

struct LargeText {
  const char* name;
  std::size_t least_work;  // steps that are counted, at least
  std::function<Status()> compile;
};

template <typename T>
Status StatusOf(const Result<T>& result) {
  if (!result) return Fail(result.error());
  return {};
}

// n times part(i), with commas.
inline std::string List(int n, const std::function<std::string(int)>& part) {
  std::string all;
  for (int i = 0; i < n; ++i) (all += i > 0 ? "," : "") += part(i);
  return all;
}

inline LargeText LargeSchema(const char* name, const std::string& schema) {
  return {name, schema.size() / 4, [schema] { return StatusOf(JsonSchemaGrammar(schema)); }};
}
inline LargeText LargeGrammar(const char* name, std::size_t least_work, const std::string& text) {
  return {name, least_work, [text] { return CheckGrammar(text); }};
}

inline std::vector<LargeText> LargeTexts() {
  constexpr int kRules = 4000, kMembers = 1500, kGroups = 3000, kChoices = 4000;
  const auto numbered = [](const char* before, int i, const char* after) {
    return before + std::to_string(i) + after;
  };
  std::string rules = "root ::= r0\n", pattern;
  for (int i = 0; i < kRules; ++i)
    rules += numbered("r", i, " ::= ") + numbered("\"word ", i, "\" [a-z0-9]{0,3} ") +
             numbered("(\"x\" | r", (i + 1) % kRules, ")\n");
  for (int i = 0; i < kGroups; ++i) pattern += numbered("(a", i, "|[b-d]+)?");
  std::vector<std::string> choices;
  for (int i = 0; i < kChoices; ++i) choices.push_back(numbered("choice number ", i, ""));
  const std::string members =
      List(kMembers, [&](int i) { return numbered("\"member ", i, "\": {\"type\": \"null\"}"); });
  const std::string values = List(kMembers, [&](int i) { return numbered("\"value ", i, "\""); });
  const std::string alternatives = List(
      kMembers, [&](int i) { return numbered("{\"type\": \"integer\", \"minimum\": ", i, "}"); });
  const std::string masked = "root ::= ([a-z]{0,300} | [a-y]{0,300} | [a-x]{0,300})*";
  return {LargeGrammar("rules", rules.size() / 4, rules),
          LargeGrammar("a literal", 200'000, "root ::= \"" + std::string(200'000, 'a') + "\""),
          LargeGrammar("repetitions", 120'000, "root ::= (\"a\" [b-y]){60000}"),
          {"a first mask", 20'000,
           [masked, words = Words(4000)] { return StatusOf(GrammarCache(words, {}).Get(masked)); }},
          LargeSchema("members", "{\"type\": \"object\", \"properties\": {" + members + "}}"),
          LargeSchema("values", "{\"enum\": [" + values + "]}"),
          LargeSchema("alternatives", "{\"anyOf\": [" + alternatives + "]}"),
          {"a pattern", pattern.size(), [pattern] { return StatusOf(RegexGrammar(pattern)); }},
          {"choices", kChoices * 16, [choices] { return StatusOf(ChoiceGrammar(choices)); }}};
}

}  // namespace foretoken::grammar
