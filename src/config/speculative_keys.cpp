// SPDX-License-Identifier: Apache-2.0
// The table of settings: names, aliases (those of llama.cpp, vLLM, SGLang and transformers where
// they mean the same), and how values are read and printed. Ranges stand here and nowhere else.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/comma_list.h"
#include "config/idle_reasons.h"
#include "config/nearest_name.h"
#include "draft/methods.h"
#include "foretoken/catalogue.h"
#include "foretoken/option_keys.h"
#include "foretoken/speculative_config.h"

namespace foretoken {
namespace {

using Type = SpeculativeKey::Type;
using Idle = decltype(SpeculativeKey::idle);
using namespace idle;

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text, char from = 0, char to = 0) {
  std::string out(Trimmed(text));
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == from) c = to;
  }
  return out;
}

bool IsUnset(const std::string& text) {
  const std::string word = Lower(text);
  return word == "auto" || word == "null" || word == "default";
}

// All of `text` is one finite number; "4.0" is 4.
bool ParseWhole(std::string_view text, double& value) {
  text = Trimmed(text);
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

Result<int> ReadInteger(std::string_view text, int low, int high) {
  double value = 0;
  if (!ParseWhole(text, value) || value != std::floor(value))
    return InvalidArgument(
        fmt::format("'{}' is not a whole number; give one in [{}, {}]", Shown(text), low, high));
  if (value < low || value > high)
    return InvalidArgument(
        fmt::format("{} is not in [{}, {}]; give a value in that range", Shown(text), low, high));
  return static_cast<int>(value);
}

// A share of one.
Result<double> ReadShare(std::string_view text) {
  double value = 0;
  if (!ParseWhole(text, value))
    return InvalidArgument(fmt::format("'{}' is not a number; give one in [0, 1]", Shown(text)));
  if (value < 0 || value > 1)
    return InvalidArgument(
        fmt::format("{} is not in [0, 1]; give a value in that range", Shown(text)));
  return value;
}

Result<bool> ReadSwitch(const std::string& text) {
  const std::string word = Lower(text);
  for (const char* yes : {"true", "yes", "on", "1"})
    if (word == yes) return true;
  for (const char* no : {"false", "no", "off", "0"})
    if (word == no) return false;
  return InvalidArgument(fmt::format("'{}' is not a switch; use on or off", Shown(text)));
}

// A member of the options, or of their controller's.
template <typename T>
T& Field(SpeculativeOptions& options, T SpeculativeOptions::*member) {
  return options.*member;
}
template <typename T>
T& Field(SpeculativeOptions& options, T AdaptiveLookaheadConfig::*member) {
  return options.adaptive_lookahead.*member;
}
template <auto Member>
const auto& Read(const SpeculativeOptions& options) {
  return Field(const_cast<SpeculativeOptions&>(options), Member);
}

std::string Printed(bool value) {
  return value ? "true" : "false";
}
std::string Printed(const std::string& text) {
  return text;
}
template <typename Number>
std::string Printed(const Number& value) {
  return fmt::format("{}", value);
}
template <typename Number>
std::string Printed(const std::optional<Number>& value) {
  return value ? Printed(*value) : "auto";
}

// The row of a member whose value kRead reads.
template <auto Member, auto kRead>
constexpr SpeculativeKey Row(std::string_view name, Type type, Idle idle, Names aliases = {},
                             double least = 1, double most = 0) {
  return {name,
          aliases,
          type,
          [](Options& options, const std::string& text) -> Status {
            auto& field = Field(options, Member);
            FORETOKEN_TRY(auto value, kRead(text));
            field = static_cast<std::remove_reference_t<decltype(field)>>(std::move(value));
            return {};
          },
          [](const Options& options) { return Printed(Read<Member>(options)); },
          idle,
          least,
          most};
}

template <int kLow, int kHigh>
Result<int> ReadWithin(const std::string& text) {
  return ReadInteger(text, kLow, kHigh);
}
template <int kLow, int kHigh>
Result<std::optional<int>> ReadUnlessUnset(const std::string& text) {
  if (IsUnset(text)) return std::nullopt;
  FORETOKEN_TRY(const int value, ReadInteger(text, kLow, kHigh));
  return std::optional(value);
}
Result<std::string> ReadText(const std::string& text) {
  return text;
}

std::vector<std::string_view> NoNumber() {
  return {"auto", "null", "default"};  // IsUnset
}

template <auto Member, int kLow, int kHigh>
constexpr SpeculativeKey Integer(std::string_view name, Idle idle, Names aliases = {}) {
  return Row<Member, ReadWithin<kLow, kHigh>>(name, Type::kInteger, idle, aliases, kLow, kHigh);
}
template <auto Member, int kLow, int kHigh>
constexpr SpeculativeKey OptionalInteger(std::string_view name, Idle idle, Names aliases = {}) {
  SpeculativeKey key =
      Row<Member, ReadUnlessUnset<kLow, kHigh>>(name, Type::kInteger, idle, aliases, kLow, kHigh);
  key.words = NoNumber;
  return key;
}
template <auto Member>
constexpr SpeculativeKey Share(std::string_view name, Idle idle, Names aliases = {}) {
  return Row<Member, ReadShare>(name, Type::kNumber, idle, aliases, 0, 1);
}
template <auto Member>
constexpr SpeculativeKey Switch(std::string_view name, Idle idle, Names aliases = {}) {
  return Row<Member, ReadSwitch>(name, Type::kSwitch, idle, aliases);
}
template <auto Member>
constexpr SpeculativeKey Path(std::string_view name, Idle idle) {
  return Row<Member, ReadText>(name, Type::kPath, idle);
}
template <auto Member>
constexpr SpeculativeKey Text(std::string_view name, Idle idle) {
  return Row<Member, ReadText>(name, Type::kText, idle);
}

struct Word {
  std::string_view written, meant;
};

// The word's meaning, or an error with the canonical ones.
Result<std::string_view> Choose(std::string_view text, std::span<const Word> words,
                                std::string_view kind) {
  const std::string word = Lower(text, '_', '-');
  std::vector<std::string_view> known, meanings;
  for (const auto& [written, meant] : words) {
    if (written == word) return meant;
    known.push_back(written);
    if (written == meant) meanings.push_back(meant);
  }
  const std::string_view nearest = NearestName(word, known);
  return InvalidArgument(fmt::format(
      "'{}' is not a {}; {}choose one of {}", Shown(text), kind,
      nearest.empty() ? "" : fmt::format("did you mean {}? ", nearest), fmt::join(meanings, ", ")));
}

// Names and aliases of a registry's rows, between words of the setting's own.
template <typename Info>
std::vector<Word> WordsOf(std::span<const Info* const> rows, std::vector<Word> words,
                          std::span<const Word> behind = {}) {
  for (const Info* const row : rows) words.push_back({row->name, row->name});
  words.insert(words.end(), behind.begin(), behind.end());
  for (const Info* const row : rows)
    for (const std::string_view alias : row->aliases) words.push_back({alias, row->name});
  return words;
}

std::span<const Word> MethodWords() {
  static constexpr std::array kBehind = {Word{"portfolio", "portfolio"}, Word{"null", "auto"}};
  static const auto words = WordsOf(AllDrafters(), {{"auto", "auto"}, {"none", "none"}}, kBehind);
  return words;
}
std::span<const Word> StrategyWords() {
  static constexpr std::array kBehind = {Word{"null", "auto"}};
  static const auto words = WordsOf(AllStrategies(), {{"auto", "auto"}}, kBehind);
  return words;
}
std::span<const Word> LookaheadWords() {
  static const auto words = WordsOf(AllControllers(), {});
  return words;
}
std::vector<std::string_view> Written(std::span<const Word> words) {
  std::vector<std::string_view> written;
  for (const Word& word : words) written.push_back(word.written);
  return written;
}
std::vector<std::string_view> NoRate() {
  return {"auto", "null", "default", "off"};
}
constexpr std::array kStorages = {
    Word{"multi-level", "multi-level"},
    Word{"single-level", "single-level"},
    Word{"basic", "multi-level"},
    Word{"onelevel", "single-level"},
};

// "a,b" or "[a,b]": what stands between the commas.
std::vector<std::string_view> Items(std::string_view text) {
  text = Trimmed(text);
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return CommaItems(text);
}

// "standalone:NAME" and so on.
std::vector<std::string> FileMethods() {
  std::vector<std::string> methods;
  for (const DrafterInfo* const drafter : AllDrafters())
    if (drafter->reads_file) methods.push_back(fmt::format("{}:NAME", drafter->name));
  return methods;
}

// "standalone" or, of one of several files, "standalone:NAME"; "self" or one of its outputs, "self:whole".
Status SetMethod(SpeculativeOptions& options, const std::string& text) {
  std::vector<std::string> methods;
  for (const std::string_view item : Items(text)) {
    const std::size_t colon = std::min(item.find(':'), item.size());
    FORETOKEN_TRY(const std::string_view kind,
                  Choose(item.substr(0, colon), MethodWords(), "drafter"));
    std::string method = std::string(kind) + std::string(item.substr(colon));
    const bool named = colon < item.size();
    const DrafterInfo* const drafter = FindDrafter(kind);
    const bool has_parts = drafter != nullptr && (drafter->reads_file || drafter->copies_target);
    if (named && (!has_parts || colon + 1 == item.size()))
      return InvalidArgument(
          fmt::format("'{}' names no draft file; write {}, NAME being the file's without .gguf",
                      Shown(item), fmt::join(FileMethods(), ", ")));
    if (std::find(methods.begin(), methods.end(), method) == methods.end())
      methods.push_back(std::move(method));
  }
  for (const std::string_view alone : {"auto", "none", "portfolio"})
    if (methods.size() > 1 && std::find(methods.begin(), methods.end(), alone) != methods.end())
      return InvalidArgument(
          fmt::format("'{}' stands alone, and here in a list; leave it or the others out", alone));
  options.method = methods[0] == "auto" ? "" : fmt::format("{}", fmt::join(methods, ","));
  return {};
}

// Paths, with a backslash before a comma or a backslash that belongs to one.
Status SetDraftModels(SpeculativeOptions& options, const std::string& text) {
  std::string_view rest = Trimmed(text);
  if (rest.size() > 1 && rest.front() == '[' && rest.back() == ']')
    rest = rest.substr(1, rest.size() - 2);
  std::vector<std::string> paths;
  if (IsUnset(std::string(rest))) rest = {};
  for (bool more = !Trimmed(rest).empty(); more;) {
    std::string path;
    std::size_t at = 0;
    for (; at < rest.size() && rest[at] != ','; ++at) {
      if (rest[at] == '\\' && at + 1 < rest.size()) ++at;
      path += rest[at];
    }
    more = at < rest.size();
    rest.remove_prefix(std::min(at + 1, rest.size()));
    path = std::string(Trimmed(path));
    if (path.empty())
      return InvalidArgument(
          fmt::format("'{}' has an empty path; write [PATH, PATH]", Shown(text)));
    paths.push_back(std::move(path));
  }
  options.draft_models = std::move(paths);
  return {};
}

std::string PrintDraftModels(const SpeculativeOptions& options) {
  if (options.draft_models.empty()) return "";
  std::string out;
  for (const std::string& path : options.draft_models) {
    out += out.empty() ? '[' : ',';
    for (const char c : path) {
      if (c == ',' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + ']';
}

Status SetStrategy(SpeculativeOptions& options, const std::string& text) {
  FORETOKEN_TRY(const std::string_view name, Choose(text, StrategyWords(), "strategy"));
  options.strategy = *VerifyStrategy::Named(name);
  return {};
}

Status SetLookahead(SpeculativeOptions& options, const std::string& text) {
  FORETOKEN_TRY(options.controller, Choose(text, LookaheadWords(), "controller"));
  return {};
}

Status SetStorage(SpeculativeOptions& options, const std::string& text) {
  FORETOKEN_TRY(const std::string_view name, Choose(text, kStorages, "storage"));
  options.ngram_storage =
      name == "multi-level" ? NgramStorage::kMultiLevel : NgramStorage::kSingleLevel;
  return {};
}

constexpr int kMany = 1 << 24;

Status SetSynthetic(SpeculativeOptions& options, const std::string& text) {
  options.synthetic_acceptance_rate.reset();
  if (IsUnset(text) || Lower(text) == "off") return {};
  FORETOKEN_TRY(options.synthetic_acceptance_rate, ReadShare(text));
  return {};
}

// "1-4:8,5-16:2", "1:8", or "[[1,4,8],[5,16,2]]".
Result<std::vector<std::array<std::string_view, 3>>> Rows(std::string_view text) {
  std::vector<std::array<std::string_view, 3>> rows;
  const auto malformed = [text] {
    return InvalidArgument(
        fmt::format("'{}' is not a table of draft lengths; write LEAST-MOST:K with commas, as "
                    "in 1-4:8,5-16:2",
                    Shown(text)));
  };
  if (!text.starts_with("[[")) {
    for (const std::string_view item : Items(text)) {
      const std::size_t colon = item.find(':'), dash = item.substr(0, colon).find('-');
      if (colon == std::string_view::npos) return malformed();
      const std::string_view most = dash == std::string_view::npos
                                        ? item.substr(0, colon)
                                        : item.substr(dash + 1, colon - dash - 1);
      rows.push_back({item.substr(0, std::min(dash, colon)), most, item.substr(colon + 1)});
    }
    return rows;
  }
  const std::vector<std::string_view> items = Items(text);
  if (items.size() % 3 != 0) return malformed();
  for (std::size_t i = 0; i < items.size(); i += 3) {
    std::array<std::string_view, 3> row = {items[i], items[i + 1], items[i + 2]};
    if (!row[0].starts_with('[') || !row[2].ends_with(']')) return malformed();
    row[0].remove_prefix(1);
    row[2].remove_suffix(1);
    rows.push_back(row);
  }
  return rows;
}

Status SetTable(SpeculativeOptions& options, const std::string& text) {
  constexpr int kMostSequences = FindEngineKey("max_sequences")->range.most;
  options.num_speculative_tokens_per_batch_size.clear();
  if (IsUnset(text) || text == "[]" || text.empty()) return {};
  FORETOKEN_TRY(const auto rows, Rows(Trimmed(text)));
  std::vector<BatchDraftLength> table;
  for (const auto& [least, most, k] : rows) {
    BatchDraftLength row;
    FORETOKEN_TRY(row.least, ReadInteger(least, 1, kMostSequences));
    FORETOKEN_TRY(row.most, ReadInteger(most, 1, kMostSequences));
    FORETOKEN_TRY(row.num_speculative_tokens, ReadInteger(k, 0, kMaxDraft));
    if (row.most < row.least)
      return InvalidArgument(fmt::format("the row {} to {} is empty; write the smaller size first",
                                         row.least, row.most));
    if (!table.empty() && row.least <= table.back().most)
      return InvalidArgument(
          fmt::format("the rows {} to {} and {} to {} are not one after the other; let the "
                      "sizes rise",
                      table.back().least, table.back().most, row.least, row.most));
    table.push_back(row);
  }
  options.num_speculative_tokens_per_batch_size = std::move(table);
  return {};
}

std::string PrintTable(const SpeculativeOptions& options) {
  std::string out;
  for (const BatchDraftLength& row : options.num_speculative_tokens_per_batch_size)
    out += fmt::format("{}[{},{},{}]", out.empty() ? "" : ",", row.least, row.most,
                       row.num_speculative_tokens);
  return "[" + out + "]";
}

// "1,3,5" or "[1,3,5]", in any order.
Status SetWidths(SpeculativeOptions& options, const std::string& text) {
  options.adaptive_speculative_widths.clear();
  const std::string word = Lower(text);
  if (IsUnset(text) || word == "all" || word == "[]") return {};
  std::vector<int> widths;
  for (const std::string_view item : Items(text)) {
    FORETOKEN_TRY(const int width, ReadInteger(item, 1, kMaxDraft));
    widths.push_back(width);
  }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  options.adaptive_speculative_widths = std::move(widths);
  return {};
}

// Settings of one drafter, strategy or controller.
constexpr std::array<std::string_view, 1> kNgram = {"ngram"}, kSuffix = {"suffix"},
                                          kResidual = {"residual"},
                                          kTypical = {"typical-acceptance"}, kRelaxed = {"relaxed"},
                                          kEwma = {"ewma"}, kBatchSize = {"batch-size"};

constexpr std::array<std::string_view, 1> kDraftModelNames = {"draft_model"};
constexpr std::array<std::string_view, 3> kMethodNames = {"method", "type", "spec_type"};
constexpr std::array<std::string_view, 3> kStrategyNames = {"verify", "strategy",
                                                            "rejection_sample_method"};
constexpr std::array<std::string_view, 9> kTokensNames = {
    "gamma",        "n_max",       "spec_draft_n_max",     "draft_n_max",
    "draft_max",    "spec_tokens", "num_assistant_tokens", "num_draft_tokens",
    "max_draft_len"};
constexpr std::array<std::string_view, 4> kMinNames = {"n_min", "spec_draft_n_min", "draft_n_min",
                                                       "draft_min"};
constexpr std::array<std::string_view, 1> kLookaheadNames = {"num_assistant_tokens_schedule"};
constexpr std::array<std::string_view, 2> kInitialNames = {"ewma.initial", "ewma_initial"};
constexpr std::array<std::string_view, 2> kEwmaMinNames = {"ewma.min", "ewma_min"};
constexpr std::array<std::string_view, 2> kEwmaMaxNames = {"ewma.max", "ewma_max"};
constexpr std::array<std::string_view, 2> kAlphaNames = {"ewma.alpha", "ewma_alpha"};
constexpr std::array<std::string_view, 4> kCooldownNames = {
    "ewma.cooldown_steps", "ewma_cooldown_steps", "lookahead_cooldown", "ewma.cooldown"};
constexpr std::array<std::string_view, 1> kTableNames = {"schedule"};
constexpr std::array<std::string_view, 4> kPMinNames = {
    "p_min", "spec_draft_p_min", "assistant_confidence_threshold", "draft_confidence_threshold"};
constexpr std::array<std::string_view, 3> kNgramMaxNames = {
    "prompt_lookup_max", "max_matching_ngram_size", "spec_ngram_size_n"};
constexpr std::array<std::string_view, 1> kNgramMinNames = {"prompt_lookup_min"};
constexpr std::array<std::string_view, 2> kFillerNames = {"filler_top_k", "top_k_filler"};

using O = SpeculativeOptions;
using E = AdaptiveLookaheadConfig;

constexpr std::array kKeys = {
    SpeculativeKey{"speculative_method", kMethodNames, Type::kName, SetMethod,
                   [](const O& o) { return o.method.empty() ? std::string("auto") : o.method; },
                   IdleMethod, 1, 0, [] { return Written(MethodWords()); }},
    SpeculativeKey{"rejection_sampling_strategy", kStrategyNames, Type::kName, SetStrategy,
                   [](const O& o) { return std::string(Name(o.strategy)); }, IdleStrategy, 1, 0,
                   [] { return Written(StrategyWords()); }},
    OptionalInteger<&O::num_speculative_tokens, 0, kMaxDraft>("num_speculative_tokens", IdleTokens,
                                                              kTokensNames),
    Integer<&O::min_speculative_tokens, 0, kMaxDraft>("min_speculative_tokens", WhereDrafted,
                                                      kMinNames),
    SpeculativeKey{"lookahead", kLookaheadNames, Type::kName, SetLookahead,
                   [](const O& o) { return o.controller; }, WhereDrafted, 1, 0,
                   [] { return Written(LookaheadWords()); }},
    Integer<&E::initial, 1, kMaxDraft>("lookahead_initial", ForLookaheads<kEwma>, kInitialNames),
    Integer<&E::min, 1, kMaxDraft>("lookahead_min", ForLookaheads<kEwma>, kEwmaMinNames),
    Integer<&E::max, 1, kMaxDraft>("lookahead_max", ForLookaheads<kEwma>, kEwmaMaxNames),
    Share<&E::alpha>("lookahead_alpha", ForLookaheads<kEwma>, kAlphaNames),
    Integer<&E::cooldown_steps, 0, kMany>("lookahead_cooldown_steps", ForLookaheads<kEwma>,
                                          kCooldownNames),
    SpeculativeKey{"num_speculative_tokens_per_batch_size", kTableNames, Type::kTable, SetTable,
                   PrintTable, ForLookaheads<kBatchSize>},
    SpeculativeKey{"adaptive_speculative_widths",
                   {},
                   Type::kList,
                   SetWidths,
                   [](const O& o) {
                     return fmt::format("[{}]", fmt::join(o.adaptive_speculative_widths, ","));
                   },
                   ForCostModels},
    OptionalInteger<&O::num_speculative_tokens_mixed_batch, 0, kMaxDraft>(
        "num_speculative_tokens_mixed_batch", IdleMixedTokens),
    Share<&O::draft_p_min>("draft_p_min", IdleProbability, kPMinNames),
    Switch<&O::first_target>("first_target", IdleFirstTarget),
    SpeculativeKey{"draft_models", kDraftModelNames, Type::kPath, SetDraftModels, PrintDraftModels,
                   IdleDraftModels},
    OptionalInteger<&O::draft_vocabulary, 0, kMany>("draft_vocabulary", IdleForNetworks),
    Path<&O::draft_vocabulary_sample>("draft_vocabulary_sample", IdleForNetworks),
    Integer<&O::draft_window, 0, kMaxTextTokens>("draft_window", IdleForNetworks),
    Integer<&O::draft_best_blocks, 0, kMaxBestBlocks>("draft_best_blocks", IdleBestBlocks),
    Text<&O::self_draft>("self_draft", IdleCopy),
    SpeculativeKey{"synthetic_acceptance_rate",
                   {},
                   Type::kNumber,
                   SetSynthetic,
                   [](const O& o) {
                     return o.synthetic_acceptance_rate
                                ? fmt::format("{}", *o.synthetic_acceptance_rate)
                                : std::string("off");
                   },
                   IdleSynthetic,
                   0,
                   1,
                   NoRate},
    Switch<&O::synthetic_acceptance_each>("synthetic_acceptance_each", IdleSyntheticEach),
    Share<&O::acceptance_threshold>("acceptance_threshold", ForStrategies<kResidual>),
    Switch<&O::skip_sample_adjustment>("skip_sample_adjustment", ForStrategies<kResidual>),
    Share<&O::typical_epsilon>("typical_epsilon", ForStrategies<kTypical>),
    Share<&O::typical_delta>("typical_delta", ForStrategies<kTypical>),
    Integer<&O::relaxed_top_n, 1, kMany>("relaxed_top_n", ForStrategies<kRelaxed>),
    Share<&O::relaxed_delta>("relaxed_delta", ForStrategies<kRelaxed>),
    Switch<&O::use_relaxed_acceptance_for_thinking>("use_relaxed_acceptance_for_thinking",
                                                    IdleThinking),
    Text<&O::thinking_begin>("thinking_begin", IdleMark),
    Text<&O::thinking_end>("thinking_end", IdleMark),
    Integer<&O::ngram_max, 1, kMaxNgram>("ngram_max", ForMethods<kNgram>, kNgramMaxNames),
    Integer<&O::ngram_min, 1, kMaxNgram>("ngram_min", IdleNgramMin, kNgramMinNames),
    SpeculativeKey{"ngram_storage",
                   {},
                   Type::kName,
                   SetStorage,
                   [](const O& o) {
                     return std::string(o.ngram_storage == NgramStorage::kMultiLevel
                                            ? "multi-level"
                                            : "single-level");
                   },
                   ForMethods<kNgram>,
                   1,
                   0,
                   [] { return Written(kStorages); }},
    Integer<&O::ngram_filler_top_k, 1, 64>("ngram_filler_top_k", ForMethods<kNgram>, kFillerNames),
    Switch<&O::ngram_keep>("ngram_keep", ForLaterRequests<kNgram>),
    Path<&O::ngram_corpus>("ngram_corpus", ForMethods<kNgram>),
    Integer<&O::suffix_max_tokens, 0, 1 << 30>("suffix_max_tokens", ForLaterRequests<kSuffix>),
    Path<&O::profile>("profile", ForCostModels),
};

// Keys of other programs' files that mean something here, elsewhere.
struct Elsewhere {
  std::string_view key, advice;
};
constexpr std::array kElsewhere = {
    Elsewhere{"model",
              "write draft_models: PATH, or give the draft model with EngineOptions::draft_model"},
    Elsewhere{"synthetic_acceptance_length",
              "give synthetic_acceptance_rate: (length - 1) / num_speculative_tokens"},
    Elsewhere{"draft_tensor_parallel_size", "leave it out: a draft runs where the model runs"},
    Elsewhere{"enable_adaptive_verification", "write lookahead: cost-model"},
    Elsewhere{"prompt_lookup_num_tokens",
              "write speculative_method: ngram and num_speculative_tokens"},
    Elsewhere{"speculative_num_draft_tokens",
              "write num_speculative_tokens, one less: it counts the drafts, not the rows"},
};

std::string Underscored(std::string_view key) {
  std::string out(key);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

Status UnknownKey(std::string_view key) {
  const std::string name = Underscored(key);
  for (const auto& [known, advice] : kElsewhere)
    if (known == name)
      return InvalidField(Shown(key), fmt::format("not a setting here; {}", advice));
  std::vector<std::string_view> names;
  for (const SpeculativeKey& row : kKeys) {
    names.push_back(row.name);
    names.insert(names.end(), row.aliases.begin(), row.aliases.end());
  }
  const std::string_view nearest = NearestName(name, names);
  return InvalidField(Shown(key), nearest.empty()
                                      ? "no such setting; docs/configuration.md lists them"
                                      : fmt::format("no such setting; did you mean {}?", nearest));
}

}  // namespace

std::span<const SpeculativeKey> SpeculativeKeys() {
  return kKeys;
}

const SpeculativeKey* FindSpeculativeKey(std::string_view name) {
  const std::string wanted = Underscored(name);
  for (const SpeculativeKey& key : kKeys) {
    if (key.name == wanted ||
        std::find(key.aliases.begin(), key.aliases.end(), wanted) != key.aliases.end())
      return &key;
  }
  return nullptr;
}

Status SetSpeculativeOption(SpeculativeOptions& options, std::string_view key,
                            const std::string& text) {
  const SpeculativeKey* const row = FindSpeculativeKey(key);
  if (row == nullptr) return UnknownKey(key);
  if (Status status = row->set(options, text); !status)
    return Fail(std::move(status.error()).Of(key));
  return {};
}

std::vector<std::pair<std::string, std::string>> Describe(const SpeculativeOptions& options) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const SpeculativeKey& key : kKeys) out.emplace_back(key.name, key.print(options));
  return out;
}

}  // namespace foretoken
