// SPDX-License-Identifier: Apache-2.0
// text/chat_template.h: writes conversations as the model was trained to read them.
//
// A GGUF file contains its template as a Jinja program (tokenizer.chat_template). The program is
// not run: characteristic marks in its text identify the family and the variant, and a program that
// has none of them is refused. Immutable; any thread may use it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/chat.h"
#include "foretoken/result.h"
#include "formats/metadata.h"
#include "text/chat_style.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

// A part of a rendered conversation. A control part ("<|im_start|>") is one token if the vocabulary
// has it as such; everything else is text, whatever it looks like.
struct ChatPiece {
  std::string text;
  bool control = false;
};

class ChatTemplate {
 public:
  // `name`: a family, one of the file's own templates (tokenizer.chat_template.NAME), or empty for
  // the file's default. Errors: kNotFound (the file has none), kUnsupported (the template belongs
  // to no known family; the message shows its beginning and hash), kInvalidArgument (no such name).
  [[nodiscard]] static Result<ChatTemplate> Choose(const formats::Metadata& metadata,
                                                   std::string_view name);
  // The same from the text of a Jinja program. Errors: kUnsupported.
  [[nodiscard]] static Result<ChatTemplate> Recognise(std::string_view program);

  // What the family's Jinja template prints, in pieces; adjacent text is one piece. bos, eos: the
  // texts of these tokens. Errors: kInvalidArgument (an unknown role, turns that the template
  // refuses, a system message where the template has no place for one).
  [[nodiscard]] Result<std::vector<ChatPiece>> Render(std::span<const ChatMessage> messages,
                                                      const ChatOptions& options,
                                                      std::string_view bos,
                                                      std::string_view eos) const;

  const std::string& name() const { return style_.name; }

 private:
  explicit ChatTemplate(ChatStyle style) : style_(std::move(style)) {}
  ChatStyle style_;
};

// The conversation's tokens, with the tokenizer's BOS if the template does not print it.
[[nodiscard]] Result<std::vector<Token>> EncodeChat(const ChatTemplate& chat_template,
                                                    const Tokenizer& tokenizer,
                                                    std::span<const ChatMessage> messages,
                                                    const ChatOptions& options);

}  // namespace foretoken::text
