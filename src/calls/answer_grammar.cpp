// SPDX-License-Identifier: Apache-2.0
#include "calls/answer_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/control_text.h"
#include "base/utf8.h"
#include "foretoken/structured_output.h"

namespace foretoken::calls {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of GBNF

bool IsOfName(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

// The characters as the inside of a class of GBNF.
std::string InClass(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters)
    out += c < 0x80 ? fmt::format("\\x{:02X}", static_cast<unsigned>(c))
                    : fmt::format("\\U{:08X}", static_cast<unsigned>(c));
  return out;
}

std::u32string CharactersOf(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const Utf8Character c = ReadUtf8(text);
    characters += c.code;
    text.remove_prefix(c.size);
  }
  return characters;
}

// [n]: the length of the longest beginning of the mark that ends its first n characters and c.
std::size_t Matched(std::u32string_view mark, std::size_t n, char32_t c) {
  const std::u32string seen = std::u32string(mark.substr(0, n)) + c;
  for (std::size_t length = std::min(seen.size(), mark.size()); length > 0; --length)
    if (seen.ends_with(mark.substr(0, length))) return length;
  return 0;
}

}  // namespace

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (c == '\n')
      out += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string Prefixed(std::string_view gbnf, std::string_view prefix) {
  std::string out;
  char inside = '\0';  // a literal's or a class's end
  for (std::size_t i = 0; i < gbnf.size(); ++i) {
    const char c = gbnf[i];
    if (inside == '\0' && c == '#') {  // a comment
      i = std::min(gbnf.find('\n', i), gbnf.size()) - 1;
      continue;
    }
    if (inside == '\0' && c == '{') {  // numbers of repetitions
      const std::size_t end = std::min(gbnf.find('}', i), gbnf.size() - 1);
      out += gbnf.substr(i, end + 1 - i);
      i = end;
      continue;
    }
    if (inside == '\0' && IsOfName(c)) {
      std::size_t end = i;
      while (end < gbnf.size() && IsOfName(gbnf[end])) ++end;
      out += prefix;
      out += gbnf.substr(i, end - i);
      i = end - 1;
      continue;
    }
    out += c;
    if (inside != '\0' && c == '\\' && i + 1 < gbnf.size())
      out += gbnf[++i];
    else if (inside != '\0')
      inside = c == inside ? '\0' : inside;
    else if (c == '"' || c == '[')
      inside = c == '"' ? '"' : ']';
  }
  return out + "\n";
}

std::string TextUntil(std::string_view name, std::string_view mark_text, std::string_view then,
                      bool may_end) {
  const std::u32string mark = CharactersOf(mark_text);
  std::u32string letters = mark;
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  std::string rules;
  for (std::size_t n = 0; n < mark.size(); ++n) {
    // [m]: characters that lead to m of the mark
    std::vector<std::u32string> leading(mark.size() + 1);
    for (const char32_t c : letters) leading[Matched(mark, n, c)] += c;
    rules += fmt::format("{}-{} ::= [^{}] {}-0", name, n, InClass(letters), name);
    for (std::size_t to = 0; to <= mark.size(); ++to)
      if (!leading[to].empty())
        rules +=
            fmt::format(" | [{}] {}", InClass(leading[to]),
                        to == mark.size() ? std::string(then) : fmt::format("{}-{}", name, to));
    rules += may_end ? " | \"\"\n" : "\n";
  }
  return rules;
}

std::string TextUntil(std::string_view name, std::string_view mark, std::string_view then,
                      bool may_end, const ControlTokens& control) {
  if (control.InText(mark).front() != kControlBegin) return TextUntil(name, mark, then, may_end);
  return fmt::format("{0}-0 ::= [^\\x00] {0}-0 | {1} {2}{3}\n", name, control.InGrammar(mark), then,
                     may_end ? " | \"\"" : "");
}

std::string AnswersWith(const ToolUse& use, std::string_view mark, const ControlTokens& control,
                        std::string_view rules, const TextMarks& text_marks) {
  const std::string begun = control.InGrammar(mark) + " calls";
  std::string gbnf(rules);
  if (use.required) return gbnf + "root ::= " + begun + "\n";
  const auto may = [&](std::string_view text_mark) {
    return control.Has(text_mark) ? control.InGrammar(text_mark) + "?" : std::string();
  };
  const std::string begin = may(text_marks.begin), end = may(text_marks.end);
  if (!use.text_grammar.empty())
    return gbnf + fmt::format("root ::= {} | {} text-root {}\n", begun, begin, end) +
           Prefixed(use.text_grammar, "text-");
  return gbnf + fmt::format("root ::= {} free-0 {}\n", begin, end) +
         TextUntil("free", mark, "calls", true, control);
}

std::string ArgumentsGrammar(const Tool& tool, std::string_view prefix,
                             std::vector<std::string>& notices) {
  if (tool.parameters_json.empty()) return Prefixed(JsonGrammar(), prefix);
  auto grammar = JsonSchemaGrammar(tool.parameters_json);
  if (grammar) return Prefixed(*grammar, prefix);
  notices.push_back(
      fmt::format("tools: the arguments of {} may be any object, because its schema "
                  "is not followed: {}",
                  Shown(tool.name), grammar.error().why()));
  return Prefixed(JsonGrammar(), prefix);
}

Status CheckSize(const std::string& rules) {
  if (rules.size() <= kMostBytes) return {};
  return FailField(ErrorCode::kTooLarge, "grammar",
                   "the schemas of the tools make too large a grammar; give fewer or smaller ones");
}

Result<AnswerGrammar> Checked(AnswerGrammar grammar) {
  FORETOKEN_CHECK_OK(CheckGrammar(grammar.gbnf));
  return grammar;
}

}  // namespace foretoken::calls
