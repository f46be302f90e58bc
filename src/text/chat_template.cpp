// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "base/hash.h"

namespace foretoken {

std::vector<std::string_view> ChatTemplateNames() {
  return text::ChatStyleNames();
}

}  // namespace foretoken

namespace foretoken::text {
namespace {

constexpr std::string_view kMetadataKey = "tokenizer.chat_template";
// The control tokens of all families, as their templates write them.
constexpr std::array<std::string_view, 16> kControls = {
    "<|im_start|>",      "<|im_end|>",       "<|im_sep|>",      "<|start_header_id|>",
    "<|end_header_id|>", "<|eot_id|>",       "[INST]",          "[/INST]",
    "[SYSTEM_PROMPT]",   "[/SYSTEM_PROMPT]", "<start_of_turn>", "<end_of_turn>",
    "<|system|>",        "<|user|>",         "<|assistant|>",   "<|end|>"};

auto Bad(std::string message) {
  return Fail(ErrorCode::kInvalidArgument, std::move(message));
}

// The size of the white space at the beginning of the text, as Python's str.strip() sees it; 0:
// none.
std::size_t LeadingSpace(std::string_view text) {
  if (text.empty()) return 0;
  const auto c = static_cast<unsigned char>(text[0]);
  if ((c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20)) return 1;
  for (const std::string_view wide : {"\u0085", "\u00a0"})
    if (text.starts_with(wide)) return 2;
  for (const std::string_view wide :
       {"\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
        "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"})
    if (text.starts_with(wide)) return 3;
  return 0;
}

std::string_view Trimmed(std::string_view text) {
  while (const std::size_t n = LeadingSpace(text)) text.remove_prefix(n);
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t n : {1, 2, 3}) {
      if (text.size() < n || LeadingSpace(text.substr(text.size() - n)) != n) continue;
      text.remove_suffix(n);
      more = true;
      break;
    }
  }
  return text;
}

