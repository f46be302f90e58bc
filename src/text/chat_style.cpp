// SPDX-License-Identifier: Apache-2.0
#include "text/chat_style.h"

#include <algorithm>
#include <array>

#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

// A Jinja program made comparable: one kind of quotes, \n for line breaks, message.role for
// message['role'].
class Program {
 public:
  explicit Program(std::string_view text) : text_(text) {
    for (const char c : text)
      if (c == '\n')
        plain_ += "\\n";
      else
        plain_ += c == '"' ? '\'' : c;
    plain_ = ReplaceAll(plain_, "message['role']", "message.role");
    plain_ = ReplaceAll(plain_, "message['content']", "message.content");
    squeezed_ = plain_;
    std::erase(squeezed_, ' ');
  }

  bool Has(std::string_view mark) const { return plain_.find(mark) != std::string::npos; }
  // Finds a mark written without spaces, wherever the program has spaces.
  bool HasSqueezed(std::string_view mark) const {
    return squeezed_.find(mark) != std::string::npos;
  }

  // The text of a string literal of the program between `from` (which may follow anything in the
  // literal) and `to`, with escapes resolved; nothing if the literal ends before `to`. Only the
  // first marks are considered, because each may be as far from its quotes as the program is long.
  std::optional<std::string> Literal(std::string_view from, std::string_view to) const {
    std::size_t at = text_.find(from);
    for (int i = 0; at != std::string::npos && i < kMostMarks; ++i, at = text_.find(from, at + 1)) {
      const std::size_t quote = text_.find_last_of("'\"", at);
      if (quote == std::string::npos) continue;
      if (auto text = LiteralAt(at + from.size(), text_[quote], to)) return text;
    }
    return std::nullopt;
  }

 private:
  static constexpr int kMostMarks = 16;

