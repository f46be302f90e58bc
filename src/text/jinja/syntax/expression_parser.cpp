// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/syntax/expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/machine/stack.h"

namespace foretoken::text::jinja {
namespace {

struct SignedOperator {
  std::string_view sign;
  Operator op;
};
constexpr std::array kCompareSigns = {
    SignedOperator{"==", Operator::kEqual},  SignedOperator{"!=", Operator::kNotEqual},
    SignedOperator{"<", Operator::kLess},    SignedOperator{"<=", Operator::kLessEqual},
    SignedOperator{">", Operator::kGreater}, SignedOperator{">=", Operator::kGreaterEqual}};
constexpr std::array kSumSigns = {SignedOperator{"+", Operator::kAdd},
                                  SignedOperator{"-", Operator::kSubtract}};
constexpr std::array kProductSigns = {
    SignedOperator{"*", Operator::kMultiply}, SignedOperator{"/", Operator::kDivide},
    SignedOperator{"//", Operator::kFloorDivide}, SignedOperator{"%", Operator::kModulo}};

template <std::size_t n>
const SignedOperator* FindSign(const std::array<SignedOperator, n>& signs, const Token& token) {
  for (const SignedOperator& row : signs)
    if (token.IsSign(row.sign)) return &row;
  return nullptr;
}

std::vector<ExpressionRef> Parts(ExpressionRef a, ExpressionRef b = nullptr) {
  std::vector<ExpressionRef> parts;
  parts.push_back(std::move(a));
  if (b != nullptr) parts.push_back(std::move(b));
  return parts;
}

Expression Binary(ExpressionKind kind, int line, ExpressionRef a, ExpressionRef b,
                  Operator op = {}) {
  return {
      .kind = kind, .line = line, .parts = Parts(std::move(a), std::move(b)), .operators = {op}};
}

int DepthOf(const ExpressionRef& expression) {
  return expression == nullptr ? 0 : expression->depth;
}

}  // namespace

ExpressionParser::Parsed ExpressionParser::Finish(Expression expression) {
  int depth = 0;
  for (const ExpressionRef& part : expression.parts) depth = std::max(depth, DepthOf(part));
  if (const CallArguments* const arguments = expression.arguments.get()) {
    for (const ExpressionRef& part : arguments->positional) depth = std::max(depth, DepthOf(part));
    for (const Keyword& keyword : arguments->keywords)
      depth = std::max(depth, DepthOf(keyword.value));
    depth = std::max({depth, DepthOf(arguments->list), DepthOf(arguments->dictionary)});
  }
  expression.depth = depth + 1;
  if (expression.depth > kMostNesting)
    return tokens_.Bad(
        fmt::format("expressions are more than {} inside each other; split them", kMostNesting));
  return std::make_unique<Expression>(std::move(expression));
}

Status ExpressionParser::CheckNesting(std::string_view what) const {
  if (depth_ >= kMostNesting)
    return tokens_.Bad(
        fmt::format("{} are more than {} inside each other; split them", what, kMostNesting));
  if (StackLeft() < kLeastParserStack) return tokens_.NoStack(what);
  return {};
}

ExpressionParser::Parsed ExpressionParser::ParseExpression() {
  FORETOKEN_CHECK_OK(CheckNesting("expressions"));
  ++depth_;
  auto parsed = [&]() -> Parsed {
    FORETOKEN_TRY(ExpressionRef value, ParseOr());
    while (tokens_.IsAtName("if")) {
      const int line = tokens_.Take().line;
      FORETOKEN_TRY(ExpressionRef condition, ParseOr());
      ExpressionRef otherwise;
      if (tokens_.SkipName("else")) {
        FORETOKEN_TRY(otherwise, ParseExpression());
      }
      std::vector<ExpressionRef> parts = Parts(std::move(condition), std::move(value));
      parts.push_back(std::move(otherwise));
      FORETOKEN_TRY(
          value,
          Finish({.kind = ExpressionKind::kConditional, .line = line, .parts = std::move(parts)}));
    }
    return value;
  }();
  --depth_;
  return parsed;
}

ExpressionParser::Parsed ExpressionParser::ParseUnconditional() {
  return ParseOr();
}

ExpressionParser::Parsed ExpressionParser::ParseOr() {
  FORETOKEN_TRY(ExpressionRef left, ParseAnd());
  while (tokens_.IsAtName("or")) {
    const int line = tokens_.Take().line;
    FORETOKEN_TRY(ExpressionRef right, ParseAnd());
    FORETOKEN_TRY(left,
                  Finish(Binary(ExpressionKind::kOr, line, std::move(left), std::move(right))));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::ParseAnd() {
  FORETOKEN_TRY(ExpressionRef left, ParseNot());
  while (tokens_.IsAtName("and")) {
    const int line = tokens_.Take().line;
    FORETOKEN_TRY(ExpressionRef right, ParseNot());
    FORETOKEN_TRY(left,
                  Finish(Binary(ExpressionKind::kAnd, line, std::move(left), std::move(right))));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::ParseNot() {
  std::vector<int> lines;
  while (tokens_.IsAtName("not")) lines.push_back(tokens_.Take().line);
  FORETOKEN_TRY(ExpressionRef inner, ParseCompare());
  for (; !lines.empty(); lines.pop_back()) {
    FORETOKEN_TRY(inner, Finish({.kind = ExpressionKind::kNot,
                                 .line = lines.back(),
                                 .parts = Parts(std::move(inner))}));
  }
  return inner;
}

ExpressionParser::Parsed ExpressionParser::ParseCompare() {
  Expression compare{.kind = ExpressionKind::kCompare, .line = tokens_.line()};
  FORETOKEN_TRY(ExpressionRef first, ParseSum());
  compare.parts.push_back(std::move(first));
  for (;;) {
    if (const SignedOperator* const row = FindSign(kCompareSigns, tokens_.Current())) {
      tokens_.Take();
      compare.operators.push_back(row->op);
    } else if (tokens_.SkipName("in")) {
      compare.operators.push_back(Operator::kIn);
    } else if (tokens_.IsAtName("not") && tokens_.Ahead().IsName("in")) {
      tokens_.Take();
      tokens_.Take();
      compare.operators.push_back(Operator::kNotIn);
    } else {
      break;
    }
    FORETOKEN_TRY(ExpressionRef next, ParseSum());
    compare.parts.push_back(std::move(next));
  }
  if (compare.operators.empty()) return std::move(compare.parts.front());
  return Finish(std::move(compare));
}

ExpressionParser::Parsed ExpressionParser::ParseSum() {
  FORETOKEN_TRY(ExpressionRef left, ParseConcatenation());
  while (const SignedOperator* const row = FindSign(kSumSigns, tokens_.Current())) {
    const int line = tokens_.Take().line;
    FORETOKEN_TRY(ExpressionRef right, ParseConcatenation());
    FORETOKEN_TRY(left, Finish(Binary(ExpressionKind::kArithmetic, line, std::move(left),
                                      std::move(right), row->op)));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::ParseConcatenation() {
  Expression all{.kind = ExpressionKind::kConcatenate, .line = tokens_.line()};
  do {
    FORETOKEN_TRY(ExpressionRef next, ParseProduct());
    all.parts.push_back(std::move(next));
  } while (tokens_.SkipSign("~"));
  if (all.parts.size() == 1) return std::move(all.parts.front());
  return Finish(std::move(all));
}

ExpressionParser::Parsed ExpressionParser::ParseProduct() {
  FORETOKEN_TRY(ExpressionRef left, ParsePower());
  while (const SignedOperator* const row = FindSign(kProductSigns, tokens_.Current())) {
    const int line = tokens_.Take().line;
    FORETOKEN_TRY(ExpressionRef right, ParsePower());
    FORETOKEN_TRY(left, Finish(Binary(ExpressionKind::kArithmetic, line, std::move(left),
                                      std::move(right), row->op)));
  }
  return left;
}

ExpressionParser::Parsed ExpressionParser::ParsePower() {
  FORETOKEN_TRY(ExpressionRef left, ParseUnary(true));
  while (tokens_.IsAtSign("**")) {
    const int line = tokens_.Take().line;
    FORETOKEN_TRY(ExpressionRef right, ParseUnary(true));
    FORETOKEN_TRY(left, Finish(Binary(ExpressionKind::kArithmetic, line, std::move(left),
                                      std::move(right), Operator::kPower)));
  }
  return left;
}

// A sign binds to what is behind it, with its attributes and calls; filters apply to the result.
ExpressionParser::Parsed ExpressionParser::ParseUnary(bool with_filters) {
  std::vector<std::pair<ExpressionKind, int>> signs;
  while (tokens_.IsAtSign("-") || tokens_.IsAtSign("+")) {
    const Token& sign = tokens_.Take();
    signs.emplace_back(sign.IsSign("-") ? ExpressionKind::kNegative : ExpressionKind::kPositive,
                       sign.line);
  }
  FORETOKEN_TRY(ExpressionRef inner, ParsePrimary());
  FORETOKEN_TRY(inner, ParsePostfix(std::move(inner)));
  for (; !signs.empty(); signs.pop_back()) {
    FORETOKEN_TRY(inner, Finish({.kind = signs.back().first,
                                 .line = signs.back().second,
                                 .parts = Parts(std::move(inner))}));
  }
  return with_filters ? ParseBehind(std::move(inner)) : std::move(inner);
}

ExpressionParser::Parsed ExpressionParser::ParsePrimary() {
  Expression literal{.kind = ExpressionKind::kLiteral, .line = tokens_.line()};
  switch (tokens_.Current().kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kString: {
      Characters text;
      while (tokens_.IsAt(TokenKind::kString)) text += tokens_.Take().text;
      literal.value = ConstantText(std::move(text));
      break;
    }
    case TokenKind::kInteger:
      literal.value = Value(tokens_.Take().integer);
      break;
    case TokenKind::kFloat:
      literal.value = Value(tokens_.Take().number);
      break;
    default:
      if (tokens_.IsAtSign("(")) return ParseParenthesis();
      if (tokens_.IsAtSign("[")) return ParseList();
      if (tokens_.IsAtSign("{")) return ParseDictionary();
      return tokens_.Unexpected("an expression");
  }
  return Finish(std::move(literal));
}

ExpressionParser::Parsed ExpressionParser::ParseName() {
  const Token& token = tokens_.Take();
  Expression literal{.kind = ExpressionKind::kLiteral, .line = token.line};
  const std::string& name = token.word;
  if (name == "true" || name == "True") {
    literal.value = Value(true);
  } else if (name == "false" || name == "False") {
    literal.value = Value(false);
  } else if (name == "none" || name == "None") {
    literal.value = Value(None{});
  } else {
    used_.caller |= name == "caller";
    used_.varargs |= name == "varargs";
    used_.kwargs |= name == "kwargs";
    return Finish({.kind = ExpressionKind::kName, .line = token.line, .name = name});
  }
  return Finish(std::move(literal));
}

bool ExpressionParser::IsTupleEnd(std::string_view end_name) const {
  return tokens_.IsAt(TokenKind::kOutputEnd) || tokens_.IsAt(TokenKind::kStatementEnd) ||
         tokens_.IsAtSign(")") || (!end_name.empty() && tokens_.IsAtName(end_name));
}

ExpressionParser::Parsed ExpressionParser::ParseTuple(Conditions conditions,
                                                      std::string_view end_name) {
  Expression tuple{.kind = ExpressionKind::kTuple, .line = tokens_.line()};
  bool commas = false;
  while (!IsTupleEnd(end_name)) {
    FORETOKEN_TRY(ExpressionRef part,
                  conditions == Conditions::kAllowed ? ParseExpression() : ParseUnconditional());
    tuple.parts.push_back(std::move(part));
    if (!tokens_.SkipSign(",")) break;
    commas = true;
  }
  if (!commas && tuple.parts.empty()) return tokens_.Unexpected("an expression");
  if (!commas) return std::move(tuple.parts.front());
  return Finish(std::move(tuple));
}

ExpressionParser::Parsed ExpressionParser::ParseParenthesis() {
  const int line = tokens_.Take().line;
  if (tokens_.SkipSign(")")) return Finish({.kind = ExpressionKind::kTuple, .line = line});
  FORETOKEN_TRY(ExpressionRef inner, ParseTuple(Conditions::kAllowed));
  FORETOKEN_CHECK_OK(tokens_.ExpectSign(")"));
  return inner;
}

ExpressionParser::Parsed ExpressionParser::ParseList() {
  Expression list{.kind = ExpressionKind::kList, .line = tokens_.Take().line};
  while (!tokens_.IsAtSign("]")) {
    if (!list.parts.empty()) FORETOKEN_CHECK_OK(tokens_.ExpectSign(","));
    if (tokens_.IsAtSign("]")) break;
    FORETOKEN_TRY(ExpressionRef part, ParseExpression());
    list.parts.push_back(std::move(part));
  }
  FORETOKEN_CHECK_OK(tokens_.ExpectSign("]"));
  return Finish(std::move(list));
}

ExpressionParser::Parsed ExpressionParser::ParseDictionary() {
  Expression dictionary{.kind = ExpressionKind::kDictionary, .line = tokens_.Take().line};
  while (!tokens_.IsAtSign("}")) {
    if (!dictionary.parts.empty()) FORETOKEN_CHECK_OK(tokens_.ExpectSign(","));
    if (tokens_.IsAtSign("}")) break;
    FORETOKEN_TRY(ExpressionRef key, ParseExpression());
    FORETOKEN_CHECK_OK(tokens_.ExpectSign(":"));
    FORETOKEN_TRY(ExpressionRef value, ParseExpression());
    dictionary.parts.push_back(std::move(key));
    dictionary.parts.push_back(std::move(value));
  }
  FORETOKEN_CHECK_OK(tokens_.ExpectSign("}"));
  return Finish(std::move(dictionary));
}

Result<Target> ExpressionParser::ParseSingleTarget(bool with_attributes) {
  Target target;
  if (tokens_.SkipSign("(")) {
    FORETOKEN_TRY(target, ParseTarget(false));
    FORETOKEN_CHECK_OK(tokens_.ExpectSign(")"));
    return target;
  }
  FORETOKEN_TRY(target.name, tokens_.TakeName());
  constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                          "True", "False", "None"};
  if (std::find(kConstants.begin(), kConstants.end(), target.name) != kConstants.end())
    return tokens_.Bad(fmt::format("'{}' is a constant; assign to another name", target.name));
  if (with_attributes && tokens_.SkipSign(".")) {
    FORETOKEN_TRY(target.attribute, tokens_.TakeName());
  }
  return target;
}

Result<Target> ExpressionParser::ParseTarget(bool with_attributes, std::string_view end_name) {
  FORETOKEN_CHECK_OK(CheckNesting("targets"));
  ++depth_;
  auto parsed = [&]() -> Result<Target> {
    Target all{.tuple = false};
    while (!IsTupleEnd(end_name)) {
      FORETOKEN_TRY(Target one, ParseSingleTarget(with_attributes));
      all.parts.push_back(std::move(one));
      if (!tokens_.SkipSign(",")) break;
      all.tuple = true;
    }
    if (all.parts.empty()) return tokens_.Unexpected("a name");
    if (!all.tuple) {
      Target only = std::move(all.parts.front());
      return only;
    }
    return all;
  }();
  --depth_;
  return parsed;
}

}  // namespace foretoken::text::jinja
