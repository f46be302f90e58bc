// SPDX-License-Identifier: Apache-2.0
// calls/answer_grammar.h: GBNF of answers in which calls stand between marks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"
#include "calls/control_tokens.h"

namespace foretoken::calls {

// A text as a literal of GBNF.
std::string Quoted(std::string_view text);

// A grammar whose rules have this before their names, so that it can stand beside others: the rule
// `root` becomes `prefix` root. REQUIRES: the library has written it, or CheckGrammar takes it.
std::string Prefixed(std::string_view gbnf, std::string_view prefix);

// Rules for a text that goes on until `mark`, which may not stand in it otherwise; then comes `then`,
// a part of a rule. If may_end, the text may also end without the mark. The first rule is
// `name`-0. REQUIRES: the mark is UTF-8.
std::string TextUntil(std::string_view name, std::string_view mark, std::string_view then,
                      bool may_end);
// Takes a mark that may begin with a control token, which is no text.
std::string TextUntil(std::string_view name, std::string_view mark, std::string_view then,
                      bool may_end, const ControlTokens& control);

// Control tokens between which a model writes text, if the vocabulary has them.
struct TextMarks {
  std::string_view begin = {}, end = {};
};

// The whole grammar of answers whose calls begin with `mark`; `calls` is a rule of `rules` for what
// follows it. The use says what else an answer may be.
std::string AnswersWith(const ToolUse& use, std::string_view mark, const ControlTokens& control,
                        std::string_view rules, const TextMarks& text_marks = {});

// The rules of a tool's arguments, with `prefix` root as the first; a notice where its schema cannot
// be followed.
std::string ArgumentsGrammar(const Tool& tool, std::string_view prefix,
                             std::vector<std::string>& notices);

// kTooLarge where the rules of the tools are longer than a grammar may be, before there are more.
Status CheckSize(const std::string& rules);

// The grammar is checked, and where it is too large without the schemas, that is the error.
Result<AnswerGrammar> Checked(AnswerGrammar grammar);

}  // namespace foretoken::calls