std::string_view WithoutBreaks(std::string_view text, bool front = true, bool back = true) {
  while (front && text.starts_with('\n')) text.remove_prefix(1);
  while (back && text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

std::string Today() {
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return fmt::format("{:02} {} {}", local.tm_mday, kMonths[static_cast<std::size_t>(local.tm_mon)],
                     1900 + local.tm_year);
}

// Writes one conversation.
class Renderer {
 public:
  Renderer(const ChatStyle& style, std::string_view bos, std::string_view eos, std::string date)
      : style_(style), bos_(bos), eos_(eos), date_(std::move(date)) {}

  void Messages(std::span<const ChatMessage> messages) {
    Template(style_.start, "");
    const bool has_system = messages.front().role == "system";
    std::string system = has_system               ? messages.front().content
                         : DefaultHolds(messages) ? style_.default_system.value_or("")
                                                  : "";
    const bool any_system =
        has_system || (style_.default_system && DefaultHolds(messages)) || style_.always_system;
    const bool own_turn = style_.system_place == SystemPlace::kTurn;
    if (any_system && own_turn)
      Turn(style_.first_system.value_or(style_.system), "system", Text(style_.system, system));
    if (has_system) messages = messages.subspan(1);
    const std::size_t last_question = LastQuestion(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const ChatMessage& message = messages[i];
      const bool folds =
          any_system && !own_turn && message.role == "user" &&
          (style_.system_place == SystemPlace::kFirstUser ? i == 0 : i + 1 == messages.size());
      if (message.role == "user")
        User(message.content, folds ? std::optional(system) : std::nullopt);
      else if (message.role == "assistant")
        Turn(style_.assistant, style_.assistant_role,
             Answer(message.content, i > last_question, i + 1 == messages.size()));
      else
        Turn(style_.system, "system", Text(style_.system, message.content));
    }
  }

  void End(bool add_generation_prompt) {
    Template(add_generation_prompt || style_.prompts_always ? style_.prompt : style_.no_prompt, "");
  }

  std::vector<ChatPiece> Take() { return std::move(pieces_); }

 private:
  bool DefaultHolds(std::span<const ChatMessage> messages) const {
    // Llama 2's default is not used for a question that has its own system message.
    return style_.system_place == SystemPlace::kTurn ||
           messages.front().content.find("<<SYS>>") == std::string::npos;
  }

  static std::size_t LastQuestion(std::span<const ChatMessage> messages) {
    std::size_t last = messages.size();
    for (std::size_t i = 0; i < messages.size(); ++i)
      if (messages[i].role == "user") last = i;
    return last;
  }

  static std::string Text(const ChatTurn& turn, std::string_view content) {
    return std::string(turn.trim ? Trimmed(content) : content);
  }

  void User(std::string_view content, const std::optional<std::string>& system) {
    std::string text = Text(style_.user, content);
    if (system && style_.trims_folded)
      text = Trimmed(style_.system.open + *system + style_.system.close + std::string(content));
    else if (system)
      text = style_.system.open + *system + style_.system.close + text;
    Turn(style_.user, "user", text);
  }

  // Qwen 3 removes the thoughts from earlier answers, and writes those of later ones in one form.
  std::string Answer(const std::string& content, bool after_questions, bool last) const {
    if (!style_.forgets_thoughts) return Text(style_.assistant, content);
    constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
    std::string_view text = content, thoughts;
    if (const auto end = text.rfind(kEnd); end != std::string_view::npos) {
      thoughts = WithoutBreaks(text.substr(0, text.find(kEnd)), false, true);
      if (const auto begin = thoughts.rfind(kBegin); begin != std::string_view::npos)
        thoughts.remove_prefix(begin + kBegin.size());
      thoughts = WithoutBreaks(thoughts, true, false);
      text = WithoutBreaks(text.substr(end + kEnd.size()), true, false);
    }
    if (!after_questions || (!last && thoughts.empty())) return std::string(text);
    return fmt::format("<think>\n{}\n</think>\n\n{}", WithoutBreaks(thoughts),
                       WithoutBreaks(text, true, false));
  }

  void Turn(const ChatTurn& turn, std::string_view role, const std::string& text) {
    Template(turn.open, role);
    Add(text, false);
    Template(turn.close, role);
  }

  void Template(std::string_view text, std::string_view role) {
    std::string filled;
    for (std::size_t at = 0; at < text.size();) {
      const std::string_view rest = text.substr(at);
      if (rest.starts_with("{role}")) {
        filled += role, at += 6;
      } else if (rest.starts_with("{date}")) {
        filled += date_, at += 6;
      } else if (rest.starts_with("{bos}") || rest.starts_with("{eos}")) {
        Controls(filled);
        filled.clear();
        Add(rest[1] == 'b' ? bos_ : eos_, true);
        at += 5;
      } else {
        filled += text[at++];
      }
    }
    Controls(filled);
  }

  void Controls(std::string_view text) {
    while (!text.empty()) {
      std::size_t at = text.size();
      std::string_view control;
      for (const std::string_view candidate : kControls)
        if (const auto found = text.find(candidate); found < at) at = found, control = candidate;
      Add(text.substr(0, at), false);
      Add(control, true);
      text.remove_prefix(at + control.size());
    }
  }

  void Add(std::string_view text, bool control) {
    if (text.empty()) return;
    if (control || pieces_.empty() || pieces_.back().control)
      pieces_.push_back({std::string(text), control});
    else
      pieces_.back().text += text;
  }

  const ChatStyle& style_;
  std::string_view bos_, eos_;
  std::string date_;
  std::vector<ChatPiece> pieces_;
};

Status CheckRoles(const ChatStyle& style, std::span<const ChatMessage> messages) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::string& role = messages[i].role;
    if (role != "system" && role != "user" && role != "assistant")
      return Bad(fmt::format("chat: message {} has the role '{}'; use system, user or assistant",
                             i + 1, Shown(role)));
    if (role == "system" && style.system_place == SystemPlace::kNowhere)
      return Bad(
          fmt::format("chat: template {} has no place for a system message; put its text "
                      "into the first user message",
                      style.name));
    if (role == "system" && i > 0 && style.system_place != SystemPlace::kTurn)
      return Bad(
          fmt::format("chat: message {} is a system message, and template {} takes one at "
                      "the beginning only; move it there",
                      i + 1, style.name));
  }
  return {};
}

