// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/expression_parser.h: tokens to expressions, with Jinja's order of operators.
#pragma once

#include <set>
#include <string>

#include "text/jinja/syntax/node.h"
#include "text/jinja/syntax/token_stream.h"

namespace foretoken::text::jinja {

// How far expressions and blocks may be inside each other.
inline constexpr int kMostNesting = 200;
// What is left of a thread's stack before the parser goes a level deeper, at least.
inline constexpr std::size_t kLeastParserStack = 64 << 10;

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  using Parsed = Result<ExpressionRef>;
  [[nodiscard]] Parsed ParseExpression();     // may have `if` and `else`
  [[nodiscard]] Parsed ParseUnconditional();  // has none outside of parentheses
  // Expressions with commas between them are a tuple.
  enum class Conditions { kAllowed, kNone };
  [[nodiscard]] Parsed ParseTuple(Conditions conditions, std::string_view end_name = {});
  // Filters behind `input`, which is null for the text of a block. `inline_first`: the first filter
  // has no bar before it.
  [[nodiscard]] Parsed ParseFilters(ExpressionRef input, bool inline_first);
  [[nodiscard]] Result<Target> ParseTarget(bool with_attributes, std::string_view end_name = {});

  // Which names since the last Forget were used; for caller, varargs and kwargs of macros.
  struct SpecialNames {
    bool caller = false, varargs = false, kwargs = false;
  };
  SpecialNames& used() { return used_; }

 private:
  Parsed ParseOr();
  Parsed ParseAnd();
  Parsed ParseNot();
  Parsed ParseCompare();
  Parsed ParseSum();
  Parsed ParseConcatenation();
  Parsed ParseProduct();
  Parsed ParsePower();
  Parsed ParseUnary(bool with_filters);
  Parsed ParsePrimary();
  Parsed ParseName();
  Parsed ParseParenthesis();
  Parsed ParseList();
  Parsed ParseDictionary();
  Parsed ParsePostfix(ExpressionRef input);
  Parsed ParseBehind(ExpressionRef input);
  Parsed ParseAttribute(ExpressionRef input);
  Parsed ParseSubscript(ExpressionRef input);
  Parsed ParseSlice(ExpressionRef input, ExpressionRef first);
  Parsed ParseCall(ExpressionRef input);
  Parsed ParseTest(ExpressionRef input);
  Result<std::unique_ptr<CallArguments>> ParseArguments();
  // `names`: those of the arguments so far.
  Status ParseArgument(CallArguments& arguments, std::set<std::string>& names);
  Result<Target> ParseSingleTarget(bool with_attributes);
  bool IsTupleEnd(std::string_view end_name) const;
  Result<std::string> ParseDottedName();
  // Error: what is read is too deep, or the stack has no room for a level more.
  Status CheckNesting(std::string_view what) const;
  // Checks that the expression is not too deep.
  Parsed Finish(Expression expression);

  TokenStream& tokens_;
  SpecialNames used_;
  int depth_ = 0;
};

}  // namespace foretoken::text::jinja
