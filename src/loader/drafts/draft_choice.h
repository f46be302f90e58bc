// SPDX-License-Identifier: Apache-2.0
// loader/drafts/draft_choice.h: drafts that nobody named, and which of them are used: one for each
// drafter, as far as memory goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "foretoken/options.h"
#include "loader/drafts/draft_files.h"

namespace foretoken::loader {

struct FoundDraft {
  DraftPart part;
  std::unique_ptr<formats::Checkpoint> checkpoint;  // null: part.file is the target's
};

// Whether a whole model of this file may draft without being asked for: its name says that it drafts,
// and it is at most half as large as the target. Error: kMismatch.
[[nodiscard]] Status CheckFoundModel(const formats::Checkpoint& draft,
                                     const formats::Checkpoint& target);

// Adds those that are used to `files`, in the drafters' order: the target's own head, else the smallest
// file. `details` gets the reasons for the others.
void ChooseFound(std::vector<FoundDraft> found, const EngineOptions& options,
                 const DraftTarget& target, DraftFiles& files);

// Whether memory has room for this one draft beside the target: "", or why not.
std::string WhyNoRoom(const DraftPart& draft, const EngineOptions& options,
                      const DraftTarget& target);

// "drafts: mtp by the model's own head, standalone by tales-draft.gguf (found beside the model; ...)";
// "" if nothing was found.
std::string FoundLine(const std::vector<DraftPart>& drafts);

// "drafts: passed over tales-draft.gguf: it is damaged", from an error that names the file.
std::string PassedOver(const std::string& error);

}  // namespace foretoken::loader
