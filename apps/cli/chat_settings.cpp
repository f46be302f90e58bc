// SPDX-License-Identifier: Apache-2.0
#include "cli/chat_settings.h"

#include "settings/setters.h"

namespace foretoken::cli {
namespace {

settings::FlagGroup ConversationFlags(settings::GenerateSettings& settings) {
  settings::FlagGroup group = settings::ChatFormatFlags(settings);
  group.flags.push_back({{"-n", "--n-predict", "--max-tokens"},
                         "N",
                         "tokens of an answer at most; default 256",
                         settings::StoreInteger(settings.request.max_new_tokens, 1, 1 << 24)});
  group.flags.push_back({{"--stop"},
                         "TEXT",
                         "answers end before this text; may be repeated",
                         [&settings](const std::string& text) -> Status {
                           if (text.empty())
                             return Fail(ErrorCode::kInvalidArgument,
                                         "the text is empty; give at least one character");
                           settings.request.stop.push_back(text);
                           return {};
                         },
                         true});
  return group;
}

}  // namespace

settings::FlagSet ChatFlags(settings::GenerateSettings& settings) {
  settings.request.max_new_tokens = 256;
  settings::FlagSet flags("chat [-m MODEL] [-md DRAFT] [flags]",
                          "Talks with a model, line by line; /help tells the commands. Where the "
                          "model has a chat template it sees the conversation, else each line is a "
                          "text to go on from.");
  flags.Add(settings::ModelFlags(settings.engine));
  flags.Add(ConversationFlags(settings));
  flags.Add(settings::SpeculationFlags(settings.engine, settings.draft_temperature));
  flags.Add(settings::SamplingFlags(settings));
  flags.Add({"Output", {settings::RecordFlag(settings.engine)}});
  settings::AddAbsentFlags(flags);
  flags.SetExamples(
      "Examples:\n"
      "  foretoken chat\n"
      "  foretoken chat -m target.gguf -md draft.gguf --system \"Answer in one sentence.\"\n"
      "  printf '%s\\n' /target \"Once upon a time\" | foretoken chat --temp 0\n"
      "Environment: NO_COLOR; XDG_STATE_HOME (folder of foretoken/history).\n");
  return flags;
}

Status FinishChat(settings::GenerateSettings& settings) {
  settings.prompt.emplace();  // generate's rules ask for one prompt, and for --chat
  settings.chat = true;
  return settings::Finish(settings);
}

}  // namespace foretoken::cli
