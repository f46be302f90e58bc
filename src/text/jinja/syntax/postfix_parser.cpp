// SPDX-License-Identifier: Apache-2.0
// What stands behind an expression: attributes, subscripts, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/syntax/expression_parser.h"

namespace foretoken::text::jinja {
namespace {

std::vector<ExpressionRef> One(ExpressionRef part) {
  std::vector<ExpressionRef> parts;
  parts.push_back(std::move(part));
  return parts;
}

}  // namespace

ExpressionParser::Parsed ExpressionParser::ParsePostfix(ExpressionRef input) {
  for (;;) {
    if (tokens_.IsAtSign(".")) {
      FORETOKEN_TRY(input, ParseAttribute(std::move(input)));
    } else if (tokens_.IsAtSign("[")) {
      FORETOKEN_TRY(input, ParseSubscript(std::move(input)));
    } else if (tokens_.IsAtSign("(")) {
      FORETOKEN_TRY(input, ParseCall(std::move(input)));
    } else {
      return input;
    }
  }
}

ExpressionParser::Parsed ExpressionParser::ParseBehind(ExpressionRef input) {
  for (;;) {
    if (tokens_.IsAtSign("|")) {
      FORETOKEN_TRY(input, ParseFilters(std::move(input), false));
    } else if (tokens_.IsAtName("is")) {
      FORETOKEN_TRY(input, ParseTest(std::move(input)));
    } else if (tokens_.IsAtSign("(")) {
      FORETOKEN_TRY(input, ParseCall(std::move(input)));
    } else {
      return input;
    }
  }
}

ExpressionParser::Parsed ExpressionParser::ParseAttribute(ExpressionRef input) {
  const int line = tokens_.Take().line;
  if (tokens_.IsAt(TokenKind::kName))
    return Finish({.kind = ExpressionKind::kAttribute,
                   .line = line,
                   .name = tokens_.Take().word,
                   .parts = One(std::move(input))});
  if (!tokens_.IsAt(TokenKind::kInteger)) return tokens_.Unexpected("a name or a number");
  FORETOKEN_TRY(ExpressionRef index, Finish({.kind = ExpressionKind::kLiteral,
                                             .line = line,
                                             .value = Value(tokens_.Take().integer)}));
  Expression item{.kind = ExpressionKind::kItem, .line = line, .parts = One(std::move(input))};
  item.parts.push_back(std::move(index));
  return Finish(std::move(item));
}

ExpressionParser::Parsed ExpressionParser::ParseSubscript(ExpressionRef input) {
  const int line = tokens_.Take().line;
  ExpressionRef first;
  if (!tokens_.IsAtSign(":")) {
    FORETOKEN_TRY(first, ParseTuple(Conditions::kAllowed));
  }
  if (tokens_.IsAtSign(":")) return ParseSlice(std::move(input), std::move(first));
  FORETOKEN_CHECK_OK(tokens_.ExpectSign("]"));
  Expression item{.kind = ExpressionKind::kItem, .line = line, .parts = One(std::move(input))};
  item.parts.push_back(std::move(first));
  return Finish(std::move(item));
}

ExpressionParser::Parsed ExpressionParser::ParseSlice(ExpressionRef input, ExpressionRef first) {
  Expression slice{
      .kind = ExpressionKind::kSlice, .line = tokens_.line(), .parts = One(std::move(input))};
  slice.parts.push_back(std::move(first));
  while (tokens_.SkipSign(":")) {
    ExpressionRef part;
    if (!tokens_.IsAtSign(":") && !tokens_.IsAtSign("]")) {
      FORETOKEN_TRY(part, ParseExpression());
    }
    slice.parts.push_back(std::move(part));
  }
  if (slice.parts.size() > 4) return tokens_.Bad("a slice has at most three parts; remove one");
  slice.parts.resize(4);
  FORETOKEN_CHECK_OK(tokens_.ExpectSign("]"));
  return Finish(std::move(slice));
}

ExpressionParser::Parsed ExpressionParser::ParseCall(ExpressionRef input) {
  const int line = tokens_.line();
  FORETOKEN_TRY(std::unique_ptr<CallArguments> arguments, ParseArguments());
  return Finish({.kind = ExpressionKind::kCall,
                 .line = line,
                 .parts = One(std::move(input)),
                 .arguments = std::move(arguments)});
}

Result<std::unique_ptr<CallArguments>> ExpressionParser::ParseArguments() {
  FORETOKEN_CHECK_OK(tokens_.ExpectSign("("));
  auto arguments = std::make_unique<CallArguments>();
  bool first = true;
  std::set<std::string> names;
  while (!tokens_.IsAtSign(")")) {
    if (!first) FORETOKEN_CHECK_OK(tokens_.ExpectSign(","));
    first = false;
    if (tokens_.IsAtSign(")")) break;
    FORETOKEN_CHECK_OK(ParseArgument(*arguments, names));
  }
  FORETOKEN_CHECK_OK(tokens_.ExpectSign(")"));
  return arguments;
}

Status ExpressionParser::ParseArgument(CallArguments& arguments, std::set<std::string>& names) {
  const bool closed = arguments.dictionary != nullptr;
  if (tokens_.IsAtSign("*") && !closed && arguments.list == nullptr) {
    tokens_.Take();
    FORETOKEN_TRY(arguments.list, ParseExpression());
  } else if (tokens_.IsAtSign("**") && !closed) {
    tokens_.Take();
    FORETOKEN_TRY(arguments.dictionary, ParseExpression());
  } else if (tokens_.IsAt(TokenKind::kName) && tokens_.Ahead().IsSign("=") && !closed) {
    std::string name = tokens_.Take().word;
    tokens_.Take();
    if (!names.insert(name).second)
      return tokens_.Bad(fmt::format("argument '{}' is given twice; remove one", Shown(name)));
    FORETOKEN_TRY(ExpressionRef value, ParseExpression());
    arguments.keywords.push_back({std::move(name), std::move(value)});
  } else {
    if (closed || arguments.list != nullptr || !arguments.keywords.empty())
      return tokens_.Bad(
          "an argument without a name follows one with a name; move it to the front");
    FORETOKEN_TRY(ExpressionRef value, ParseExpression());
    arguments.positional.push_back(std::move(value));
  }
  return {};
}

Result<std::string> ExpressionParser::ParseDottedName() {
  FORETOKEN_TRY(std::string name, tokens_.TakeName());
  while (tokens_.SkipSign(".")) {
    FORETOKEN_TRY(const std::string more, tokens_.TakeName());
    name += '.' + more;
  }
  return name;
}

ExpressionParser::Parsed ExpressionParser::ParseFilters(ExpressionRef input, bool inline_first) {
  while (inline_first || tokens_.IsAtSign("|")) {
    if (!inline_first) tokens_.Take();
    inline_first = false;
    Expression filter{
        .kind = ExpressionKind::kFilter, .line = tokens_.line(), .parts = One(std::move(input))};
    FORETOKEN_TRY(filter.name, ParseDottedName());
    filter.arguments = std::make_unique<CallArguments>();
    if (tokens_.IsAtSign("(")) {
      FORETOKEN_TRY(filter.arguments, ParseArguments());
    }
    FORETOKEN_TRY(input, Finish(std::move(filter)));
  }
  return input;
}

ExpressionParser::Parsed ExpressionParser::ParseTest(ExpressionRef input) {
  Expression test{
      .kind = ExpressionKind::kTest, .line = tokens_.Take().line, .parts = One(std::move(input))};
  const bool negated = tokens_.SkipName("not");
  FORETOKEN_TRY(test.name, ParseDottedName());
  test.arguments = std::make_unique<CallArguments>();
  const bool value_follows = (tokens_.IsAt(TokenKind::kName) && !tokens_.IsAtName("else") &&
                              !tokens_.IsAtName("or") && !tokens_.IsAtName("and")) ||
                             tokens_.IsAt(TokenKind::kString) ||
                             tokens_.IsAt(TokenKind::kInteger) || tokens_.IsAt(TokenKind::kFloat) ||
                             tokens_.IsAtSign("[") || tokens_.IsAtSign("{");
  if (tokens_.IsAtSign("(")) {
    FORETOKEN_TRY(test.arguments, ParseArguments());
  } else if (value_follows) {
    if (tokens_.IsAtName("is")) return tokens_.Bad("tests cannot follow each other; use `and`");
    FORETOKEN_TRY(ExpressionRef value, ParsePrimary());
    FORETOKEN_TRY(value, ParsePostfix(std::move(value)));
    test.arguments->positional.push_back(std::move(value));
  }
  const int line = test.line;
  FORETOKEN_TRY(ExpressionRef parsed, Finish(std::move(test)));
  if (!negated) return parsed;
  return Finish({.kind = ExpressionKind::kNot, .line = line, .parts = One(std::move(parsed))});
}

}  // namespace foretoken::text::jinja
