// SPDX-License-Identifier: Apache-2.0
#include "settings/generate_flags.h"

#include <fmt/format.h>

#include <limits>
#include <random>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/files/text_file.h"
#include "draft/methods.h"
#include "foretoken/option_keys.h"
#include "foretoken/speculative_config.h"
#include "settings/bundled_models.h"
#include "settings/llama_flags.h"
#include "settings/process_ranks.h"
#include "settings/setters.h"

namespace foretoken::settings {
namespace {

constexpr float kDefaultTemperature = 0.8f;

Setter StoreEngineOption(const EngineKey& key, int& target) {
  return StoreInteger(target, key.flag_range().least, key.flag_range().most);
}
Setter StoreEngineOption(const EngineKey& key, bool& target) {
  return key.flag.value.empty() ? StoreTrue(target) : StoreSwitch(target);
}
Setter StoreEngineOption(const EngineKey& key, std::string& target) {
  return key.flag.needs_text ? StorePath(target) : StoreText(target);
}
Setter StoreEngineOption(const EngineKey&, CacheType& target) {
  return [&target](const std::string& text) -> Status {
    FORETOKEN_TRY(target, ParseCacheType(text));
    return {};
  };
}
Setter StoreEngineOption(const EngineKey&, std::vector<std::int32_t>& target) {
  return [&target](const std::string& text) -> Status {
    FORETOKEN_TRY(target, ParseTokenIds(text));
    return {};
  };
}

FlagGroup PromptFlags(GenerateSettings& settings) {
  Request& request = settings.request;
  return {"Prompt",
          {
              {{"-p", "--prompt"},
               "TEXT",
               "the text to continue; -, or no prompt at all: read it from standard input",
               StoreText(settings.prompt)},
              {{"-f", "--file"},
               "PATH",
               "a file with the prompt; - is standard input; one newline at its end is dropped",
               StoreText(settings.prompt_file)},
              {{"--prompt-tokens"},
               "IDS",
               "the prompt as token ids: 1,2,3; nothing is added to them",
               [&request](const std::string& text) -> Status {
                 FORETOKEN_TRY(request.prompt_tokens, ParseTokenIds(text));
                 return {};
               }},
              {{"--special"},
               "",
               "read names of control tokens in the prompt, such as <s>, as these tokens",
               StoreTrue(request.parse_special)},
              {{"--no-bos"},
               "",
               "put no begin and end tokens around the prompt",
               [&request](const std::string&) -> Status {
                 request.add_special = false;
                 return {};
               }},
          }};
}

FlagGroup LengthFlags(GenerateSettings& settings) {
  Request& request = settings.request;
  return {"Length",
          {
              {{"-n", "--n-predict", "--max-tokens"},
               "N",
               fmt::format("most tokens to generate; -1: as many as fit the context; default {}",
                           request.max_new_tokens),
               StoreLength(request.max_new_tokens, 0)},
              {{"--min-tokens"},
               "N",
               "least number of tokens before the text may end; default 0",
               StoreInteger(request.min_new_tokens, 0, kMaxTextTokens)},
              {{"--ignore-eos"},
               "",
               "continue after the model's own end tokens",
               StoreTrue(request.ignore_eos)},
              StopTokenFlag(settings),
              {{"--stop"},
               "TEXT",
               "end the text before TEXT; may be repeated",
               [&request](const std::string& text) -> Status {
                 if (text.empty()) {
                   return Fail(ErrorCode::kInvalidArgument,
                               "the text is empty; give at least one character");
                 }
                 request.stop.push_back(text);
                 return {};
               },
               true},
          }};
}

FlagGroup OutputFlags(GenerateSettings& settings) {
  return {
      "Output",
      {
          {{"--trace"},
           "",
           "show each round: accepted drafts green, rejected drafts red, the model's own token "
           "blue; without colours, in brackets",
           StoreTrue(settings.trace)},
          {{"--compare"},
           "",
           "afterwards decode with and without speculation in turn, three times, and report "
           "the speed-up; drafters forget between the runs",
           StoreTrue(settings.compare)},
          {{"--logprobs"},
           "N",
           "with --json: print the log-probability of each token and of the N best ones, 0 to 64",
           StoreInteger(settings.request.logprobs, 0, 64)},
          {{"--json"},
           "",
           "print one JSON object on standard output instead of the text",
           StoreTrue(settings.json)},
          RawFlag(settings.raw),
          EngineFlag("record", settings.engine),
          {{"--stats"},
           "",
           "after the text, all statistics: the model, the prompt, the drafter, the drafts, and "
           "where the time went; without it one line",
           StoreTrue(settings.stats)},
          {{"-q", "--quiet"}, "", "print only the text, no statistics", StoreTrue(settings.quiet)},
      }};
}

Status CheckPrompt(const GenerateSettings& settings) {
  const bool has_tokens = !settings.request.prompt_tokens.empty();
  const int sources =
      (settings.prompt ? 1 : 0) + (settings.prompt_file ? 1 : 0) + (has_tokens ? 1 : 0);
  if (sources == 1 || (sources == 0 && settings.prompt_is_piped)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              sources == 0 ? "prompt: none is given; pass -p TEXT or -f FILE, or pipe the text in"
                           : "prompt: more than one of -p, -f and --prompt-tokens; keep one");
}

FlagGroup ChatFlags(GenerateSettings& settings) {
  FlagGroup group = ChatFormatFlags(settings);
  group.flags.insert(
      group.flags.begin(),
      {{"--chat"},
       "",
       "treat the prompt as a user's message and apply the model's chat template to it",
       StoreTrue(settings.chat)});
  return group;
}

Status CheckChat(const GenerateSettings& settings) {
  const auto bad = [](const char* message) { return Fail(ErrorCode::kInvalidArgument, message); };
  if (!settings.chat && !settings.system.empty())
    return bad("--system: without a chat template there is no place for it; add --chat");
  const ChatOptions& format = settings.chat_format;
  if (!settings.chat && !format.chat_template.empty())
    return bad("--chat-template: it has no effect without --chat; add --chat");
  if (!settings.chat && !format.template_text.empty())
    return bad("--chat-template-file: it has no effect without --chat; add --chat");
  if (!settings.chat && !format.template_kwargs_json.empty())
    return bad("--chat-template-kwargs: it has no effect without --chat; add --chat");
  if (settings.chat && !settings.request.prompt_tokens.empty())
    return bad(
        "--chat: --prompt-tokens are used as they are, without a template; drop one of them");
  if (settings.chat && settings.request.parse_special)
    return bad(
        "--chat: control tokens in a message are text, and --special would let them be "
        "more; drop one of them");
  return {};
}

Status CheckStrategy(const GenerateSettings& settings) {
  if (settings.engine.speculative.strategy == VerifyStrategy::kGreedy &&
      !settings.request.sampling.greedy()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("--verify greedy: at temperature {} it would give the text of "
                            "temperature 0; add --temp 0 or choose residual or sample-match",
                            settings.request.sampling.temperature));
  }
  return {};
}

Status CheckDrafter(const EngineOptions& options) {
  const std::string& method = options.speculative.method;
  const bool takes_file =
      method.empty() || method == "none" || method == "portfolio" || FileReader(method) != nullptr;
  if (!takes_file && !options.DraftFiles().empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--spec-type {}: it needs no draft model, and -md gives one; drop one of them",
                    method));
  }
  return {};
}

