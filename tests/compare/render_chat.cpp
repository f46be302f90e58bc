// SPDX-License-Identifier: Apache-2.0
// Prints a conversation as a chat template writes it, for tests/compare/chat_templates.py:
// render_chat PROGRAM.jinja BOS EOS PROMPT DATE [ROLE CONTENT]...   (PROMPT: 0 or 1; DATE: "" for
// the template's). Exit code 1 with the reason where the template or the conversation is refused.
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "text/chat_template.h"

int main(int argc, char** argv) {
  if (argc < 6 || argc % 2 != 0) {
    std::fprintf(stderr,
                 "usage: render_chat PROGRAM.jinja BOS EOS PROMPT DATE [ROLE CONTENT]...\n");
    return 2;
  }
  std::stringstream program;
  program << std::ifstream(argv[1]).rdbuf();
  const auto chat_template = foretoken::text::ChatTemplate::Recognise(program.str());
  if (!chat_template) {
    std::fprintf(stderr, "%s\n", chat_template.error().message.c_str());
    return 1;
  }
  std::vector<foretoken::ChatMessage> messages;
  for (int i = 6; i + 1 < argc; i += 2) messages.push_back({argv[i], argv[i + 1]});
  const auto pieces = chat_template->Render(
      messages, {.add_generation_prompt = argv[4][0] == '1', .date = argv[5]}, argv[2], argv[3]);
  if (!pieces) {
    std::fprintf(stderr, "%s\n", pieces.error().message.c_str());
    return 1;
  }
  for (const auto& piece : *pieces) std::fputs(piece.text.c_str(), stdout);
  std::fprintf(stderr, "%s\n", chat_template->name().c_str());
  return 0;
}
