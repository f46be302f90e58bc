// SPDX-License-Identifier: Apache-2.0
#include "cli/chat/chat_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <vector>

#include "cli/generate/generation.h"
#include "cli/terminal.h"
#include "config/nearest_name.h"
#include "foretoken/option_keys.h"
#include "foretoken/request.h"
#include "settings/values.h"

namespace foretoken::cli {

const char* Name(ChatMode mode) {
  constexpr std::array<const char*, 4> kNames = {"speculative", "target", "drafter", "ngram"};
  return kNames[static_cast<std::size_t>(mode)];
}

namespace {

using Words = std::vector<std::string>;
using Reply = Result<std::string>;


struct Command {
  std::string_view name, arguments, help;
  Reply (*execute)(ChatSession& session, const Words& arguments);
};
extern const std::array<Command, 19> kCommands;

constexpr const char* kReopens = "; the model is opened again for it";

const char* OnOff(bool on) {
  return on ? "on" : "off";
}

// The state after a switch: the other one, or the named one.
Result<bool> Switched(bool before, const Words& words) {
  if (words.empty()) return !before;
  if (words.size() == 1 && (words[0] == "on" || words[0] == "off")) return words[0] == "on";
  return InvalidArgument(fmt::format(
      "'{}' is neither on nor off; give one of them, or nothing to switch", Shown(words[0])));
}

Status WantNumber(const Words& words, std::size_t count, std::string_view usage) {
  if (words.size() == count) return {};
  return InvalidArgument(
      fmt::format("{} values where {} belong; write {}", words.size(), count, usage));
}

Reply Help(ChatSession&, const Words&) {
  std::string out;
  for (const Command& command : kCommands)
    out += fmt::format("  {:<34} {}\n", fmt::format("/{} {}", command.name, command.arguments),
                       command.help);
  out += "  anything else is answered; a prompt may begin with a slash if it is doubled: //\n";
  return Fitted(out, STDOUT_FILENO, 37);
}

Reply Quit(ChatSession& session, const Words&) {
  session.quit = true;
  return "";
}

Reply Clear(ChatSession& session, const Words&) {
  session.history.clear();
  return "history: empty\n";
}

Reply Debug(ChatSession& session, const Words& words) {
  FORETOKEN_TRY(session.debug, Switched(session.debug, words));
  return fmt::format("debug: {}\n", session.debug ? "on, each round is shown" : "off");
}

Reply SwitchMode(ChatSession& session, const Words& words, ChatMode mode) {
  FORETOKEN_TRY(const bool on, Switched(session.Enabled(mode), words));
  if (on && mode == ChatMode::kSpeculative &&
      session.engines.options().speculative.method == "none")
    return InvalidArgument("the chat was started with --spec-type none; start it with a drafter");
  if (on && mode == ChatMode::kDrafter) FORETOKEN_CHECK_OK(session.engines.Drafter());
  session.Enabled(mode) = on;
  const bool any =
      std::any_of(session.enabled.begin(), session.enabled.end(), [](bool e) { return e; });
  return fmt::format("{}: {}{}\n", Name(mode), OnOff(on), any ? "" : "; nobody answers now");
}

Reply Speculative(ChatSession& session, const Words& words) {
  return SwitchMode(session, words, ChatMode::kSpeculative);
}
Reply Target(ChatSession& session, const Words& words) {
  return SwitchMode(session, words, ChatMode::kTarget);
}
Reply Drafter(ChatSession& session, const Words& words) {
  return SwitchMode(session, words, ChatMode::kDrafter);
}
Reply Ngram(ChatSession& session, const Words& words) {
  return SwitchMode(session, words, ChatMode::kNgram);
}

// Shows the settings and the counts.
Reply Cache(ChatSession& session, const Words& words) {
  const EngineOptions& options = session.engines.options();
  const bool before = options.kv_cache;
  FORETOKEN_TRY(const bool on, Switched(!before, words));
  if (on != before) session.engines.Change().kv_cache = on;
  const char* const what = !on ? "each round computes the whole text anew: the same text, slowly"
                           : options.prefix_cache
                               ? "a beginning that prompts share is read once, except by heads"
                               : "each prompt is read whole (--prefix-cache off)";
  std::int64_t read = 0, found = 0;
  for (const ChatTotals& totals : session.totals)
    read += totals.prompt_tokens, found += totals.cached_prompt_tokens;
  return fmt::format(
      "cache: {}; {}{}\n       so far {} prompt tokens were read, and {} found in the cache\n",
      OnOff(on), what, on == before ? "" : kReopens, read, found);
}

Reply Chat(ChatSession& session, const Words& words) {
  FORETOKEN_TRY(const bool on, Switched(session.uses_template, words));
  if (on) {
    FORETOKEN_TRY(const Engine* const engine, session.engines.Target());
    const std::array<ChatMessage, 2> probe = {ChatMessage{"system", "-"}, ChatMessage{"user", "-"}};
    FORETOKEN_CHECK_OK(engine->FormatChat(std::span(probe).subspan(session.system.empty() ? 1 : 0),
                                          session.format));
  }
  session.uses_template = on;
  return fmt::format("chat: {}\n", on ? "on, the model sees a conversation"
                                      : "off, each prompt is a text to continue");
}

Reply Length(ChatSession& session, const Words& words) {
  FORETOKEN_CHECK_OK(WantNumber(words, 1, "/length N"));
  FORETOKEN_TRY(const auto n, settings::ParseInteger(words[0], 1, kMaxTextTokens));
  session.request.max_new_tokens = static_cast<int>(n);
  return fmt::format("length: {} tokens at most\n", n);
}

Reply Gamma(ChatSession& session, const Words& words) {
  FORETOKEN_CHECK_OK(WantNumber(words, 1, "/gamma K"));
  FORETOKEN_TRY(const auto k, settings::ParseInteger(words[0], 0, 64));
  session.request.speculative.num_speculative_tokens = static_cast<int>(k);
  const bool fixed = session.engines.options().speculative.controller == "fixed";
  return fmt::format("gamma: {} drafted tokens a round{}{}\n", k, fixed ? "" : " at most",
                     k == 0 ? ": plain decoding" : "");
}

// "multinomial T": the arguments by their letters, each in its range.
struct Preset {
  std::string_view name, letters;
  SamplingParameters (*make)(float t, int k, float p);
};
constexpr std::array kPresets = {
    Preset{"greedy", "", [](float, int, float) { return ::foretoken::Greedy(); }},
    Preset{"multinomial", "T", [](float t, int, float) { return Multinomial(t); }},
    Preset{"topk", "TK", [](float t, int k, float) { return TopK(t, k); }},
    Preset{"nucleus", "TP", [](float t, int, float p) { return Nucleus(t, p); }},
    Preset{"topknucleus", "TKP", [](float t, int k, float p) { return TopKNucleus(t, k, p); }},
};

std::string PresetUsage(const Preset& preset) {
  std::string out(preset.name);
  for (const char letter : preset.letters) out += fmt::format(" {}", letter);
  return out;
}

Reply Processor(ChatSession& session, const Words& words) {
  std::string usages;
  for (const Preset& p : kPresets) usages += (usages.empty() ? "" : "; ") + PresetUsage(p);
  const auto* const preset = std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& p) {
    return !words.empty() && p.name == words[0];
  });
  if (preset == kPresets.end())
    return InvalidArgument(fmt::format("'{}' is not a processor; write one of: {}",
                                       words.empty() ? "" : Shown(words[0]), usages));
  FORETOKEN_CHECK_OK(
      WantNumber({words.begin() + 1, words.end()}, preset->letters.size(), PresetUsage(*preset)));
  float t = 0, p = 1;
  std::int64_t k = 0;
  for (std::size_t i = 0; i < preset->letters.size(); ++i) {
    const std::string& word = words[i + 1];
    if (preset->letters[i] == 'K') {
      FORETOKEN_TRY(k, settings::ParseInteger(word, 0, kMaxTextTokens));
    } else {
      const bool temperature = preset->letters[i] == 'T';
      const auto [least, most] = FlagRange(temperature ? "temperature" : "top_p");
      FORETOKEN_TRY((temperature ? t : p), settings::ParseNumber(word, static_cast<float>(least),
                                                                 static_cast<float>(most)));
    }
  }
  session.request.sampling = preset->make(t, static_cast<int>(k), p);
  session.request.speculative.draft_sampling.reset();  // the parameters of the previous processor
  std::string shown(preset->name);
  for (const char letter : preset->letters)
    shown += letter == 'K'   ? fmt::format(", k {}", k)
             : letter == 'T' ? fmt::format(", temperature {}", t)
                             : fmt::format(", p {}", p);
  return fmt::format("processor: {}\n", shown);
}