Status CheckPrediction(const GenerateSettings& settings) {
  if (settings.prediction_file && !settings.request.prediction.empty())
    return Fail(ErrorCode::kInvalidArgument,
                "prediction: both --prediction and --prediction-file; keep one");
  return {};
}

// The drafter's own parameters; what is not given is the text's.
void SetDraftSampling(GenerateSettings& settings) {
  const auto& [temperature, top_k, top_p, min_p] = std::tie(
      settings.draft_temperature, settings.draft_top_k, settings.draft_top_p, settings.draft_min_p);
  if (!temperature && !top_k && !top_p && !min_p) return;
  SamplingParameters sampling = settings.request.sampling;
  sampling.temperature = temperature.value_or(sampling.temperature);
  sampling.top_k = top_k.value_or(sampling.top_k);
  sampling.top_p = top_p.value_or(sampling.top_p);
  sampling.min_p = min_p.value_or(sampling.min_p);
  settings.request.speculative.draft_sampling = std::move(sampling);
}

}  // namespace

Flag StopTokenFlag(GenerateSettings& settings) {
  return {{"--stop-token", "--stop-token-ids"},
          "TOKEN",
          "end after this token too: ids as in 2,5, or a text that is one token, such as "
          "<|im_end|>; may be repeated",
          [&settings](const std::string& text) -> Status {
            if (text.empty()) {
              return Fail(ErrorCode::kInvalidArgument,
                          "the text is empty; give a token id or the text of one token");
            }
            settings.stop_tokens.push_back(text);
            return {};
          },
          true};
}

