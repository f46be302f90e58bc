// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/generate/comparison.h"
#include "cli/generate/generation.h"
#include "cli/generate/statistics.h"
#include "cli/generate/trace.h"
#include "cli/idle_report.h"
#include "cli/input.h"
#include "cli/json_report.h"
#include "cli/open_engine.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "foretoken/engine.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {
namespace {

using settings::GenerateSettings;

Status ReadPrompt(GenerateSettings& settings) {
  Request& request = settings.request;
  const bool piped = settings.prompt_is_piped || settings.prompt == "-";
  if (!piped && !settings.prompt_file) {
    request.prompt = settings.prompt.value_or("");
    return {};
  }
  FORETOKEN_TRY(request.prompt, ReadText(piped ? "-" : *settings.prompt_file));
  if (request.prompt.ends_with('\n')) request.prompt.pop_back();
  if (settings.prompt_is_piped && request.prompt.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "prompt: none is given, and standard input is empty; pass -p TEXT or -f FILE, or "
                "pipe the text in");
  return {};
}

// With --chat the prompt becomes the tokens of a conversation.
Status ApplyTemplate(const Engine& engine, GenerateSettings& settings) {
  if (!settings.chat) return {};
  std::vector<ChatMessage> messages;
  if (!settings.system.empty()) messages.push_back({"system", settings.system});
  messages.push_back({"user", settings.request.prompt});
  FORETOKEN_TRY(settings.request.prompt_tokens, engine.FormatChat(messages, settings.chat_format));
  return {};
}

// Runs the request and shows its text as it comes.
Result<Completion> Stream(Engine& engine, const GenerateSettings& settings,
                          const SpeculativeUse& use, Output& output) {
  const bool shown = !settings.json;
  std::optional<Trace> trace;
  bool begun = !shown || settings.quiet;
  const auto begin = [&] {  // not before the request has been checked
    if (!std::exchange(begun, true))
      std::fputs(Fitted(StartLine(engine.summary(), use, settings.request.sampling.greedy()),
                        STDERR_FILENO, 2)
                     .c_str(),
                 stderr);
  };
  if (settings.trace) {
    begin();
    trace.emplace(ColourOnStandardOutput(), output.escapes(),
                  [&engine](std::span<const std::int32_t> tokens) {
                    return engine.Detokenize(tokens, true);
                  });
    const auto& tokens = settings.request.prompt_tokens;
    output.WriteColoured(
        trace->Begin(tokens.empty() ? settings.request.prompt : engine.Detokenize(tokens)));
  }
  std::size_t n_shown = 0;
  auto completion = engine.Generate(settings.request, [&](const RoundEvent& round) {
    begin();
    std::string text;
    for (const TokenEvent& event : round.events) text += event.text;
    n_shown += text.size();
    if (shown) trace ? output.WriteColoured(trace->Round(round)) : output.Write(text);
    return !InterruptGuard::interrupted() && !output.failed();
  });
  if (!completion || !shown) return completion;
  const std::string rest = completion->text.substr(std::min(n_shown, completion->text.size()));
  trace ? output.WriteColoured(trace->Rest(rest)) : output.Write(rest);
  output.Write("\n");
  return completion;
}

Result<std::optional<Comparison>> CompareIfAsked(Engine& engine, const GenerateSettings& settings) {
  if (!settings.compare || InterruptGuard::interrupted()) return std::optional<Comparison>();
  ProgressLine line(!settings.quiet);
  return Compare(engine, settings.request, [&line](int run, int runs) {
    line.Show(fmt::format("comparing with plain decoding: run {} of {}", run, runs));
  });
}

Result<int> Generate(GenerateSettings& settings) {
  FORETOKEN_CHECK_OK(ReadPrompt(settings));
  FORETOKEN_TRY(const std::unique_ptr<Engine> engine,
                OpenEngine(settings.engine, settings.quiet, false, settings.trace));
  FORETOKEN_CHECK_OK(ReadSamplingTexts(*engine, settings));
  FORETOKEN_CHECK_OK(ApplyTemplate(*engine, settings));
  SpeculativeUse use = engine->UseFor(settings.request);
  use.several_requests = false;
  ReportIdleSettings(settings, use);
  const InterruptGuard guard;
  Output output(settings.raw);
  FORETOKEN_TRY(const Completion completion, Stream(*engine, settings, use, output));
  if (output.closed_pipe()) return kDone;
  FORETOKEN_CHECK_OK(output.status());
  const EngineCounts counts = engine->counts();
  FORETOKEN_TRY(const auto comparison, CompareIfAsked(*engine, settings));
  const Generation generation{.engine = &engine->summary(),
                              .completion = &completion,
                              .config = &settings.engine.speculative,
                              .strategy = completion.strategy,
                              .greedy = settings.request.sampling.greedy(),
                              .counts = counts,
                              .comparison = comparison};
  if (settings.json) {
    output.Write(GenerationJson(generation));
  } else if (!settings.quiet) {
    std::fputs(
        Fitted(Statistics(generation, settings.stats), STDERR_FILENO, settings.stats ? 12 : 4)
            .c_str(),
        stderr);
  }
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  FORETOKEN_CHECK_OK(engine->RecordStatus());
  if (const Status kept = engine->KeepCache(); !kept)
    ReportNotice("cache file: " + kept.error().message);
  return InterruptGuard::interrupted() ? kInterrupted : kDone;
}

Result<int> RunGenerate(GenerateSettings& settings) {
  settings.prompt_is_piped = !settings.prompt && !settings.prompt_file &&
                             settings.request.prompt_tokens.empty() && StandardInputHoldsText();
  FORETOKEN_CHECK_OK(settings::Finish(settings));
  return Generate(settings);
}

}  // namespace

extern const Verb kGenerateVerb = MakeVerb<settings::GenerateFlags, RunGenerate>(
    "generate", "continues a prompt, faster by speculation, with the same text");

}  // namespace foretoken::cli
