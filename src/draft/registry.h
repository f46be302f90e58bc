// SPDX-License-Identifier: Apache-2.0
// draft/registry.h: the table of drafters.
//
// A drafter is one file in this folder, in networks/ or in lookup/, which ends with its row, a DrafterSpec,
// and its name, twice, in registry.cpp. Names, checks, help texts, documents, the engine's set of
// drafters and the tests of every drafter are made from the table.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft/drafter.h"
#include "draft/networks/shared_tokens.h"
#include "foretoken/catalogue.h"
#include "foretoken/options.h"
#include "foretoken/result.h"
#include "kernels/kernels.h"
#include "kv/block_tables.h"
#include "model/arch/registry.h"
#include "model/config.h"
#include "model/runner.h"

namespace foretoken::draft {

// What an engine makes a drafter from. Each reads what it needs.
struct DrafterSettings {
  const SpeculativeOptions& options;
  int max_sequences = 1;
  int max_context = 0;  // tokens of a sequence's text
  int max_draft = 0;    // tokens of one proposal at most
  bool kv_cache = true;
  kv::BlockTables* target_cache = nullptr;  // which blocks hold the target's positions
  const kernels::Kernels* kernels = nullptr;
  // The tokens of a text file. Errors: those of reading it.
  std::function<Result<std::vector<Token>>(const std::string& path)> read_text;
  // Only for drafters with a file: its loaded network, the description of a head, the cache to use
  // and the tokens that it may draft.
  std::unique_ptr<model::Runner> runner = {};
  const model::HeadConfig* head = nullptr;
  kv::TablesShape tables = {};
  SharedTokens shared = 0;
  // The positions of a text of more than long_text of them that a copy of the target may see, and that a draft
  // model reads, in place of all; 0: as many as the options say.
  int narrow_window = 0, long_text = 0;
};

struct DrafterSpec {
  DrafterInfo info;
  // Whether its network is a whole model. Heads say themselves who drafts with them (model/arch/heads).
  bool reads_models = false;
  // Whether it can draft for a request at all; null: for every request.
  bool (*serves)(const Request& request) = nullptr;
  // It drafts before all others for each request that it serves, whatever method was chosen.
  bool joins_others = false;
  // Errors: those of settings that its files or texts do not fit.
  Result<std::unique_ptr<Drafter>> (*make)(DrafterSettings settings) = nullptr;

  // Whether a file holds its network.
  bool Reads(const model::DraftFile& file) const;
  bool Serves(const Request& request) const { return serves == nullptr || serves(request); }
};

// What its row says of a drafter.
class ListedDrafter : public Drafter {
 public:
  explicit ListedDrafter(const DrafterSpec& spec) : info_(spec.info) {}
  std::string_view name() const final { return info_.name; }
  bool ReportsDistributions() const final { return info_.reports_q; }
  bool DraftsAtOnce() const final { return info_.drafts_at_once; }

 private:
  const DrafterInfo& info_;
};

// In the order of AllDrafters().
std::span<const DrafterSpec* const> Specs();

// The one that drafts with heads of a kind.
const DrafterSpec& SpecOf(const model::HeadKind& head);

}  // namespace foretoken::draft