Flag EngineFlag(const EngineKey& key, EngineOptions& options) {
  Flag flag;
  flag.value = key.flag.value;
  flag.help = key.flag.help;
  for (const std::string_view name : key.flag.names)
    if (!name.empty()) flag.names.emplace_back(name);
  flag.option = "EngineOptions::" + std::string(key.name);
  key.Visit(options, [&](auto& value) {
    flag.set = StoreEngineOption(key, value);
    if constexpr (std::is_same_v<decltype(value), CacheType&>)
      flag.choices = {kCacheTypeNames.begin(), kCacheTypeNames.end()};
  });
  return flag;
}

Flag EngineFlag(std::string_view key, EngineOptions& options) {
  return EngineFlag(*FindEngineKey(key), options);
}

FlagGroup ModelFlags(EngineOptions& options) {
  options.ranks = ProcessRanks();
  FlagGroup group{"Model", {}};
  for (const EngineKey& key : EngineKeys())
    if (key.flag.verbs == EngineKey::Verbs::kAll && !key.flag.names[0].empty())
      group.flags.push_back(EngineFlag(key, options));
  group.flags.push_back(RanksFlag());
  return group;
}

Flag RawFlag(bool& raw) {
  return {
      {"--raw"},
      "",
      "send texts to a terminal as they are; without it control characters, and those that turn "
      "the direction of text, are shown as \\u001b and so on (what is piped is always exact)",
      StoreTrue(raw)};
}

std::vector<Flag> NumberFlags(SamplingParameters& sampling) {
  std::vector<Flag> flags;
  for (const SamplingKey& key : SamplingKeys()) {
    Flag& flag = flags.emplace_back();
    flag.names = {std::string(key.flag.name)};
    if (!key.flag.other_name.empty()) flag.names.emplace_back(key.flag.other_name);
    flag.value = key.flag.value;
    flag.help = key.flag.help;
    flag.set = key.Visit(sampling, [&](auto& number) { return StoreSampling(key.name, number); });
  }
  return flags;
}

Flag DryBreakerFlag(GenerateSettings& settings) {
  return {{"--dry-sequence-breaker"},
          "TEXT",
          "a text of one token that ends any repetition; may be repeated",
          [&settings](const std::string& text) -> Status {
            if (text.empty()) {
              return Fail(ErrorCode::kInvalidArgument,
                          "the text is empty; give at least one character");
            }
            settings.dry_breakers.push_back(text);
            return {};
          },
          true};
}

// What the text must be, whatever the probabilities are.
std::vector<Flag> ConstraintFlags(GenerateSettings& settings) {
  SamplingParameters& sampling = settings.request.sampling;
  return {
      {{"--grammar"},
       "TEXT",
       "allow only texts of this grammar, in llama.cpp's notation: root ::= ...",
       StoreText(sampling.grammar)},
      {{"--grammar-file"}, "PATH", "a file with the grammar", StorePath(settings.grammar_file)},
      {{"-j", "--json-schema"},
       "TEXT",
       "allow only JSON that fits this JSON Schema; {} is any JSON",
       StoreText(settings.json_schema)},
      {{"--json-schema-file"},
       "PATH",
       "a file with the schema",
       StorePath(settings.json_schema_file)},
      {{"--logit-bias"},
       "ID=V",
       "add V to the logit of token ID; -inf bans the token; may be repeated",
       [&sampling](const std::string& text) -> Status {
         FORETOKEN_TRY(const auto bias, ParseLogitBias(text));
         sampling.logit_bias.insert_or_assign(bias.first, bias.second);
         return {};
       },
       true},
      {{"-s", "--seed"},
       "N",
       "the same seed gives the same text; default: random, and reported",
       [&settings](const std::string& text) -> Status {
         if (text == "-1") return {};  // llama.cpp's "random"
         FORETOKEN_TRY(settings.request.seed, ParseSeed(text));
         settings.seed_given = true;
         return {};
       }},
  };
}

FlagGroup SamplingFlags(GenerateSettings& settings) {
  settings.request.sampling.temperature = kDefaultTemperature;
  FlagGroup group{"Sampling", NumberFlags(settings.request.sampling)};
  group.flags.push_back(DryBreakerFlag(settings));
  for (Flag& flag : ConstraintFlags(settings)) group.flags.push_back(std::move(flag));
  return group;
}

