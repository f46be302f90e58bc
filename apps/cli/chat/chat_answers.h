// SPDX-License-Identifier: Apache-2.0
// cli/chat/chat_answers.h: every enabled mode answers a prompt with the same seed and is compared
// with plain decoding.
#pragma once

#include <string>

#include "cli/chat/chat_session.h"
#include "cli/terminal.h"
#include "foretoken/result.h"

namespace foretoken::cli {

// Writes the answers as they come, then a line about each. With a template, the prompt and the
// first answer join the conversation; if it outgrows the context, its oldest turns are dropped.
// Ctrl-C ends the running answer and skips those of the other modes. Errors: those of the engines
// and of the template; the conversation is then unchanged.
[[nodiscard]] Status AnswerPrompt(ChatSession& session, const std::string& prompt, Output& output,
                                  bool colour);

}  // namespace foretoken::cli
