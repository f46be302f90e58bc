// SPDX-License-Identifier: Apache-2.0
// foretoken chat: reads lines, runs commands, answers prompts.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/chat/chat_answers.h"
#include "cli/chat/chat_commands.h"
#include "cli/chat/chat_session.h"
#include "cli/chat/chat_settings.h"
#include "cli/chat/line_editor.h"
#include "cli/idle_report.h"
#include "cli/input.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"

namespace foretoken::cli {
namespace {

ChatSession NewSession(const settings::GenerateSettings& settings, bool show_progress) {
  ChatSession session{.engines = ChatEngines(settings.engine, show_progress),
                      .request = settings.request,
                      .format = settings.chat_format,
                      .system = settings.system};
  const bool speculates = settings.engine.speculative.method != "none";
  session.Enabled(speculates ? ChatMode::kSpeculative : ChatMode::kTarget) = true;
  return session;
}

// The template, if there is one. A file without one is an error only if a template was asked for.
Status ChooseTemplate(ChatSession& session) {
  const auto chosen = ExecuteChatCommand(session, "/chat on");
  if (chosen) return {};
  const bool absent = chosen.error().code == ErrorCode::kNotFound;
  if (absent && session.format.chat_template.empty() && session.system.empty()) return {};
  return Fail(chosen.error());
}

std::string Greeting(const ChatSession& session, const EngineSummary& engine) {
  const std::string drafter =
      engine.method == "none" ? "no drafter"
      : engine.draft_model ? fmt::format("drafter {} ({})", engine.method, DraftFileNames(engine))
                           : fmt::format("drafter {}", engine.method);
  return fmt::format(
      "{}, {}; seed {}\n{}\n/help tells the commands, Ctrl-C stops an answer, "
      "Ctrl-D ends\n\n",
      FileName(engine.target.path), drafter, session.request.seed,
      session.uses_template ? "chat: on, the model sees a conversation"
                            : "chat: off, each prompt is a text to continue");
}

// Commands can change the temperature and turn n-gram drafts on.
SpeculativeUse UseOfChat(const Engine& engine, const Request& request) {
  SpeculativeUse use = engine.UseFor(request);
  for (const float temperature : {0.0f, 1.0f}) {
    Request other = request;
    other.sampling.temperature = temperature;
    use.Add(engine.UseFor(other));
    other.speculative.method = "ngram";
    use.Add(engine.UseFor(other));
  }
  return use;
}

// Handles one line. False: it failed, and the chat continues.
bool Obey(ChatSession& session, const std::string& line, Output& output, bool colour) {
  if (line.find_first_not_of(" \t") == std::string::npos) return true;
  if (IsChatCommand(line)) {
    const auto reply = ExecuteChatCommand(session, line);
    if (reply) output.Write(*reply);
    if (!reply) ReportError(reply.error());
    return reply.has_value();
  }
  const Status status =
      AnswerPrompt(session, line.starts_with("//") ? line.substr(1) : line, output, colour);
  if (!status) ReportError(status.error());
  return status.has_value();
}

Result<int> Converse(settings::GenerateSettings& settings) {
  const bool colour = ColourOnStandardOutput();
  LineEditor editor(colour ? "\1\033[1;32m\1>\1\033[0m\1 " : "> ", LineEditor::HistoryFile());
  ChatSession session = NewSession(settings, editor.interactive());
  FORETOKEN_CHECK_OK(ChooseTemplate(session));
  FORETOKEN_TRY(const Engine* const engine, session.engines.Target());
  FORETOKEN_CHECK_OK(ReadSamplingTexts(*engine, settings));
  session.request = settings.request;
  ReportIdleSettings(settings, UseOfChat(*engine, settings.request));
  Output output(settings.raw);
  if (editor.interactive())
    output.Write(Fitted(Greeting(session, engine->summary()), STDOUT_FILENO, 2));
  bool failed = false;
  for (std::string line; !session.quit && !output.failed();) {
    const LineOutcome outcome = editor.Read(line);
    if (outcome == LineOutcome::kEnd) break;
    if (outcome == LineOutcome::kDropped) {
      output.Write("(Ctrl-D or /quit ends the chat)\n");
      continue;
    }
    if (!Obey(session, line, output, colour)) failed = true;
  }
  if (editor.interactive() && !session.quit) output.Write("\n");
  if (output.closed_pipe()) return kDone;
  FORETOKEN_CHECK_OK(output.status());
  // A person has seen the error; a script needs the exit code.
  return failed && !editor.interactive() ? kFailed : kDone;
}

Result<int> RunChat(settings::GenerateSettings& settings) {
  FORETOKEN_CHECK_OK(FinishChat(settings));
  return Converse(settings);
}

}  // namespace

extern const Verb kChatVerb =
    MakeVerb<ChatFlags, RunChat>("chat", "talks with a model, line by line");

}  // namespace foretoken::cli