std::vector<Flag> TemplateFlags(ChatOptions& format) {
  const std::vector<std::string_view> known = ChatTemplateNames();
  return {
      Sets("ChatOptions::chat_template", {{"--chat-template"},
                                          "NAME",
                                          "how messages are written: one of the model file's named "
                                          "templates, or chatml, for files "
                                          "without one; default: as the model file says",
                                          StoreText(format.chat_template),
                                          false,
                                          {known.begin(), known.end()}}),
      Sets("ChatOptions::template_text",
           {{"--chat-template-file"},
            "FILE",
            "a Jinja template that is used instead of the model file's",
            [&format](const std::string& path) -> Status {
              FORETOKEN_TRY(format.template_text,
                            ReadTextFile(path, {.most_bytes = 1 << 22, .pipes = true}));
              if (!format.template_text.empty()) return {};
              return Fail(ErrorCode::kInvalidArgument,
                          "the file is empty; give one with a template");
            }}),
      {{"--chat-template-kwargs"},
       "JSON",
       "an object of further variables for the template: '{\"enable_thinking\": false}'",
       StoreText(format.template_kwargs_json)},
  };
}

FlagGroup ChatFormatFlags(GenerateSettings& settings) {
  FlagGroup group = {"Chat",
                     {
                         {{"--system", "-sys", "--system-prompt"},
                          "TEXT",
                          "a system message, which comes before all other messages",
                          StoreText(settings.system)},
                     }};
  for (Flag& flag : TemplateFlags(settings.chat_format)) group.flags.push_back(std::move(flag));
  return group;
}

FlagSet GenerateFlags(GenerateSettings& settings) {
  FlagSet flags("generate [-m MODEL] [-md DRAFT] -p TEXT [flags]",
                "Generates a continuation of a prompt. The text is that of the model alone; "
                "speculation makes it come sooner. Statistics go to standard error.");
  flags.Add(ModelFlags(settings.engine));
  flags.Add(PromptFlags(settings));
  flags.Add(ChatFlags(settings));
  flags.Add(SpeculationFlags(settings));
  flags.Add(DraftingFlags(settings));
  flags.Add(LengthFlags(settings));
  flags.Add(SamplingFlags(settings));
  flags.Add(OutputFlags(settings));
  flags.SetEssential({"-m",     "-c",       "-t",        "-p",          "-f",
                      "--chat", "--system", "-md",       "--spec-type", "--num-speculative-tokens",
                      "-n",     "--stop",   "--temp",    "--top-k",     "--top-p",
                      "--seed", "--trace",  "--compare", "--json",      "-q"});
  flags.AddForeign({{{"-no-cnv", "--no-conversation", "-st", "--single-turn"}}});
  AddLlamaFlags(flags);
  flags.SetExamples({"foretoken generate -p \"Once upon a time\" --trace",
                     "foretoken generate -m target.gguf -p \"Once upon a time\"",
                     "foretoken generate -m target.gguf -md draft.gguf -p \"Once upon a time\" "
                     "--temp 0 --trace --compare",
                     "cat story.txt | foretoken generate -n -1"});
  flags.SetEnvironment(
      "FORETOKEN_ISA=scalar|avx2|avxvnni|avx512|amx|neon caps the kernels; FORETOKEN_THREADS, "
      "NO_COLOR, FORETOKEN_MODELS (folder of the bundled models); settings of speculation by their "
      "long names, as in FORETOKEN_NUM_SPECULATIVE_TOKENS=4.");
  return flags;
}

Status Finish(GenerateSettings& settings) {
  FORETOKEN_CHECK_OK(CheckPrompt(settings));
  FORETOKEN_CHECK_OK(CheckChat(settings));
  FORETOKEN_CHECK_OK(CheckStrategy(settings));
  FORETOKEN_CHECK_OK(CheckDrafter(settings.engine));
  FORETOKEN_CHECK_OK(CheckPrediction(settings));
  FORETOKEN_TRY(const SpeculativeConfig config,
                SpeculativeConfig::Create(settings.engine.speculative));
  settings.engine.speculative = config.options();
  Request& request = settings.request;
  if (request.min_new_tokens > request.max_new_tokens) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--min-tokens: {} is more than the {} tokens of -n; lower it or raise -n",
                    request.min_new_tokens, request.max_new_tokens));
  }
  if (settings.json && settings.trace) {
    return Fail(ErrorCode::kInvalidArgument,
                "--trace: it is for reading, and --json for programs; keep one");
  }
  if (request.logprobs >= 0 && !settings.json) {
    return Fail(ErrorCode::kInvalidArgument,
                "--logprobs: only the JSON output shows them; add --json");
  }
  settings.prompt_ids = !request.prompt_tokens.empty();
  if (!settings.seed_given) request.seed = std::random_device{}();
  SetDraftSampling(settings);
  return FillInModels(settings.engine, ModelPlaces::OfThisProgram());
}

}  // namespace foretoken::settings
