// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/draft_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/files/file_name.h"
#include "loader/drafts/companions.h"
#include "loader/memory_plan.h"

namespace foretoken::loader {
namespace {

// A draft model that costs more than this part of the target's pass can hardly pay.
constexpr std::size_t kLeastRatio = 2;  // of the target's bytes to the draft's

std::string NameOf(const std::string& path) {
  return Shown(path.substr(NameStart(path)));
}

// The drafters' order; of one drafter the target's own head, then the smaller file, then the name.
bool ComesBefore(const FoundDraft& a, const FoundDraft& b) {
  const auto place = [](const FoundDraft& f) {
    const auto specs = draft::Specs();
    return std::find(specs.begin(), specs.end(), f.part.spec) - specs.begin();
  };
  const auto key = [&](const FoundDraft& f) {
    return std::tuple(place(f), f.part.in_target ? 0 : f.part.file->file_bytes(),
                      f.part.file->path());
  };
  return key(a) < key(b);
}

// Whether there is memory for one more draft.
class MemoryRoom {
 public:
  MemoryRoom(const EngineOptions& options, const DraftTarget& target)
      : use_{.needs = NeedsOf(target.part, target.checkpoint),
             .positions = options.context_size,
             .sequences = options.max_sequences,
             .may_page = KeepsTiles(options.repack_cache)} {}

  // Takes it, or says why not; "" if it is taken. Without room for the target all are, because there
  // is an error in any case.
  std::string Take(const DraftPart& draft) {
    MemoryUse with = use_;
    with.needs.Add(NeedsOf(draft.part, *draft.file));
    const auto before = PlanMemory(use_), after = PlanMemory(with);
    if (before && !after) return after.error().message;
    if (before && after->paged && !before->paged)
      return "memory: with it the model's experts would be read from a file";
    if (before && before->notice.empty() && !after->notice.empty()) return after->notice;
    use_ = with;
    return "";
  }

 private:
  MemoryUse use_;
};

}  // namespace

std::string WhyNoRoom(const DraftPart& draft, const EngineOptions& options,
                      const DraftTarget& target) {
  return MemoryRoom(options, target).Take(draft);
}

std::string PassedOver(const std::string& error) {
  return "drafts: passed over " + error;
}

Status CheckFoundModel(const formats::Checkpoint& draft, const formats::Checkpoint& target) {
  if (!NamesADraftModel(NameOf(draft.path())))
    return Fail(ErrorCode::kMismatch,
                "it is a whole model, and its name does not say that it drafts; name it with "
                "EngineOptions::draft_model if it shall");
  if (draft.file_bytes() > target.file_bytes() / kLeastRatio)
    return Fail(ErrorCode::kMismatch,
                "it is a whole model of more than half of the model's size; name it with "
                "EngineOptions::draft_model if it shall draft");
  return {};
}

void ChooseFound(std::vector<FoundDraft> found, const EngineOptions& options,
                 const DraftTarget& target, DraftFiles& files) {
  if (found.empty()) return;
  std::sort(found.begin(), found.end(), ComesBefore);
  MemoryRoom room(options, target);
  for (FoundDraft& f : found) {
    const bool taken = !files.drafts.empty() && files.drafts.back().spec == f.part.spec;
    const std::string why = taken ? fmt::format("{} drafts in the same way and is smaller",
                                                NameOf(files.drafts.back().file->path()))
                                  : room.Take(f.part);
    if (!why.empty()) {
      (taken ? files.details : files.notices)
          .push_back(PassedOver(f.part.file->path() + ": " + why));
      continue;
    }
    if (!f.part.in_target) files.checkpoints.push_back(std::move(f.checkpoint));
    files.drafts.push_back(std::move(f.part));
  }
}

std::string FoundLine(const std::vector<DraftPart>& drafts) {
  std::string list;
  bool beside = false;
  for (const DraftPart& draft : drafts) {
    if (!draft.found || draft.part.late) continue;
    beside |= !draft.in_target;
    list += fmt::format("{}{} by {}", list.empty() ? "" : ", ", draft.spec->info.name,
                        draft.in_target ? "the model's own head" : NameOf(draft.file->path()));
    if (draft.part.config.head && !draft.tokens.empty())
      list += fmt::format(" with {} of its {} tokens where that pays", draft.tokens.size(),
                          draft.part.config.vocabulary);
  }
  if (list.empty()) return "";
  return fmt::format(
      "drafts: {} (found {} the model{}; SpeculativeOptions::method none turns it off)", list,
      beside ? "beside" : "in", beside ? "" : "'s file");
}

}  // namespace foretoken::loader
