// SPDX-License-Identifier: Apache-2.0
// loader/drafts/draft_files.h: finds which drafters the files of a target's drafts make, and whether
// they fit it. Files that nobody named are looked for beside the target.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "draft/networks/shared_tokens.h"
#include "draft/registry.h"
#include "foretoken/engine.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "loader/drafts/own_copy.h"
#include "loader/model_part.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::loader {

// A model or a head that drafts. Its weights are not loaded yet.
struct DraftPart {
  const formats::Checkpoint* file = nullptr;  // one of DraftFiles::checkpoints, or the target's
  const draft::DrafterSpec* spec = nullptr;   // the drafter that reads it
  std::string name = {}, full_name = {};      // as in DrafterEntry
  ModelPart part = {};
  draft::SharedTokens shared = 0;      // the tokens that it has in common with the target
  std::vector<Token> tokens = {};      // the columns of its reduced output; empty: it has none
  std::vector<CopyOffer> offers = {};  // copies of the target, of which it may be one
  CopyOffer offer = {};                // the one that it is
  std::string notice = {};             // what its user should know; or ""
  bool in_target = false;              // a part of the target's own file
  bool found = false;                  // nobody named its file
  bool passed_over = false;  // it was found, and its weights are not what the file promises
};

struct DraftFiles {
  std::vector<std::unique_ptr<formats::Checkpoint>> checkpoints;
  std::vector<DraftPart> drafts;
  std::string methods;     // those of the options; if they name none, those that the files offer
  std::string self_draft;  // of a copy whose types the options do not name: those that were chosen
  std::string no_copy;     // why a large model that nobody chose drafts for gets no copy
  bool automatic = false;  // the options name neither methods nor files
  bool lenient = false;    // a draft that was found and cannot be loaded makes no error
  std::vector<std::string> notices, details;  // as in EngineSummary

  // For a draft whose weights could not be loaded: leaves it out if nobody asked for it. Returns the
  // error if somebody did, or if it says nothing about the file.
  [[nodiscard]] Status PassOver(DraftPart& draft, Error error);
  // Call it when all drafts are loaded: forgets those that were passed over, adds a line about those
  // that were found, and gives the summary its notices. Returns the methods that are left.
  std::string Settle(EngineSummary& summary);
};

// The model that the drafts are for. Its sizes are set.
struct DraftTarget {
  const formats::Checkpoint& checkpoint;
  const text::Tokenizer& tokenizer;
  const ModelPart& part;
};

// Checks the options alone; opens no file. Errors: kInvalidArgument (a file without its method, one
// file twice).
[[nodiscard]] Status CheckDraftOptions(const EngineOptions& options);

// Opens and describes everything that drafts from a file, divided over the ranks where that pays:
// models, heads, the head in the target's own file, and if options.find_drafters, files beside the target.
// Errors: those of a file, kMismatch (a file that does not fit the target or the methods) and
// kInvalidArgument (a method without its file). Files that were not named make no errors.
[[nodiscard]] Result<DraftFiles> OpenDraftFiles(const EngineOptions& options,
                                                const DraftTarget& target);

}  // namespace foretoken::loader
