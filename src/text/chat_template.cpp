// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/values/json_text.h"

namespace foretoken {

std::vector<std::string_view> ChatTemplateNames() {
  return {"chatml"};
}

}  // namespace foretoken

namespace foretoken::text {
namespace {

using jinja::Budget;
using jinja::DictionaryBuilder;
using jinja::SameText;
using jinja::ToUtf8;
using jinja::Value;
using jinja::Values;
using jinja::Variable;

constexpr std::string_view kMetadataKey = "tokenizer.chat_template";
// For model files without a template, where it is asked for by its name.
constexpr std::string_view kChatMl =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
    "(message['content'] or '') + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
// Roles that templates put into marks ('<|' + role + '|>'). Others are texts of the conversation.
constexpr std::array<std::string_view, 8> kRoles = {"system", "developer", "user",  "assistant",
                                                    "tool",   "function",  "model", "ipython"};

tl::unexpected<Error> OfTemplate(Error error) {
  return Fail(std::move(error).In("chat template"));
}

// What a template itself says of its values, as Jinja does, leaves open what to do.
tl::unexpected<Error> OfRendering(Error error) {
  if (error.code == ErrorCode::kInvalidArgument)
    error.message += "; change the conversation, or give another template";
  return OfTemplate(std::move(error));
}

Result<Value> ReadJson(Budget& budget, std::string_view json, std::string_view what) {
  auto value = jinja::FromJson(budget, json, true);
  if (!value) return Fail(std::move(value).error().In(fmt::format("chat: {}", what)));
  return value;
}

std::tm Now() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return local;
}

// The values of one conversation.
class Conversation {
 public:
  // objects: the arguments of tool calls are objects, even if they come as a text of JSON.
  Conversation(Budget& budget, bool knows_developers, bool objects)
      : budget_(budget), knows_developers_(knows_developers), objects_(objects) {}

  Result<Value> Messages(std::span<const ChatMessage> messages) {
    Values values;
    values.reserve(messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto value = Message(messages[i]);
      if (!value) return Fail(std::move(value).error().In(fmt::format("chat: message {}", i + 1)));
      values.push_back(*std::move(value));
    }
    return jinja::ListValue(budget_, std::move(values));
  }

  // Whether there were arguments as a text of JSON.
  bool had_texts() const { return had_texts_; }

 private:
  Result<Value> Message(const ChatMessage& message) {
    DictionaryBuilder members(budget_);
    const bool developer = message.role == "developer" && !knows_developers_;
    const std::string_view role = developer ? "system" : std::string_view(message.role);
    const bool known = std::find(kRoles.begin(), kRoles.end(), role) != kRoles.end();
    members.Set("role", jinja::TextValue(budget_, role, !known));
    members.Set("content", jinja::TextValue(budget_, message.content, true));
    if (message.members_json.empty()) return members.Take();
    FORETOKEN_TRY(const Value more, jinja::FromJson(budget_, message.members_json, true));
    if (more.dictionary() == nullptr)
      return InvalidArgument("its other members are not a JSON object; give one");
    for (const auto& [key, value] : more.dictionary()->items) {
      const bool content =
          SameText(key.text(), U"content") && (!value.IsNone() || !message.content.empty());
      if (content || SameText(key.text(), U"role")) continue;
      const bool calls = SameText(key.text(), U"tool_calls") && value.sequence() != nullptr;
      members.Set(key, calls ? ToolCalls(value) : value);
    }
    return members.Take();
  }

  Value ToolCalls(const Value& calls) {
    Values out;
    for (const Value& call : calls.sequence()->items) out.push_back(WithObject(call, U"function"));
    return jinja::ListValue(budget_, std::move(out));
  }

