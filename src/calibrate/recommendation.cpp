// SPDX-License-Identifier: Apache-2.0
#include "calibrate/recommendation.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "loader/drafts/own_copy.h"

namespace foretoken::calibrate {
namespace {

bool NamesADrafter(const EngineOptions& options) {
  const SpeculativeOptions& o = options.speculative;
  return !o.method.empty() || !options.DraftFiles().empty() || options.drafter ||
         o.num_speculative_tokens || (!o.self_draft.empty() && o.self_draft != loader::kNoCopy);
}

// The file beside the model or beside the profile whose content was measured.
std::optional<std::string> FindDraft(const Profile& profile, const EngineOptions& options) {
  const auto& recommended = profile.recommendation;
  const auto file = std::filesystem::path(recommended.draft_model).filename();
  for (const std::string& neighbour : {options.model, options.speculative.profile}) {
    const std::string path = (std::filesystem::path(neighbour).parent_path() / file).string();
    const auto model = ProfileModel::Of(path);
    if (model && profile.DraftOf(recommended.method, &*model) != nullptr) return path;
  }
  return std::nullopt;
}

// " with draft.gguf"; "": it drafts with neither a file nor a copy of the model.
std::string Means(const Profile& profile) {
  const auto& recommended = profile.recommendation;
  if (!recommended.self_draft.empty())
    return fmt::format(" with a copy of the model in {}", recommended.self_draft);
  return recommended.draft_model.empty() ? "" : " with " + recommended.draft_model;
}

}  // namespace

Result<std::string> TakeRecommendation(const ProfileMachine& machine, EngineOptions& options) {
  SpeculativeOptions& o = options.speculative;
  if (o.profile.empty() || NamesADrafter(options)) return "";
  FORETOKEN_TRY(const Profile profile, Profile::Load(o.profile));
  FORETOKEN_TRY(const ProfileModel target, ProfileModel::Of(options.model));
  if (!profile.WhyNot(machine, target).empty()) return "";
  const auto& recommended = profile.recommendation;
  if (recommended.method != "none" && !recommended.draft_model.empty()) {
    const auto draft = FindDraft(profile, options);
    if (!draft)
      return fmt::format(
          "profile {}: the draft {} that it recommends is neither beside the model nor beside the "
          "profile, or was changed; name it with EngineOptions::draft_model, or run `foretoken "
          "tune` again",
          o.profile, recommended.draft_model);
    options.draft_model = *draft;
  }
  if (!recommended.self_draft.empty() && o.self_draft == loader::kNoCopy)
    return fmt::format(
        "profile {}: it recommends drafts of a copy of the model, which "
        "SpeculativeOptions::self_draft off "
        "turns off",
        o.profile);
  o.method = recommended.method;
  if (!recommended.self_draft.empty()) o.self_draft = recommended.self_draft;
  if (o.method == "none") return fmt::format("profile {}: it recommends no drafts", o.profile);
  o.num_speculative_tokens = recommended.num_speculative_tokens;
  if (o.controller == SpeculativeOptions().controller) {
    o.controller = recommended.controller;
    // As with the default controller, a seed keeps the text that it has without drafts.
    if (o.strategy == VerifyStrategy::kAuto) o.strategy = VerifyStrategy::kSampleMatch;
  }
  return fmt::format("profile {}: it recommends {}{}, {}{} drafts a round", o.profile, o.method,
                     Means(profile), o.controller == "fixed" ? "" : o.controller + ", at most ",
                     recommended.num_speculative_tokens);
}

}  // namespace foretoken::calibrate
