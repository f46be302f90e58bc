// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/chat_answers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/generate/generation.h"
#include "cli/generate/trace.h"
#include "foretoken/engine.h"

namespace foretoken::cli {
namespace {

struct Answer {
  ChatMode mode;
  Completion completion;

  std::optional<double> tokens_per_second() const {
    return PerSecond(completion.timings.decoded_tokens, completion.timings.decode_ms);
  }
};

std::string Coloured(bool colour, const char* code, const std::string& text) {
  return colour ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

// The conversation with the prompt at its end, as tokens, leaving room for an answer.
Result<std::vector<std::int32_t>> Conversation(ChatSession& session, const Engine& engine,
                                               const std::string& prompt, Output& output,
                                               bool colour) {
  const int context = engine.summary().target.context_size;
  const int room = std::min(session.request.max_new_tokens, context / 4);
  auto& history = session.history;
  for (std::size_t forgotten = 0;;) {
    std::vector<ChatMessage> messages;
    if (!session.system.empty()) messages.push_back({"system", session.system});
    messages.insert(messages.end(), history.begin(), history.end());
    messages.push_back({"user", prompt});
    FORETOKEN_TRY(auto tokens, engine.FormatChat(messages, session.format));
    if (history.empty() || static_cast<int>(tokens.size()) + room <= context) {
      if (forgotten > 0)
        output.WriteColoured(
            Coloured(colour, "2",
                     fmt::format("(the context of {} tokens is full: the oldest {} "
                                 "forgotten)\n",
                                 context,
                                 forgotten == 1 ? std::string("turn is")
                                                : fmt::format("{} turns are", forgotten))));
      return tokens;
    }
    history.erase(history.begin(), history.begin() + 2);  // a prompt and its answer
    ++forgotten;
  }
}

Result<Engine*> EngineOf(ChatSession& session, ChatMode mode) {
  return mode == ChatMode::kDrafter ? session.engines.Drafter() : session.engines.Target();
}

// Shows the text as it comes; nothing is held back.
Result<Completion> Stream(Engine& engine, const Request& request, bool debug, bool colour,
                          Output& output) {
  std::optional<Trace> trace;
  if (debug)
    trace.emplace(colour, output.escapes(), [&engine](std::span<const std::int32_t> tokens) {
      return engine.Detokenize(tokens, true);
    });
  std::size_t n_shown = 0;
  auto completion = engine.Generate(request, [&](const RoundEvent& round) {
    std::string text;
    for (const TokenEvent& event : round.events) text += event.text;
    n_shown += text.size();
    trace ? output.WriteColoured(trace->Round(round)) : output.Write(text);
    return !InterruptGuard::interrupted() && !output.failed();
  });
  if (!completion) return completion;
  const std::string rest = completion->text.substr(std::min(n_shown, completion->text.size()));
  trace ? output.WriteColoured(trace->Rest(rest)) : output.Write(rest);
  output.Write("\n");
  return completion;
}

void Count(ChatTotals& totals, const Completion& completion) {
  ++totals.answers;
  totals.stats.Add(completion.speculation);
  totals.tokens += completion.timings.decoded_tokens;
  totals.decode_ms += completion.timings.decode_ms;
  totals.prompt_tokens += completion.timings.prompt_tokens;
  totals.cached_prompt_tokens += completion.timings.cached_prompt_tokens;
}

std::string Length(const Completion& completion) {
  const std::size_t n = completion.token_ids.size();
  if (completion.finish_reason == FinishReason::kLength) return fmt::format("cut at {}", n);
  if (completion.finish_reason == FinishReason::kCancelled) return fmt::format("stopped at {}", n);
  return fmt::format("{} token{}", n, n == 1 ? "" : "s");
}

// A line about an answer; `plain`: the target's answer, if there is one.
std::string Line(const Answer& answer, const Answer* plain) {
  const Completion& completion = answer.completion;
  const auto rate = answer.tokens_per_second();
  std::string out = fmt::format("{:<11} {:>14}", Name(answer.mode), Length(completion));
  if (rate) out += fmt::format("{:>7.{}f} tokens/s", *rate, *rate < 100 ? 1 : 0);
  if (plain != nullptr && rate && plain->tokens_per_second())
    out += fmt::format("  {:>5.2f}x plain", *rate / *plain->tokens_per_second());
  if (const auto accepted = completion.speculation.acceptance_rate())
    out += fmt::format("  {:.0f} % of {} drafts accepted", 100 * *accepted,
                       completion.speculation.drafted);
  const bool drafted = answer.mode == ChatMode::kSpeculative || answer.mode == ChatMode::kNgram;
  if (plain != nullptr && drafted && completion.token_ids == plain->completion.token_ids)
    out += ", same text";
  return out;
}

std::string Lines(const std::vector<Answer>& answers, bool colour) {
  const auto plain = std::find_if(answers.begin(), answers.end(),
                                  [](const Answer& a) { return a.mode == ChatMode::kTarget; });
  std::string out;
  for (const Answer& answer : answers)
    out += Coloured(colour, "2",
                    Fitted("  " + Line(answer, plain == answers.end() ? nullptr : &*plain),
                           STDOUT_FILENO, 14)) +
           "\n";
  return out;
}

// The request of one mode.
Request RequestOf(const ChatSession& session, ChatMode mode) {
  Request request = session.request;
  if (mode == ChatMode::kNgram) request.speculative.method = "ngram";
  if (mode == ChatMode::kTarget || mode == ChatMode::kDrafter) {
    request.speculative.method = "none";
    request.speculative.num_speculative_tokens.reset();
  }
  return request;
}

Result<std::vector<Answer>> Answers(ChatSession& session, const std::string& prompt, Output& output,
                                    bool colour) {
  const InterruptGuard guard;
  std::vector<std::int32_t> tokens;
  if (session.uses_template) {
    FORETOKEN_TRY(const Engine* const engine, session.engines.Target());
    FORETOKEN_TRY(tokens, Conversation(session, *engine, prompt, output, colour));
  }
  const bool several = std::count(session.enabled.begin(), session.enabled.end(), true) > 1;
  std::vector<Answer> answers;
  for (const ChatMode mode : kChatModes) {
    if (!session.Enabled(mode) || InterruptGuard::interrupted() || output.failed()) continue;
    FORETOKEN_TRY(Engine* const engine, EngineOf(session, mode));
    Request request = RequestOf(session, mode);
    request.prompt = prompt;
    request.prompt_tokens = tokens;
    if (several)
      output.WriteColoured(Coloured(colour, "1;36", fmt::format("[{}]", Name(mode))) + " ");
    FORETOKEN_TRY(auto completion, Stream(*engine, request, session.debug, colour, output));
    Count(session.Totals(mode), completion);
    answers.push_back({mode, std::move(completion)});
  }
  return answers;
}

}  // namespace

Status AnswerPrompt(ChatSession& session, const std::string& prompt, Output& output, bool colour) {
  if (std::count(session.enabled.begin(), session.enabled.end(), true) == 0)
    return Fail(ErrorCode::kInvalidArgument,
                "chat: nobody answers; turn on /speculative, /target, /drafter or /ngram");
  FORETOKEN_TRY(const std::vector<Answer> answers, Answers(session, prompt, output, colour));
  output.WriteColoured(Lines(answers, colour));
  if (!session.uses_template || answers.empty()) return {};
  session.history.push_back({"user", prompt});
  session.history.push_back({"assistant", answers.front().completion.text});
  return {};
}

}  // namespace foretoken::cli
