// SPDX-License-Identifier: Apache-2.0
// foretoken/catalogue.h: what this build has, one row a thing: drafters, verification strategies,
// draft-length controllers, networks and number types. Flags, their help texts, checks of settings,
// the server's replies, its page and the tables of the documents are made from these rows.
//
// The rows live as long as the program runs. Any thread may read them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace foretoken {

inline constexpr const char* kVersion = "0.1.0";

struct DrafterInfo {
  std::string_view name;                           // a method: "ngram"
  std::span<const std::string_view> aliases = {};  // names that other programs give it
  std::string_view help;  // "looks up the newest tokens in the text so far"
  // It copies from texts and runs no network: its drafts are certain and cost next to nothing.
  bool lookup_only = false;
  bool reports_q = false;             // its drafts have the distributions that they were drawn from
  bool reads_features = false;        // a head: it reads hidden states of the target
  bool reads_file = false;            // its network has a file, or a part of the target's
  bool in_target = false;             // its network may be a part of the target's file
  bool copies_target = false;         // its network is a copy of the target's, in fewer bits
  bool reads_p_min = false;           // draft_p_min can end its drafts
  bool drafts_at_once = false;        // a proposal takes one pass, however many tokens it has
  std::string_view drafts_from = {};  // what a request must bring: "a prediction"; empty: nothing
};
// In the order in which an engine asks them. "none" and "portfolio" are methods, too, but no
// drafters.
std::span<const DrafterInfo* const> AllDrafters();

struct StrategyInfo {
  // Its constant in VerifyStrategy, if it has one, has this name. It ends with a NUL.
  const char* name;
  std::span<const std::string_view> aliases = {};
  std::string_view help;  // one line for help texts
  // The rule, for documents: when a draft is accepted, the token in place of a rejected one, and
  // the random numbers that decide.
  std::string_view accepts_if, else_takes, random_numbers;
  bool lossless = false;      // with its settings at their defaults
  bool needs_q = false;       // refuses drafters that report no distributions
  bool needs_logits = false;  // refuses drafters that report no logits
  // The target's own sample at a position does not depend on drafts: a seed gives the same text with
  // and without speculation.
  bool same_text = false;
};
// The lossless ones first. "auto" is none of them: it chooses one.
std::span<const StrategyInfo* const> AllStrategies();

struct ControllerInfo {
  std::string_view name;  // "cost-model"
  std::span<const std::string_view> aliases = {};
  std::string_view help;       // one line for help texts
  std::string_view length;     // how long the next draft is, for documents
  std::string_view default_k;  // the most tokens of a draft if the user sets no K: "16"
  bool weighs_costs = false;   // reads what passes and drafts cost
  // Its lengths follow measured time or other requests. Where they would decide the text, by-text
  // takes its place.
  bool follows_load = false;
};
// The default one first.
std::span<const ControllerInfo* const> AllControllers();

struct ArchitectureInfo {
  std::string_view name;      // general.architecture of its files
  std::string_view networks;  // what people call the networks
  std::string_view traits;    // what it has beside what all networks have in common
};
// Sorted by name.
std::span<const ArchitectureInfo* const> AllArchitectures();

struct NumberTypeInfo {
  std::string_view name;  // "Q4_K"
  int block_values = 0;   // values that share scales
  int block_bytes = 0;
  std::string_view products;  // what kernels multiply it by
};
std::vector<NumberTypeInfo> AllNumberTypes();

// The row that has this name or alias; null: there is none.
template <typename Info>
const Info* FindRow(std::span<const Info* const> rows, std::string_view name) {
  for (const Info* const row : rows) {
    if (row->name == name) return row;
    for (const std::string_view alias : row->aliases)
      if (alias == name) return row;
  }
  return nullptr;
}
inline const DrafterInfo* FindDrafter(std::string_view name) {
  return FindRow(AllDrafters(), name);
}
inline const StrategyInfo* FindStrategy(std::string_view name) {
  return FindRow(AllStrategies(), name);
}
inline const ControllerInfo* FindController(std::string_view name) {
  return FindRow(AllControllers(), name);
}

// The rows' names, in their order.
template <typename Info>
std::vector<std::string_view> NamesOf(std::span<const Info* const> rows) {
  std::vector<std::string_view> names;
  for (const Info* const row : rows) names.emplace_back(row->name);
  return names;
}
// Those that have a property, or lack it.
template <typename Info>
std::vector<std::string_view> NamesWith(std::span<const Info* const> rows, bool Info::*property,
                                        bool value) {
  std::vector<std::string_view> names;
  for (const Info* const row : rows)
    if (row->*property == value) names.emplace_back(row->name);
  return names;
}
// A strategy under which a seed gives the same text with and without drafts. Names of your own
// verifiers are no strategies.
inline bool KeepsText(std::string_view strategy) {
  const StrategyInfo* const row = FindStrategy(strategy);
  return row != nullptr && row->same_text;
}

}  // namespace foretoken
