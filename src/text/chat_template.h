// SPDX-License-Identifier: Apache-2.0
// text/chat_template.h: writes conversations as the model was trained to read them.
//
// A GGUF file contains its template as a Jinja program (tokenizer.chat_template), which is run
// (text/jinja). Immutable; any thread may use it.
#pragma once

#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/chat.h"
#include "foretoken/result.h"
#include "formats/metadata.h"
#include "text/jinja/template.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

// The program of `options`, or the one that options.chat_template names: one of the file's own
// (tokenizer.chat_template.NAME), "chatml", or, if it is empty, the file's default. Errors:
// kNotFound (the file has none), kInvalidArgument (no such name). Metadata and options must outlive
// it.
[[nodiscard]] Result<std::string_view> ChatProgram(const formats::Metadata& metadata,
                                                   const ChatOptions& options);

class ChatTemplate {
 public:
  // That of ChatProgram. Errors: those of ChatProgram and Parse.
  [[nodiscard]] static Result<ChatTemplate> Choose(const formats::Metadata& metadata,
                                                   const ChatOptions& options);
  // A template of the text of a Jinja program. Errors: kInvalidFile (it is not Jinja), kUnsupported,
  // kTooLarge; they name the line.
  [[nodiscard]] static Result<ChatTemplate> Parse(std::string_view program);

  // What the template writes: adjacent parts of the template's own text and of the conversation's.
  // bos, eos: the texts of these tokens. Errors: kInvalidArgument (the template refuses the
  // conversation, or cannot write it; JSON that is none), kTooLarge (a bound of text/jinja).
  [[nodiscard]] Result<std::vector<TextPart>> Render(std::span<const ChatMessage> messages,
                                                     const ChatOptions& options,
                                                     std::string_view bos,
                                                     std::string_view eos) const;

 private:
  explicit ChatTemplate(jinja::Template program, bool knows_developers)
      : program_(std::move(program)), knows_developers_(knows_developers) {}
  jinja::Template program_;
  bool knows_developers_;  // the role "developer"; otherwise it is written as "system"
};

// The conversation's tokens, with the tokenizer's BOS if the template does not print it.
[[nodiscard]] Result<std::vector<Token>> EncodeChat(const ChatTemplate& chat_template,
                                                    const Tokenizer& tokenizer,
                                                    std::span<const ChatMessage> messages,
                                                    const ChatOptions& options);
// What the template writes, as one text.
[[nodiscard]] Result<std::string> WriteChat(const ChatTemplate& chat_template,
                                            const Tokenizer& tokenizer,
                                            std::span<const ChatMessage> messages,
                                            const ChatOptions& options);

}  // namespace foretoken::text
