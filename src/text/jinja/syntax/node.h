// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/node.h: a template as a tree of statements and expressions.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/values/arithmetic.h"
#include "text/jinja/values/value.h"

namespace foretoken::text::jinja {

struct Expression;
using ExpressionRef = std::unique_ptr<Expression>;  // may be null where a part is left out

enum class ExpressionKind {
  kLiteral,      // value
  kName,         // name
  kList,         // parts
  kTuple,        // parts
  kDictionary,   // parts: key, value, key, value, ...
  kNegative,     // parts[0]
  kPositive,     // parts[0]
  kNot,          // parts[0]
  kAnd,          // parts[0], parts[1]
  kOr,           // parts[0], parts[1]
  kConditional,  // parts[1] if parts[0] else parts[2], which may be null
  kCompare,      // parts, with operators between them
  kArithmetic,   // parts[0] operators[0] parts[1]
  kConcatenate,  // parts
  kAttribute,    // parts[0].name
  kItem,         // parts[0][parts[1]]
  kSlice,        // parts[0][parts[1]:parts[2]:parts[3]]
  kCall,         // parts[0](arguments)
  kFilter,       // parts[0] | name(arguments); null: the text of a block
  kTest,         // parts[0] is name(arguments)
};

struct Keyword {
  std::string name;
  ExpressionRef value;
};

struct CallArguments {
  std::vector<ExpressionRef> positional;
  std::vector<Keyword> keywords;
  ExpressionRef list, dictionary;  // behind * and **
};

struct Expression {
  ExpressionKind kind;
  int line = 1;
  int depth = 1;
  std::string name = {};
  Value value = {};
  std::vector<ExpressionRef> parts = {};
  std::vector<Operator> operators = {};
  std::unique_ptr<CallArguments> arguments = {};
};

// What a value is assigned to: a name, an attribute of a namespace, or several targets.
struct Target {
  std::string name;
  std::string attribute;
  std::vector<Target> parts;
  bool tuple = false;
};

struct Statement;
using Block = std::vector<Statement>;

enum class StatementKind {
  kData,      // text
  kOutput,    // expression
  kIf,        // branches
  kFor,       // loop
  kSet,       // target = expression
  kSetBlock,  // target = body, through the filters of expression, which may be null
  kMacro,     // macro
  kCall,      // expression, a call; macro is its caller()
  kFilter,    // expression of filters, over body
  kWith,      // assignments around body
  kScope,     // body: what {% generation %} holds
  kBreak,
  kContinue,
};

struct Branch {
  ExpressionRef condition;  // null: else
  Block body;
};

struct ForStatement {
  Target target;
  ExpressionRef items, condition;  // condition may be null
  bool recursive = false;
  Block body, otherwise;
};

struct MacroStatement {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionRef> defaults;  // of the last parameters
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  StatementKind kind;
  int line = 1;
  Value text = {};
  ExpressionRef expression = {};
  Target target = {};
  std::vector<Branch> branches = {};
  std::vector<std::pair<Target, ExpressionRef>> assignments = {};
  Block body = {};
  std::unique_ptr<ForStatement> loop = {};
  std::unique_ptr<MacroStatement> macro = {};
};

}  // namespace foretoken::text::jinja