  // A copy whose member `inner` has its arguments as an object.
  Value WithObject(const Value& value, jinja::CharactersView inner) {
    if (value.dictionary() == nullptr) return value;
    DictionaryBuilder copy(budget_);
    for (const auto& [key, member] : value.dictionary()->items) {
      const bool arguments = SameText(key.text(), U"arguments") && member.IsText();
      had_texts_ = had_texts_ || arguments;
      if (!inner.empty() && SameText(key.text(), inner))
        copy.Set(key, WithObject(member, {}));
      else if (arguments && objects_)
        copy.Set(key, jinja::FromJson(budget_, ToUtf8(member.text()), true).value_or(member));
      else
        copy.Set(key, member);
    }
    return copy.Take();
  }

  Budget& budget_;
  bool knows_developers_, objects_;
  bool had_texts_ = false;
};

// The variables beside the messages, as transformers gives them to templates.
Result<std::vector<Variable>> VariablesOf(Budget& budget, const ChatOptions& options,
                                          std::string_view bos, std::string_view eos) {
  std::vector<Variable> variables = {
      {"bos_token", jinja::TextValue(budget, bos)},
      {"eos_token", jinja::TextValue(budget, eos)},
      {"add_generation_prompt", Value(options.add_generation_prompt)},
      {"documents", Value(jinja::None{})}};
  Value tools{jinja::None{}};
  if (!options.tools_json.empty()) {
    FORETOKEN_TRY(tools, ReadJson(budget, options.tools_json, "tools"));
  }
  variables.push_back({"tools", std::move(tools)});
  if (!options.date.empty())
    variables.push_back({"date_string", jinja::TextValue(budget, options.date)});
  if (options.template_kwargs_json.empty()) return variables;
  FORETOKEN_TRY(const Value more,
                ReadJson(budget, options.template_kwargs_json, "chat_template_kwargs"));
  if (more.dictionary() == nullptr)
    return InvalidArgument("chat: chat_template_kwargs are not a JSON object; give one");
  for (const auto& [key, value] : more.dictionary()->items) {
    std::string name = ToUtf8(key.text());
    if (name == "messages")
      return InvalidArgument("chat: chat_template_kwargs cannot set messages; leave it out");
    variables.push_back({std::move(name), value});  // of two with one name the later one counts
  }
  return variables;
}

// The most memory for a byte of text while it becomes tokens (one word of one letter).
constexpr std::size_t kMemoryPerByteOfText = 48;

Status CheckTextLength(std::span<const TextPart> parts, const ChatOptions& options) {
  std::size_t n_bytes = 0;
  for (const TextPart& part : parts) n_bytes += part.text.size();
  if (n_bytes <= options.max_memory_bytes / kMemoryPerByteOfText) return {};
  return Fail(ErrorCode::kTooLarge,
              fmt::format("chat template: its text has {} bytes, and with {} MiB of memory no more "
                          "than {} become tokens; shorten the conversation",
                          n_bytes, options.max_memory_bytes >> 20,
                          options.max_memory_bytes / kMemoryPerByteOfText));
}

// Error: there are so many parts that they need more than the budget's memory.
Result<std::vector<TextPart>> PartsOf(Budget& budget, jinja::CharactersView text) {
  std::size_t n_parts = text.empty() ? 0 : 1;
  for (std::size_t i = 1; i < text.size(); ++i)
    n_parts += ((text[i] ^ text[i - 1]) & jinja::kFromInput) != 0;
  FORETOKEN_CHECK_OK(budget.Admit(n_parts, sizeof(TextPart)));
  std::vector<TextPart> parts;
  parts.reserve(n_parts);
  for (std::size_t begin = 0; begin < text.size();) {
    const bool input = (text[begin] & jinja::kFromInput) != 0;
    std::size_t end = begin + 1;
    while (end < text.size() && ((text[end] & jinja::kFromInput) != 0) == input) ++end;
    parts.push_back({jinja::ToUtf8(text.substr(begin, end - begin)), !input});
    begin = end;
  }
  return parts;
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Parse(std::string_view program) {
  auto parsed = jinja::Template::Parse(program);
  if (!parsed && parsed.error().code == ErrorCode::kInvalidArgument)
    parsed.error().code = ErrorCode::kInvalidFile;
  if (!parsed) return OfTemplate(std::move(parsed).error());
  return ChatTemplate(*std::move(parsed), program.find("developer") != std::string_view::npos);
}

Result<std::string_view> ChatProgram(const formats::Metadata& metadata,
                                     const ChatOptions& options) {
  if (!options.template_text.empty()) return options.template_text;
  if (const std::string& name = options.chat_template; !name.empty()) {
    if (const auto* own = metadata.String(fmt::format("{}.{}", kMetadataKey, name))) return *own;
    if (name == "chatml") return kChatMl;
    return InvalidArgument(fmt::format(
        "chat template: the model file has none named '{}'; name one of its own, or chatml, "
        "or give another with ChatOptions::template_text",
        Shown(name)));
  }
  const auto* program = metadata.String(kMetadataKey);
  if (program == nullptr) program = metadata.String(fmt::format("{}.default", kMetadataKey));
  if (program != nullptr) return *program;
  return Fail(ErrorCode::kNotFound,
              "chat template: the model file has none, so this may be no chat model; give one with "
              "ChatOptions::template_text, or choose chatml with ChatOptions::chat_template");
}

Result<ChatTemplate> ChatTemplate::Choose(const formats::Metadata& metadata,
                                          const ChatOptions& options) {
  FORETOKEN_TRY(const std::string_view program, ChatProgram(metadata, options));
  return Parse(program);
}

Result<std::vector<TextPart>> ChatTemplate::Render(std::span<const ChatMessage> messages,
                                                   const ChatOptions& options, std::string_view bos,
                                                   std::string_view eos) const {
  if (messages.empty()) return InvalidArgument("chat: there are no messages; give at least one");
  // Most templates want the arguments of tool calls as objects, some as texts.
  for (const bool objects : {true, false}) {
    Budget budget({.memory_bytes = options.max_memory_bytes});
    Conversation conversation(budget, knows_developers_, objects);
    auto text = jinja::WithinMemory(budget, [&]() -> Result<jinja::Characters> {
      FORETOKEN_TRY(std::vector<Variable> variables, VariablesOf(budget, options, bos, eos));
      FORETOKEN_TRY(Value list, conversation.Messages(messages));
      variables.push_back({"messages", std::move(list)});
      auto written = program_.Render(budget, variables, Now());
      if (!written) return OfRendering(std::move(written).error());
      return written;
    });
    if (text) return PartsOf(budget, *text);
    const bool again = objects && conversation.had_texts() && !budget.over();
    if (!again) return Fail(std::move(text).error());
  }
  return std::vector<TextPart>{};
}

namespace {

Result<std::vector<TextPart>> RenderFor(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template,
                                        std::span<const ChatMessage> messages,
                                        const ChatOptions& options) {
  const auto text_of = [&](const std::optional<Token>& token) {
    return token ? tokenizer.TokenText(*token) : std::string();
  };
  FORETOKEN_TRY(
      std::vector<TextPart> parts,
      chat_template.Render(messages, options, text_of(tokenizer.bos()), text_of(tokenizer.eos())));
  FORETOKEN_CHECK_OK(CheckTextLength(parts, options));
  return parts;
}

}  // namespace

Result<std::string> WriteChat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                              std::span<const ChatMessage> messages, const ChatOptions& options) {
  FORETOKEN_TRY(const std::vector<TextPart> parts,
                RenderFor(tokenizer, chat_template, messages, options));
  std::string text;
  for (const TextPart& part : parts) text += part.text;
  return text;
}

Result<std::vector<Token>> EncodeChat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                      std::span<const ChatMessage> messages,
                                      const ChatOptions& options) {
  FORETOKEN_TRY(const std::vector<TextPart> parts,
                RenderFor(tokenizer, chat_template, messages, options));
  std::vector<Token> tokens = tokenizer.EncodeParts(parts);
  const auto bos = tokenizer.bos();
  if (tokenizer.add_bos() && bos && (tokens.empty() || tokens.front() != *bos))
    tokens.insert(tokens.begin(), *bos);
  return tokens;
}

}  // namespace foretoken::text