  std::optional<std::string> LiteralAt(std::size_t at, char quote, std::string_view to) const {
    std::string out;
    for (; at < text_.size(); ++at) {
      if (text_.substr(at).starts_with(to)) return out;
      if (text_[at] == quote) return std::nullopt;
      if (text_[at] == '\\' && at + 1 < text_.size()) {
        const char c = text_[++at];
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else {
        out += text_[at];
      }
    }
    return std::nullopt;
  }

  std::string_view text_;
  std::string plain_, squeezed_;
};

// A style that writes all roles alike.
ChatStyle RoleTurns(std::string open, std::string close, std::string prompt, bool trim = false) {
  ChatStyle style;
  style.system = style.user = style.assistant = {std::move(open), std::move(close), trim};
  style.prompt = std::move(prompt);
  return style;
}

ChatStyle ChatMl() {
  return RoleTurns("<|im_start|>{role}\n", "<|im_end|>\n", "<|im_start|>assistant\n");
}

ChatStyle Qwen2() {
  ChatStyle style = ChatMl();
  style.default_system = "You are a helpful assistant.";
  return style;
}

ChatStyle Qwen25() {
  ChatStyle style = ChatMl();
  style.default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
  return style;
}

ChatStyle Qwen3() {
  ChatStyle style = ChatMl();
  style.forgets_thoughts = true;
  return style;
}

ChatStyle Llama2() {
  ChatStyle style;
  style.system = {"<<SYS>>\n", "\n<</SYS>>\n\n"};
  style.user = {"{bos}[INST] ", " [/INST]", true};
  style.assistant = {" ", " {eos}", true};
  style.system_place = SystemPlace::kFirstUser;
  style.trims_folded = true;
  style.alternates = true;
  return style;
}

ChatStyle Llama3() {
  ChatStyle style = RoleTurns("<|start_header_id|>{role}<|end_header_id|>\n\n", "<|eot_id|>",
                              "<|start_header_id|>assistant<|end_header_id|>\n\n", true);
  style.start = "{bos}";
  return style;
}

ChatStyle Llama31() {
  ChatStyle style = Llama3();
  style.first_system = {
      "<|start_header_id|>system<|end_header_id|>\n\n"
      "Cutting Knowledge Date: December 2023\nToday Date: {date}\n\n",
      "<|eot_id|>", true};
  style.always_system = true;
  style.date = "26 Jul 2024";
  return style;
}

ChatStyle Mistral(std::string open, std::string close, std::string answer) {
  ChatStyle style;
  style.start = "{bos}";
  style.system = {"", "\n\n"};
  style.user = {std::move(open), std::move(close)};
  style.assistant = {std::move(answer), "{eos}"};
  style.system_place = SystemPlace::kFirstUser;
  style.alternates = true;
  return style;
}

ChatStyle MistralV0() {
  ChatStyle style = Mistral("[INST] ", " [/INST]", "");
  style.system_place = SystemPlace::kNowhere;
  return style;
}

ChatStyle MistralV1() {
  return Mistral(" [INST] ", " [/INST]", " ");
}

ChatStyle MistralV3() {
  ChatStyle style = Mistral("[INST] ", "[/INST]", " ");
  style.assistant.trim = true;
  style.system_place = SystemPlace::kLastUser;
  return style;
}

ChatStyle MistralV3Tekken() {
  ChatStyle style = Mistral("[INST]", "[/INST]", "");
  style.system_place = SystemPlace::kLastUser;
  return style;
}

ChatStyle MistralV7() {
  ChatStyle style = Mistral("[INST] ", "[/INST]", " ");
  style.system = {"[SYSTEM_PROMPT] ", "[/SYSTEM_PROMPT]"};
  style.system_place = SystemPlace::kTurn;
  style.alternates = false;
  return style;
}

ChatStyle MistralV7Tekken() {
  ChatStyle style = Mistral("[INST]", "[/INST]", "");
  style.system = {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"};
  style.system_place = SystemPlace::kTurn;
  return style;
}

ChatStyle Gemma() {
  ChatStyle style =
      RoleTurns("<start_of_turn>{role}\n", "<end_of_turn>\n", "<start_of_turn>model\n", true);
  style.start = "{bos}";
  style.system = {"", "\n\n"};
  style.system_place = SystemPlace::kFirstUser;
  style.assistant_role = "model";
  style.alternates = true;
  return style;
}

ChatStyle Phi3() {
  ChatStyle style = RoleTurns("<|{role}|>\n", "<|end|>\n", "<|assistant|>\n");
  style.no_prompt = "{eos}";
  return style;
}

ChatStyle Phi4Mini() {
  ChatStyle style = RoleTurns("<|{role}|>", "<|end|>", "<|assistant|>");
  style.no_prompt = "{eos}";
  return style;
}

ChatStyle Phi4() {
  return RoleTurns("<|im_start|>{role}<|im_sep|>", "<|im_end|>", "<|im_start|>assistant<|im_sep|>");
}

ChatStyle Zephyr() {
  return RoleTurns("<|{role}|>\n", "{eos}\n", "<|assistant|>\n");
}

// A tale that children ask for: what users say becomes direct speech, the rest is told.
ChatStyle Story() {
  ChatStyle style;
  style.user = {"\"", "\" said the child.\n", true};
  style.system = style.assistant = {"", "\n", true};
  return style;
}

struct Row {
  std::string_view name;
  ChatStyle (*make)();
};
constexpr std::array kRows = {
    Row{"chatml", ChatMl},
    Row{"qwen2", Qwen2},
    Row{"qwen2.5", Qwen25},
    Row{"qwen3", Qwen3},
    Row{"llama2", Llama2},
    Row{"llama3", Llama3},
    Row{"llama3.1", Llama31},
    Row{"mistral-v0", MistralV0},
    Row{"mistral-v1", MistralV1},
    Row{"mistral-v3", MistralV3},
    Row{"mistral-v3-tekken", MistralV3Tekken},
    Row{"mistral-v7", MistralV7},
    Row{"mistral-v7-tekken", MistralV7Tekken},
    Row{"gemma", Gemma},
    Row{"phi3", Phi3},
    Row{"phi4", Phi4},
    Row{"phi4-mini", Phi4Mini},
    Row{"zephyr", Zephyr},
    Row{"story", Story},
};

// Each of these gives the family's style for a program of that family, or nothing.
using Recognition = std::optional<ChatStyle>;

Recognition RecogniseChatMl(const Program& p) {
  if (!p.HasSqueezed("'<|im_start|>'+message.role+'\\n'")) return {};
  if (p.Has("<|im_sep|>") || p.Has("strftime_now")) return {};
  if (p.Has("last_query_index") && p.Has("</think>")) return ChatStyleNamed("qwen3");
  // Reasoning is cut out, or white space removed, in ways that this code does not know.
  if (p.Has("think>") || p.HasSqueezed("|trim") || p.Has("strip(")) return {};
  auto system = p.Literal("<|im_start|>system\\n", "<|im_end|>");
  if (!system) system = p.Literal("<|im_start|>system\n", "<|im_end|>");
  for (const char* name : {"qwen2", "qwen2.5"})
    if (auto style = ChatStyleNamed(name); system && style->default_system == system) return style;
  auto style = ChatStyleNamed("chatml");
  style->default_system = std::move(system);
  return style;
}

Recognition RecognisePhi4(const Program& p) {
  if (!p.Has("<|im_start|>user<|im_sep|>") || p.Has("<think>")) return {};
  return ChatStyleNamed("phi4");
}

Recognition RecogniseLlama2(const Program& p) {
  if (!p.Has("<<SYS>>\\n") || !p.Has("content.strip() + ' [/INST]'")) return {};
  auto style = ChatStyleNamed("llama2");
  if (!p.HasSqueezed("bos_token+'[INST]")) {
    style->start = "{bos}";
    style->user.open = "[INST] ";
  }
  if (p.Has("true == true")) {
    style->default_system = p.Literal("set system_message = '", "'");
    if (!style->default_system) return {};
  }
  return style;
}

Recognition RecogniseLlama3(const Program& p) {
  if (!p.HasSqueezed("'<|start_header_id|>'+message.role+'<|end_header_id|>\\n\\n'+"
                     "message.content|trim+'<|eot_id|>'"))
    return {};
  const bool dated = p.Has("Cutting Knowledge Date: December 2023");
  if (!dated) return p.Has("strftime_now") ? Recognition() : ChatStyleNamed("llama3");
  auto style = ChatStyleNamed("llama3.1");
  if (p.Has("strftime_now")) style->date.clear();
  return style;
}

Recognition RecogniseMistral(const Program& p) {
  if (!p.Has("[INST]") || p.Has("<<SYS>>") || !p.Has("eos_token")) return {};
  const bool spaced = p.Has("[INST] ");
  if (p.Has("[SYSTEM_PROMPT]")) {
    auto style = ChatStyleNamed(spaced ? "mistral-v7" : "mistral-v7-tekken");
    style->needs_system = p.Has("default_system_message");
    return style;
  }
  if (p.Has("' [INST] '")) return ChatStyleNamed("mistral-v1");
  if (p.Has("' [/INST]'")) {
    auto style = ChatStyleNamed("mistral-v0");
    if (p.Has("eos_token + ' '")) style->assistant.close = "{eos} ";
    return style;
  }
  auto style = ChatStyleNamed(spaced ? "mistral-v3" : "mistral-v3-tekken");
  style->assistant.trim = p.HasSqueezed("message.content|trim+eos_token");
  if (!p.Has("loop.last")) style->system_place = SystemPlace::kFirstUser;
  return style;
}

Recognition RecogniseGemma(const Program& p) {
  if (!p.Has("<start_of_turn>") || !p.Has("<end_of_turn>") || !p.HasSqueezed("|trim")) return {};
  return ChatStyleNamed("gemma");
}

Recognition RecognisePhi3(const Program& p) {
  if (!p.Has("<|end|>") || p.Has("<|start|>") || p.Has("<think>")) return {};
  const bool any_role = p.HasSqueezed("'<|'+message.role+'|>'");
  const bool breaks = p.HasSqueezed("'<|user|>\\n'") || p.HasSqueezed("'<|user|>'+'\\n'") ||
                      p.HasSqueezed("'<|'+message.role+'|>'+'\\n'");
  if (!any_role && !breaks) return {};
  auto style = ChatStyleNamed(breaks ? "phi3" : "phi4-mini");
  if (!p.HasSqueezed("{%else%}{{eos_token}}")) style->no_prompt.clear();
  if (!any_role && !p.Has("<|system|>")) style->system_place = SystemPlace::kNowhere;
  if (p.HasSqueezed("'<|end|>'+'\\n'+'<|assistant|>'")) {  // each question asks for an answer
    style->user.close += style->prompt;
    style->assistant.open.clear();
    style->prompt.clear();
  }
  return style;
}

Recognition RecogniseZephyr(const Program& p) {
  if (!p.HasSqueezed("{{'<|user|>\\n'+message.content+eos_token}}\\n")) return {};
  if (!p.HasSqueezed("{{'<|assistant|>'}}\\n")) return {};
  return ChatStyleNamed("zephyr");
}

Recognition RecogniseStory(const Program& p) {
  if (!p.HasSqueezed("'''+message.content|trim+''saidthechild.\\n'")) return {};
  return ChatStyleNamed("story");
}

// Traits that programs of every family can have.
void ReadCommonTraits(const Program& p, ChatStyle& style) {
  if (!p.Has("bos_token"))
    style.start.clear();
  else if (style.start.empty() && !style.user.open.starts_with("{bos}"))
    style.start = "{bos}";
  if (style.alternates) style.alternates = p.Has("must alternate");
  style.prompts_always = !p.Has("add_generation_prompt");
}

}  // namespace

std::vector<std::string_view> ChatStyleNames() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

std::optional<ChatStyle> ChatStyleNamed(std::string_view name) {
  const auto* const row = std::find_if(
      kRows.begin(), kRows.end(), [&](const Row& candidate) { return candidate.name == name; });
  if (row == kRows.end()) return std::nullopt;
  ChatStyle style = row->make();
  style.name = name;
  return style;
}

std::optional<ChatStyle> RecogniseChatStyle(std::string_view program) {
  constexpr std::array kFamilies = {RecogniseChatMl, RecognisePhi4,    RecogniseLlama2,
                                    RecogniseLlama3, RecogniseMistral, RecogniseGemma,
                                    RecognisePhi3,   RecogniseZephyr,  RecogniseStory};
  const Program p(program);
  for (const auto& recognise : kFamilies) {
    if (auto style = recognise(p)) {
      ReadCommonTraits(p, *style);
      return style;
    }
  }
  return std::nullopt;
}

}  // namespace foretoken::text