Reply TopKFiller(ChatSession& session, const Words& words) {
  FORETOKEN_CHECK_OK(WantNumber(words, 1, "/top_k_filler N"));
  FORETOKEN_TRY(const auto n, settings::ParseInteger(words[0], 1, 16));
  session.engines.ChangeSpeculation().ngram_filler_top_k = static_cast<int>(n);
  return fmt::format("top_k_filler: {}{}{}\n", n, n == 1 ? ", off" : "", kReopens);
}

Reply SetNgramStorage(ChatSession& session, const Words& words) {
  constexpr std::string_view kUsage = "/set_ngramstorage basic|onelevel N";
  FORETOKEN_CHECK_OK(WantNumber(words, 2, kUsage));
  if (words[0] != "basic" && words[0] != "onelevel")
    return InvalidArgument(fmt::format("'{}' is not a storage; write {}", Shown(words[0]), kUsage));
  FORETOKEN_TRY(const auto n, settings::ParseInteger(words[1], 1, 16));
  SpeculativeOptions& options = session.engines.ChangeSpeculation();
  const bool basic = words[0] == "basic";
  options.ngram_storage = basic ? NgramStorage::kMultiLevel : NgramStorage::kSingleLevel;
  options.ngram_max = static_cast<int>(n);
  options.ngram_min = std::min(options.ngram_min, options.ngram_max);
  return fmt::format("ngramstorage: {}, contexts of {}{} tokens{}\n", words[0],
                     basic ? "up to " : "", n, kReopens);
}

