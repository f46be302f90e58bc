// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/chat_settings.h"

#include "settings/llama_flags.h"
#include "settings/setters.h"

namespace foretoken::cli {
namespace {

settings::FlagGroup ConversationFlags(settings::GenerateSettings& settings) {
  settings::FlagGroup group = settings::ChatFormatFlags(settings);
  group.flags.push_back({{"-n", "--n-predict", "--max-tokens"},
                         "N",
                         "most tokens of an answer; -1: as many as fit the context; default 256",
                         settings::StoreLength(settings.request.max_new_tokens, 1)});
  group.flags.push_back({{"--stop"},
                         "TEXT",
                         "end answers before TEXT; may be repeated",
                         [&settings](const std::string& text) -> Status {
                           if (text.empty())
                             return Fail(ErrorCode::kInvalidArgument,
                                         "the text is empty; give at least one character");
                           settings.request.stop.push_back(text);
                           return {};
                         },
                         true});
  group.flags.push_back(settings::StopTokenFlag(settings));
  return group;
}

}  // namespace

settings::FlagSet ChatFlags(settings::GenerateSettings& settings) {
  settings.request.max_new_tokens = 256;
  settings::FlagSet flags("chat [-m MODEL] [-md DRAFT] [flags]",
                          "Talks with a model, line by line; /help lists the commands. If the "
                          "model has a chat template, it sees the whole conversation; otherwise it "
                          "continues each line as a text of its own.");
  flags.Add(settings::ModelFlags(settings.engine));
  flags.Add(ConversationFlags(settings));
  flags.Add(settings::SpeculationFlags(settings));
  flags.Add(settings::SamplingFlags(settings));
  flags.Add({"Output",
             {settings::RawFlag(settings.raw), settings::EngineFlag("record", settings.engine)}});
  flags.SetEssential({"-m", "-c", "-t", "--system", "-n", "--stop", "-md", "--spec-type",
                      "--num-speculative-tokens", "--temp", "--top-k", "--top-p", "--seed"});
  flags.AddForeign(
      {{{"-cnv", "--conversation", "-i", "--interactive", "-if", "--interactive-first"}}});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken chat",
       "foretoken chat -m target.gguf -md draft.gguf --system \"Answer in one sentence.\"",
       "printf '%s\\n' /target \"Once upon a time\" | foretoken chat --temp 0"});
  flags.SetEnvironment("NO_COLOR; XDG_STATE_HOME (folder of foretoken/history).");
  return flags;
}

Status FinishChat(settings::GenerateSettings& settings) {
  settings.prompt.emplace();  // generate's rules need one prompt, also for --chat
  settings.chat = true;
  return settings::Finish(settings);
}

}  // namespace foretoken::cli
