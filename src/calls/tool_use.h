// SPDX-License-Identifier: Apache-2.0
// calls/tool_use.h: the tools that an answer may call, and what an answer with calls is made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken::calls {

struct Tool {
  std::string name;
  std::string parameters_json = {};  // a JSON Schema of its arguments; empty: any object
};

// What a request wants of its answer.
struct ToolUse {
  std::vector<Tool> tools;        // at least one
  bool required = false;          // the answer has a call
  bool several = true;            // it may have more than one
  std::string text_grammar = {};  // GBNF of an answer without calls; empty: any text
};

// An answer in order: thoughts, text, and calls, each of which begins with its name and goes on with
// its arguments, a JSON object, in one part or several.
struct AnswerPart {
  enum class Kind { kText, kName, kArguments, kThought };
  Kind kind = Kind::kText;
  std::string text;

  friend bool operator==(const AnswerPart&, const AnswerPart&) = default;
};

// Adds to the last part if it is of this kind; a name is a part of its own.
inline void Add(std::vector<AnswerPart>& parts, AnswerPart::Kind kind, std::string_view text) {
  if (text.empty() && kind != AnswerPart::Kind::kName) return;
  if (kind != AnswerPart::Kind::kName && !parts.empty() && parts.back().kind == kind)
    parts.back().text += text;
  else
    parts.push_back({kind, std::string(text)});
}

}  // namespace foretoken::calls
