// SPDX-License-Identifier: Apache-2.0
// Harmony, the form of gpt-oss: an answer is a list of messages, each with a channel and perhaps a
// recipient, and ends with an end token (OpenAI 2025, "OpenAI harmony response format").
//   <|channel|>analysis<|message|>a thought<|end|><|start|>assistant
//   <|channel|>commentary to=functions.f <|constrain|>json<|message|>{"key": 1}<|call|>
//   <|channel|>final<|message|>the answer<|return|>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/control_text.h"
#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/marked_text.h"

namespace foretoken::calls {
namespace {

// Vocabularies may have them as control tokens, or as tokens of text.
constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kStart = "<|start|>",
                           kConstrain = "<|constrain|>", kEndMark = "<|end|>",
                           kCallMark = "<|call|>", kReturnMark = "<|return|>",
                           kFunctions = "functions.", kTo = "to=";
constexpr std::array kHarmonyMarks = {kChannel, kMessage,  kStart,     kConstrain,
                                      kEndMark, kCallMark, kReturnMark};
constexpr std::size_t kMostHeader = 256;  // bytes; a longer one is no header

// The marks that are tokens of text.
std::vector<std::string_view> HarmonyTextMarks(const ControlTokens& control) {
  std::vector<std::string_view> marks;
  for (const std::string_view mark : kHarmonyMarks)
    if (!control.Has(mark)) marks.push_back(mark);
  return marks;
}

class HarmonyReader final : public CallReader {
 public:
  explicit HarmonyReader(const ControlTokens& control) : text_marks_(HarmonyTextMarks(control)) {}

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    for (const char c : std::exchange(mark_, {})) ReadText(c, parts);
    if (at_ == At::kRole && first_) Add(parts, AnswerPart::Kind::kText, header_);
    header_.clear();
  }

  Thinking thinking() const override {
    return at_ == At::kBody && kind_ == AnswerPart::Kind::kThought ? Thinking::kNow
                                                                   : Thinking::kLater;
  }

 private:
  // kRole: behind the role, where a recipient may stand. kHeader: the channel, and perhaps the
  // recipient. kFormat: of a body, as the model names it. kBehind: behind a message.
  enum class At { kRole, kHeader, kFormat, kBody, kBehind };

  void Step(char c, std::vector<AnswerPart>& parts) {
    if (c == kControlBegin) {
      in_control_ = true;
      control_.clear();
    } else if (c == kControlEnd) {
      in_control_ = false;
      ReadMark(std::exchange(control_, {}), parts);
    } else if (in_control_) {
      control_ += c;
    } else {
      LookForMark(c, parts);
    }
  }

  // A mark's first character stands nowhere else in it.
  void LookForMark(char c, std::vector<AnswerPart>& parts) {
    const std::string longer = mark_ + c;
    for (const std::string_view mark : text_marks_) {
      if (!mark.starts_with(longer)) continue;
      mark_ = longer;
      if (longer == mark) ReadMark(std::exchange(mark_, {}), parts);
      return;
    }
    for (const char held : std::exchange(mark_, {})) ReadText(held, parts);
    if (longer.size() > 1) return LookForMark(c, parts);
    ReadText(c, parts);
  }

  void ReadMark(const std::string& mark, std::vector<AnswerPart>& parts) {
    if (mark == kChannel) {
      if (at_ == At::kRole && first_ && header_.find(kTo) == header_.npos)
        Add(parts, AnswerPart::Kind::kText, std::exchange(header_, {}));
      header_ += ' ';
      channel_at_ = header_.size();
      at_ = At::kHeader;
    } else if (mark == kMessage) {
      BeginBody(parts);
    } else if (mark == kConstrain) {
      at_ = At::kFormat;
    } else if (mark == kStart) {
      Forget();
      at_ = At::kRole;
    } else if (mark == kEndMark || mark == kCallMark || mark == kReturnMark) {
      Forget();
      at_ = At::kBehind;
    }
    first_ = false;
  }

  void ReadText(char c, std::vector<AnswerPart>& parts) {
    if (at_ == At::kBody || (at_ == At::kBehind && !IsSpace(c))) {
      if (kind_ == AnswerPart::Kind::kArguments && !begun_ && IsSpace(c)) return;
      begun_ = true;
      return Add(parts, kind_, std::string_view(&c, 1));
    }
    if (at_ != At::kRole && at_ != At::kHeader) return;
    header_ += c;
    // An answer that does not begin with a header is text.
    if (first_ && (header_.size() > kMostHeader || !BeginsLikeRecipient())) {
      Add(parts, AnswerPart::Kind::kText, std::exchange(header_, {}));
      kind_ = AnswerPart::Kind::kText;
      at_ = At::kBody;
      first_ = false;
    }
    if (header_.size() > kMostHeader) header_.resize(kMostHeader);
  }

  bool BeginsLikeRecipient() const {
    std::string_view text = header_;
    while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
    return text.substr(0, kTo.size()) == kTo.substr(0, text.size());
  }

  void BeginBody(std::vector<AnswerPart>& parts) {
    const std::string_view channel = std::string_view(header_).substr(channel_at_);
    kind_ = channel.starts_with("analysis") ? AnswerPart::Kind::kThought : AnswerPart::Kind::kText;
    if (const std::size_t to = header_.find(kTo); to != header_.npos) {
      std::string_view name = std::string_view(header_).substr(to + kTo.size());
      name = name.substr(0, name.find(' '));
      if (name.starts_with(kFunctions)) name.remove_prefix(kFunctions.size());
      kind_ = AnswerPart::Kind::kArguments;
      Add(parts, AnswerPart::Kind::kName, name);
    }
    Forget();
    begun_ = false;
    at_ = At::kBody;
    // Two messages of one kind are two paragraphs.
    bool& said = kind_ == AnswerPart::Kind::kThought ? thought_ : said_;
    if (kind_ != AnswerPart::Kind::kArguments && std::exchange(said, true))
      Add(parts, kind_, "\n\n");
  }

