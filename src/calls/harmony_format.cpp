// SPDX-License-Identifier: Apache-2.0
// Harmony, the form of gpt-oss: an answer is a list of messages, each with a channel and perhaps a
// recipient, and ends with an end token (OpenAI 2025, "OpenAI harmony response format").
//   <|channel|>analysis<|message|>a thought<|end|><|start|>assistant
//   <|channel|>commentary to=functions.f <|constrain|>json<|message|>{"key": 1}<|call|>
//   <|channel|>final<|message|>the answer<|return|>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/control_text.h"
#include "calls/answer_grammar.h"
#include "calls/call_format.h"
#include "calls/marked_text.h"

namespace foretoken::calls {
namespace {

constexpr std::string_view kChannel = "<|channel|>", kMessage = "<|message|>", kStart = "<|start|>",
                           kConstrain = "<|constrain|>", kEndMark = "<|end|>",
                           kCallMark = "<|call|>", kReturnMark = "<|return|>",
                           kFunctions = "functions.", kTo = "to=";
constexpr std::size_t kMostHeader = 256;  // bytes; a longer one is no header

// Its marks are control tokens; where a vocabulary has none, an answer is text.
class HarmonyReader final : public CallReader {
 public:
  void Read(std::string_view text, std::vector<AnswerPart>& parts) override {
    for (const char c : text) Step(c, parts);
  }

  void End(std::vector<AnswerPart>& parts) override {
    if (at_ == At::kRole && first_) Add(parts, AnswerPart::Kind::kText, header_);
    header_.clear();
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
      ReadControl(parts);
    } else if (in_control_) {
      control_ += c;
    } else {
      ReadText(c, parts);
    }
  }

  void ReadControl(std::vector<AnswerPart>& parts) {
    if (control_ == kChannel) {
      if (at_ == At::kRole && first_ && header_.find(kTo) == header_.npos)
        Add(parts, AnswerPart::Kind::kText, std::exchange(header_, {}));
      header_ += ' ';
      channel_at_ = header_.size();
      at_ = At::kHeader;
    } else if (control_ == kMessage) {
      BeginBody(parts);
    } else if (control_ == kConstrain) {
      at_ = At::kFormat;
    } else if (control_ == kStart) {
      Forget();
      at_ = At::kRole;
    } else if (control_ == kEndMark || control_ == kCallMark || control_ == kReturnMark) {
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
  bool first_ = true;                                // no control token has come
  bool begun_ = false;                               // the body has a character
  bool thought_ = false, said_ = false;              // a message of this kind has begun
  bool in_control_ = false;
  std::string control_, header_;
  std::size_t channel_at_ = 0;  // in the header
};

// The rules of a call, with each of its two headers.
std::string HarmonyCall(const std::string& prefix, const Tool& tool, const ControlTokens& control) {
  const std::string to = Quoted(fmt::format(" to={}{}", kFunctions, tool.name));
  const std::string channel = control.InGrammar(kChannel) + " \"commentary\"";
  return fmt::format("{0}call ::= ({1} {2} | {2} {1}) format {3} {0}root\n", prefix, channel, to,
                     control.InGrammar(kMessage));
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
                                       use.text_grammar.empty() ? "free" : "text-root");
  const std::string ways = calls.empty() ? text : use.required ? calls : text + " | " + calls;
  grammar.gbnf += fmt::format(
      "root ::= ({0} (\"analysis\" | \"commentary\") {1} free {2} {3} \"assistant\")* ({4})\n"
      "free ::= [^\\x00]*\nformat ::= (\" \" {5} \"json\" | \" json\" | \" \")?\n",
      channel, message, control.InGrammar(kEndMark), control.InGrammar(kStart), ways,
      control.InGrammar(kConstrain));
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
    .reader = [](const std::vector<Tool>&, const ControlTokens&) -> std::unique_ptr<CallReader> {
      return std::make_unique<HarmonyReader>();
    },
    .grammar = HarmonyAnswer};

}  // namespace foretoken::calls