Reply ResetInBetween(ChatSession& session, const Words& words) {
  FORETOKEN_TRY(const bool reset,
                Switched(!session.engines.options().speculative.ngram_keep, words));
  session.engines.ChangeSpeculation().ngram_keep = !reset;
  return fmt::format("reset_in_between: {}{}\n",
                     reset ? "on, each answer begins with no n-grams"
                           : "off, n-grams of earlier answers serve the next ones",
                     kReopens);
}

Reply Seed(ChatSession& session, const Words& words) {
  FORETOKEN_CHECK_OK(WantNumber(words, 1, "/seed N"));
  FORETOKEN_TRY(session.request.seed, settings::ParseSeed(words[0]));
  return fmt::format("seed: {}\n", session.request.seed);
}

Reply Stats(ChatSession& session, const Words&) {
  std::string out;
  for (const ChatMode mode : kChatModes) {
    const ChatTotals& totals = session.Totals(mode);
    if (totals.answers == 0) continue;
    const SpeculationStats& s = totals.stats;
    out += fmt::format("  {:<12} {} answer{}, {} tokens", Name(mode), totals.answers,
                       totals.answers == 1 ? "" : "s", s.emitted);
    if (const auto rate = PerSecond(static_cast<double>(totals.tokens), totals.decode_ms))
      out += fmt::format(", {:.1f} tokens/s", *rate);
    if (const auto rate = s.acceptance_rate())
      out += fmt::format("; {} of {} drafts accepted ({:.1f} %), {:.2f} a round", s.accepted,
                         s.drafted, 100 * *rate, s.mean_acceptance_length().value_or(1));
    out += '\n';
  }
  return out.empty() ? std::string("stats: nobody has answered yet\n") : out;
}

Reply ResetStats(ChatSession& session, const Words&) {
  session.totals = {};
  return "stats: reset\n";
}

const std::array<Command, 19> kCommands = {{
    {"help", "", "these commands", Help},
    {"quit", "", "end; so does Ctrl-D", Quit},
    {"clear", "", "forget the conversation", Clear},
    {"chat", "[on|off]", "the model's chat template, with the conversation so far", Chat},
    {"speculative", "[on|off]", "answer with speculation", Speculative},
    {"target", "[on|off]", "answer with the model alone: plain decoding", Target},
    {"drafter", "[on|off]", "answer with the draft model alone", Drafter},
    {"ngram", "[on|off]", "answer with drafts looked up in the text so far", Ngram},
    {"length", "N", "tokens of an answer at most", Length},
    {"gamma", "K", "drafted tokens a round, 0 to 64", Gamma},
    {"processor", "NAME ARGS", "greedy; multinomial T; topk T K; nucleus T P; topknucleus T K P",
     Processor},
    {"seed", "N", "every answer is drawn with it", Seed},
    {"top_k_filler", "N", "n-grams learn the target's N best tokens; 1: off", TopKFiller},
    {"set_ngramstorage", "basic|onelevel N", "contexts of up to N tokens, or of just N",
     SetNgramStorage},
    {"reset_in_between", "[on|off]", "n-grams are forgotten between answers", ResetInBetween},
    {"cache", "[on|off]", "the cache of keys and values; what was found in it", Cache},
    {"debug", "[on|off]", "show each round: accepted, rejected, the target's own", Debug},
    {"stats", "", "what each mode did so far", Stats},
    {"reset_stats", "", "count anew", ResetStats},
}};

}  // namespace

bool IsChatCommand(const std::string& line) {
  return line.starts_with('/') && !line.starts_with("//");
}

Result<std::string> ExecuteChatCommand(ChatSession& session, const std::string& line) {
  std::istringstream in(line.substr(1));
  std::string name;
  in >> name;
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  const auto* const command = std::find_if(kCommands.begin(), kCommands.end(),
                                           [&](const Command& c) { return c.name == name; });
  if (command == kCommands.end()) {
    std::vector<std::string_view> names;
    for (const Command& known : kCommands) names.push_back(known.name);
    const std::string_view nearest = NearestName(name, names);
    return InvalidArgument(fmt::format("/{}: no such command; {}", name,
                                       nearest.empty()
                                           ? "/help tells which there are"
                                           : fmt::format("did you mean /{}?", nearest)));
  }
  if (command->arguments.empty() && !words.empty())
    return InvalidArgument(
        fmt::format("/{}: '{}' is too much; it takes nothing", name, Shown(words[0])));
  auto reply = command->execute(session, words);
  if (!reply) return Fail(std::move(reply).error().In("/" + name));
  return reply;
}

}  // namespace foretoken::cli