  void Forget() {
    header_.clear();
    channel_at_ = 0;
  }

  At at_ = At::kRole;
  AnswerPart::Kind kind_ = AnswerPart::Kind::kText;  // of the body
  bool first_ = true;                                // no mark has come
  bool begun_ = false;                               // the body has a character
  bool thought_ = false, said_ = false;              // a message of this kind has begun
  bool in_control_ = false;
  const std::vector<std::string_view> text_marks_;
  std::string control_;  // the control token at hand
  std::string mark_;     // the beginning of a mark that is text
  std::string header_;
  std::size_t channel_at_ = 0;  // in the header
};

// The rules of a call, with each of its two headers.
std::string HarmonyCall(const std::string& prefix, const Tool& tool, const ControlTokens& control) {
  const std::string to = Quoted(fmt::format(" to={}{}", kFunctions, tool.name));
  const std::string channel = control.InGrammar(kChannel) + " (\"commentary\" | \"analysis\")";
  return fmt::format("{0}call ::= ({1} {2} | {2} {1}) format {3} {0}root\n", prefix, channel, to,
                     control.InGrammar(kMessage));
}

// Rules for a text without marks, then what follows its end: `then` behind <|end|>, or nothing. The
// first one is `name`-0; the others are numbered by characters that may begin a mark.
std::string HarmonyText(std::string_view name, const std::string& then,
                        const ControlTokens& control) {
  std::vector<std::string> seen = {""};  // beginnings of marks
  for (const std::string_view mark : HarmonyTextMarks(control))
    for (std::size_t n = 1; n < mark.size(); ++n)
      if (std::find(seen.begin(), seen.end(), mark.substr(0, n)) == seen.end())
        seen.emplace_back(mark.substr(0, n));
  std::string rules;
  for (std::size_t at = 0; at < seen.size(); ++at) {
    std::string others = "\\x00", ways;  // characters that do not lead to `name`-0
    for (const std::string_view mark : HarmonyTextMarks(control)) {
      if (!mark.starts_with(seen[at])) continue;
      const std::string longer(mark.substr(0, seen[at].size() + 1));
      const std::string letter =
          fmt::format("\\x{:02X}", static_cast<unsigned char>(longer.back()));
      if (others.find(letter) == others.npos) others += letter;
      const auto next = std::find(seen.begin(), seen.end(), longer);
      if (next != seen.end())
        ways += fmt::format(" | [{}] {}-{}", letter, name, next - seen.begin());
      else if (longer == kEndMark && !then.empty())
        ways += fmt::format(" | [{}] {}", letter, then);
    }
    if (at > 0 && seen.size() > 1) {  // another mark may begin
      others += "\\x3C";
      ways += fmt::format(" | [\\x3C] {}-1", name);
    }
    rules += fmt::format("{0}-{1} ::= [^{2}] {0}-0{3}{4}\n", name, at, others, ways,
                         then.empty() ? " | \"\"" : "");
  }
  if (control.Has(kEndMark) && !then.empty())  // behind any of them
    for (std::size_t at = 0; at < seen.size(); ++at)
      rules.insert(rules.find('\n', rules.find(fmt::format("{}-{} ::=", name, at))),
                   fmt::format(" | {} {}", control.InGrammar(kEndMark), then));
  return rules;
}

Result<AnswerGrammar> HarmonyAnswer(const ToolUse& use, const ControlTokens& control) {
  const std::string channel = control.InGrammar(kChannel), message = control.InGrammar(kMessage);
  AnswerGrammar grammar;
  std::string calls;
  for (std::size_t i = 0; i < use.tools.size(); ++i) {
    const std::string prefix = fmt::format("t{}-", i);
    calls += fmt::format("{}{}call", i == 0 ? "" : " | ", prefix);
    grammar.gbnf += HarmonyCall(prefix, use.tools[i], control) +
                    ArgumentsGrammar(use.tools[i], prefix, grammar.notices);
    FORETOKEN_CHECK_OK(CheckSize(grammar.gbnf));
  }
  const std::string text = fmt::format("{} \"final\" {} {}", channel, message,
                                       use.text_grammar.empty() ? "final-0" : "text-root");
  const std::string ways = calls.empty() ? text : use.required ? calls : text + " | " + calls;
  grammar.gbnf += fmt::format(
      "root ::= ({} (\"analysis\" | \"commentary\") {} before-0)* ({})\n"
      "format ::= (\" \" {} \"json\" | \" json\" | \" code\" | \" \")?\n",
      channel, message, ways, control.InGrammar(kConstrain));
  grammar.gbnf += HarmonyText("before", control.InGrammar(kStart) + " \"assistant\"", control);
  if (!use.required && use.text_grammar.empty()) grammar.gbnf += HarmonyText("final", "", control);
  if (!use.text_grammar.empty() && !use.required)
    grammar.gbnf += Prefixed(use.text_grammar, "text-");
  return Checked(std::move(grammar));
}

}  // namespace

extern const CallFormat kHarmonyFormat = {
    .name = "harmony",
    .help = "messages in channels, with the tool as a recipient: gpt-oss",
    .whole = true,
    .wrote =
        [](std::string_view text) {
          return text.find(kChannel) != text.npos && text.find(kMessage) != text.npos;
        },
    .reader = [](const std::vector<Tool>&, const ControlTokens& control)
        -> std::unique_ptr<CallReader> { return std::make_unique<HarmonyReader>(control); },
    .grammar = HarmonyAnswer};

}  // namespace foretoken::calls
