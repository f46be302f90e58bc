// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/syntax/parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/machine/stack.h"
#include "text/jinja/syntax/expression_parser.h"
#include "text/jinja/syntax/lexer.h"

namespace foretoken::text::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;
constexpr auto kAllowed = ExpressionParser::Conditions::kAllowed;
constexpr auto kNoConditions = ExpressionParser::Conditions::kNone;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Block> ParseTemplate() {
    FORETOKEN_TRY(Block block, ParseBlock({}));
    return block;
  }

 private:
  using Parsed = Result<Statement>;

  // Statements up to one of `ends`, whose name is then the current token; without ends, all.
  Result<Block> ParseBlock(Names ends) {
    if (++depth_ > kMostNesting)
      return tokens_.Bad(
          fmt::format("blocks are more than {} inside each other; split them", kMostNesting));
    if (StackLeft() < kLeastParserStack) return tokens_.NoStack("blocks");
    Block block;
    for (;;) {
      const int line = tokens_.line();
      if (tokens_.IsAt(TokenKind::kData)) {
        block.push_back({.kind = StatementKind::kData,
                         .line = line,
                         .text = ConstantText(tokens_.Take().text)});
      } else if (tokens_.IsAt(TokenKind::kOutputBegin)) {
        tokens_.Take();
        FORETOKEN_TRY(ExpressionRef value, expressions_.ParseTuple(kAllowed));
        FORETOKEN_CHECK_OK(tokens_.Expect(TokenKind::kOutputEnd));
        block.push_back(
            {.kind = StatementKind::kOutput, .line = line, .expression = std::move(value)});
      } else if (tokens_.IsAt(TokenKind::kStatementBegin)) {
        tokens_.Take();
        for (const std::string_view end : ends)
          if (tokens_.IsAtName(end)) return Finished(std::move(block));
        FORETOKEN_TRY(Statement statement, ParseStatement());
        FORETOKEN_CHECK_OK(tokens_.Expect(TokenKind::kStatementEnd));
        block.push_back(std::move(statement));
      } else {
        if (ends.size() == 0) return Finished(std::move(block));
        return tokens_.Bad(
            fmt::format("a block has no end; close it with {{% {} %}}", *(ends.end() - 1)));
      }
    }
  }

  Result<Block> Finished(Block block) {
    --depth_;
    return block;
  }

  // The body of the statement whose beginning is read. The end's name is taken if it is the only.
  Result<Block> ParseBody(Names ends) {
    tokens_.SkipSign(":");
    FORETOKEN_CHECK_OK(tokens_.Expect(TokenKind::kStatementEnd));
    FORETOKEN_TRY(Block body, ParseBlock(ends));
    if (ends.size() == 1) tokens_.Take();
    return body;
  }

  Parsed ParseStatement() {
    const int line = tokens_.line();
    FORETOKEN_TRY(const std::string name, tokens_.TakeName());
    Statement s{.kind = StatementKind::kScope, .line = line};
    Status status;
    if (name == "if") {
      status = ParseIf(s);
    } else if (name == "for") {
      status = ParseFor(s);
    } else if (name == "set") {
      status = ParseSet(s);
    } else if (name == "macro") {
      status = ParseMacro(s);
    } else if (name == "call") {
      status = ParseCall(s);
    } else if (name == "filter") {
      status = ParseFilter(s);
    } else if (name == "with") {
      status = ParseWith(s);
    } else if (name == "generation") {
      status = ParseGeneration(s);
    } else if (name == "print") {
      s.kind = StatementKind::kOutput;
      FORETOKEN_TRY(s.expression, expressions_.ParseExpression());
    } else if (name == "break" || name == "continue") {
      s.kind = name == "break" ? StatementKind::kBreak : StatementKind::kContinue;
      if (n_loops_ == 0)
        return tokens_.Bad(fmt::format("'{}' is outside of a loop; remove it", name));
    } else {
      return Unknown(name);
    }
    FORETOKEN_CHECK_OK(status);
    return s;
  }

  Parsed Unknown(const std::string& name) const {
    constexpr std::array<std::string_view, 6> kLoading = {"include", "import",     "from",
                                                          "extends", "autoescape", "block"};
    if (std::find(kLoading.begin(), kLoading.end(), name) == kLoading.end())
      return tokens_.Bad(fmt::format("'{}' is not a statement; correct the template", Shown(name)));
    auto bad = tokens_.Bad(fmt::format(
        "the statement '{}' is not supported in chat templates; write them without it", name));
    bad.value().code = ErrorCode::kUnsupported;
    return bad;
  }

  Status ParseIf(Statement& s) {
    s.kind = StatementKind::kIf;
    for (;;) {
      Branch branch;
      FORETOKEN_TRY(branch.condition, expressions_.ParseTuple(kNoConditions));
      FORETOKEN_TRY(branch.body, ParseBody({"elif", "else", "endif"}));
      s.branches.push_back(std::move(branch));
      if (tokens_.SkipName("elif")) continue;
      if (!tokens_.SkipName("else")) return tokens_.ExpectName("endif");
      Branch otherwise;
      FORETOKEN_TRY(otherwise.body, ParseBody({"endif"}));
      s.branches.push_back(std::move(otherwise));
      return {};
    }
  }

  Status ParseFor(Statement& s) {
    s.kind = StatementKind::kFor;
    s.loop = std::make_unique<ForStatement>();
    ForStatement& loop = *s.loop;
    FORETOKEN_TRY(loop.target, expressions_.ParseTarget(false, "in"));
    FORETOKEN_CHECK_OK(tokens_.ExpectName("in"));
    FORETOKEN_TRY(loop.items, expressions_.ParseTuple(kNoConditions, "recursive"));
    if (tokens_.SkipName("if")) {
      FORETOKEN_TRY(loop.condition, expressions_.ParseExpression());
    }
    loop.recursive = tokens_.SkipName("recursive");
    ++n_loops_;
    FORETOKEN_TRY(loop.body, ParseBody({"else", "endfor"}));
    --n_loops_;
    if (!tokens_.SkipName("else")) return tokens_.ExpectName("endfor");
    FORETOKEN_TRY(loop.otherwise, ParseBody({"endfor"}));
    return {};
  }

  Status ParseSet(Statement& s) {
    FORETOKEN_TRY(s.target, expressions_.ParseTarget(true));
    if (tokens_.SkipSign("=")) {
      s.kind = StatementKind::kSet;
      FORETOKEN_TRY(s.expression, expressions_.ParseTuple(kAllowed));
      return {};
    }
    s.kind = StatementKind::kSetBlock;
    FORETOKEN_TRY(s.expression, expressions_.ParseFilters(nullptr, false));
    return ParseOwnBody("endset", s.body);
  }

  // A body that is a function of its own: loops around it do not end in it.
  Status ParseOwnBody(std::string_view end, Block& body) {
    const int n_loops = std::exchange(n_loops_, 0);
    FORETOKEN_TRY(body, ParseBody({end}));
    n_loops_ = n_loops;
    return {};
  }

  Status ParseSignature(MacroStatement& macro) {
    FORETOKEN_CHECK_OK(tokens_.ExpectSign("("));
    while (!tokens_.IsAtSign(")")) {
      if (!macro.parameters.empty()) FORETOKEN_CHECK_OK(tokens_.ExpectSign(","));
      FORETOKEN_TRY(std::string name, tokens_.TakeName());
      macro.parameters.push_back(std::move(name));
      if (tokens_.SkipSign("=")) {
        FORETOKEN_TRY(ExpressionRef value, expressions_.ParseExpression());
        macro.defaults.push_back(std::move(value));
      } else if (!macro.defaults.empty()) {
        return tokens_.Bad(
            "a parameter without a default follows one with a default; move it to the front");
      }
    }
    return tokens_.ExpectSign(")");
  }

  Status ParseMacroBody(MacroStatement& macro, std::string_view end) {
    const auto outer = std::exchange(expressions_.used(), {});
    FORETOKEN_CHECK_OK(ParseOwnBody(end, macro.body));
    const auto inner = expressions_.used();
    expressions_.used() = {.caller = outer.caller || inner.caller,
                           .varargs = outer.varargs || inner.varargs,
                           .kwargs = outer.kwargs || inner.kwargs};
    const auto is_parameter = [&](std::string_view name) {
      return std::find(macro.parameters.begin(), macro.parameters.end(), name) !=
             macro.parameters.end();
    };
    macro.uses_caller = inner.caller && !is_parameter("caller");
    macro.uses_varargs = inner.varargs && !is_parameter("varargs");
    macro.uses_kwargs = inner.kwargs && !is_parameter("kwargs");
    return {};
  }

  Status ParseMacro(Statement& s) {
    s.kind = StatementKind::kMacro;
    s.macro = std::make_unique<MacroStatement>();
    FORETOKEN_TRY(s.macro->name, tokens_.TakeName());
    FORETOKEN_CHECK_OK(ParseSignature(*s.macro));
    return ParseMacroBody(*s.macro, "endmacro");
  }

  Status ParseCall(Statement& s) {
    s.kind = StatementKind::kCall;
    s.macro = std::make_unique<MacroStatement>();
    s.macro->name = "caller";
    if (tokens_.IsAtSign("(")) FORETOKEN_CHECK_OK(ParseSignature(*s.macro));
    FORETOKEN_TRY(s.expression, expressions_.ParseExpression());
    if (s.expression->kind != ExpressionKind::kCall) return tokens_.Unexpected("a call");
    return ParseMacroBody(*s.macro, "endcall");
  }

  Status ParseFilter(Statement& s) {
    s.kind = StatementKind::kFilter;
    FORETOKEN_TRY(s.expression, expressions_.ParseFilters(nullptr, true));
    return ParseOwnBody("endfilter", s.body);
  }

  Status ParseWith(Statement& s) {
    s.kind = StatementKind::kWith;
    while (!tokens_.IsAt(TokenKind::kStatementEnd)) {
      if (!s.assignments.empty()) FORETOKEN_CHECK_OK(tokens_.ExpectSign(","));
      FORETOKEN_TRY(Target target, expressions_.ParseTarget(false));
      FORETOKEN_CHECK_OK(tokens_.ExpectSign("="));
      FORETOKEN_TRY(ExpressionRef value, expressions_.ParseExpression());
      s.assignments.emplace_back(std::move(target), std::move(value));
    }
    FORETOKEN_TRY(s.body, ParseBody({"endwith"}));
    return {};
  }

  Status ParseGeneration(Statement& s) { return ParseOwnBody("endgeneration", s.body); }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  int depth_ = 0, n_loops_ = 0;
};

}  // namespace

Result<Block> Parse(std::string_view source) {
  FORETOKEN_TRY(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).ParseTemplate();
}

}  // namespace foretoken::text::jinja
