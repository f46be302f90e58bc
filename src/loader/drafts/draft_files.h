// SPDX-License-Identifier: Apache-2.0
// loader/drafts/draft_files.h: finds which drafters the files beside a target make, and whether they fit
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "draft/networks/shared_tokens.h"
#include "draft/registry.h"
#include "foretoken/options.h"
#include "formats/checkpoint.h"
#include "loader/model_part.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::loader {

// A model or a head that drafts. Its weights are not loaded yet.
struct DraftPart {
  const formats::Checkpoint* file = nullptr;  // one of DraftFiles::checkpoints, or the target's
  const draft::DrafterSpec* spec = nullptr;   // the drafter that reads it
  std::string name = {}, full_name = {};      // as in DrafterEntry
  ModelPart part = {};
  draft::SharedTokens shared = 0;  // the tokens that it has in common with the target
  std::vector<Token> tokens = {};  // the columns of its output head, if that is reduced
};

struct DraftFiles {
  std::vector<std::unique_ptr<formats::Checkpoint>> checkpoints;
  std::vector<DraftPart> drafts;
  std::string methods;  // those of the options; if they name none, those that the files offer
  std::vector<std::string> notices;
};

// The model that the drafts are for.
struct DraftTarget {
  const formats::Checkpoint& checkpoint;
  const text::Tokenizer& tokenizer;
  int vocabulary = 0;  // columns of its output head
};

// Checks the options alone; opens no file. Errors: kInvalidArgument (a method without its file, a
// file without its method, one file twice).
[[nodiscard]] Status CheckDraftOptions(const EngineOptions& options);

// Opens and describes everything that drafts from a file: models, heads, the head in the target's
// own file. Errors: those of a file, and kMismatch (a file that does not fit the target or the
// methods).
[[nodiscard]] Result<DraftFiles> OpenDraftFiles(const EngineOptions& options,
                                                const DraftTarget& target);

}  // namespace foretoken::loader