Status CheckTurns(const ChatStyle& style, std::span<const ChatMessage> messages) {
  if (messages.empty()) return Bad("chat: there are no messages; give at least one");
  FORETOKEN_CHECK_OK(CheckRoles(style, messages));
  const bool has_system = messages.front().role == "system";
  if (style.needs_system && !has_system)
    return Bad(
        "chat: the model's template has a system message of its own that changes by the "
        "day; give a system message");
  const auto turns = messages.subspan(has_system ? 1 : 0);
  if (style.system_place != SystemPlace::kTurn && turns.empty())
    return Bad(
        fmt::format("chat: template {} puts the system message into a user message, and "
                    "there is none; add one",
                    style.name));
  for (std::size_t i = 0; style.alternates && i < turns.size(); ++i)
    if ((turns[i].role == "user") != (i % 2 == 0))
      return Bad(
          fmt::format("chat: message {} is the {}'s; template {} wants user and assistant "
                      "in turn, the user first",
                      i + 1 + (has_system ? 1 : 0), turns[i].role, style.name));
  return {};
}

std::string Names() {
  return fmt::format("{}", fmt::join(ChatStyleNames(), ", "));
}

// The beginning of a program, on one line, for messages.
std::string Beginning(std::string_view program) {
  std::string out;
  for (const char c : program.substr(0, 40)) out += c >= 0x20 && c < 0x7F ? c : ' ';
  return out + (program.size() > 40 ? "..." : "");
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Recognise(std::string_view program) {
  if (auto style = RecogniseChatStyle(program)) return ChatTemplate(std::move(*style));
  return Fail(ErrorCode::kUnsupported,
              fmt::format("chat template: the model's own ('{}', hash {:016x}) is of no known "
                          "family; choose one with --chat-template: {}",
                          Beginning(program), HashOf(program), Names()));
}

Result<ChatTemplate> ChatTemplate::Choose(const formats::Metadata& metadata,
                                          std::string_view name) {
  if (!name.empty()) {
    if (auto style = ChatStyleNamed(name)) return ChatTemplate(std::move(*style));
    if (const auto* own = metadata.String(fmt::format("{}.{}", kMetadataKey, name)))
      return Recognise(*own);
    return Bad(fmt::format("chat template: '{}' is none; choose one of {}", Shown(name), Names()));
  }
  const auto* program = metadata.String(kMetadataKey);
  if (program == nullptr) program = metadata.String(fmt::format("{}.default", kMetadataKey));
  if (program != nullptr) return Recognise(*program);
  return Fail(ErrorCode::kNotFound,
              fmt::format("chat template: the model file has none, so this may be no chat model; "
                          "choose one with --chat-template: {}",
                          Names()));
}

Result<std::vector<ChatPiece>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                    const ChatOptions& options,
                                                    std::string_view bos,
                                                    std::string_view eos) const {
  FORETOKEN_CHECK_OK(CheckTurns(style_, messages));
  std::string date = !options.date.empty() ? options.date : style_.date;
  Renderer renderer(style_, bos, eos, date.empty() ? Today() : std::move(date));
  renderer.Messages(messages);
  renderer.End(options.add_generation_prompt);
  return renderer.Take();
}

Result<std::vector<Token>> EncodeChat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      const ChatOptions& options) {
  const auto text_of = [&](const std::optional<Token>& token) {
    return token ? tokenizer.TokenText(*token) : std::string();
  };
  FORETOKEN_TRY(
      const std::vector<ChatPiece> pieces,
      chat_template.Render(messages, options, text_of(tokenizer.bos()), text_of(tokenizer.eos())));
  std::vector<Token> tokens;
  // Adjacent text is encoded together: merges cross the borders of pieces.
  std::string text;
  const auto flush = [&] {
    const auto encoded = tokenizer.Encode(text, {.add_special = false});
    tokens.insert(tokens.end(), encoded.begin(), encoded.end());
    text.clear();
  };
  for (const ChatPiece& piece : pieces) {
    std::vector<Token> control;
    if (piece.control)
      control = tokenizer.Encode(piece.text, {.add_special = false, .parse_special = true});
    // A mark without a token in the vocabulary is ordinary text.
    if (control.size() != 1 || tokenizer.TokenText(control.front()) != piece.text) {
      text += piece.text;
      continue;
    }
    if (!text.empty()) flush();
    tokens.push_back(control.front());
  }
  if (!text.empty()) flush();
  const auto bos = tokenizer.bos();
  if (tokenizer.add_bos() && bos && (tokens.empty() || tokens.front() != *bos))
    tokens.insert(tokens.begin(), *bos);
  return tokens;
}

}  // namespace foretoken::text
