// SPDX-License-Identifier: Apache-2.0
// The build defines: FORETOKEN_INSTALLED_MODELS, from an installed program's folder to the models;
// FORETOKEN_BUILD_FOLDER; FORETOKEN_SOURCE_MODELS, the models/ of the sources.
#include "settings/bundled_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/machine/program_path.h"
#include "draft/methods.h"

namespace foretoken::settings {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTarget = "tales-9m-q8_0.gguf";
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDrafters = {{
    {"standalone", "tales-1m-draft-q8_0.gguf"},
    {"eagle", "tales-9m-eagle-q8_0.gguf"},
    {"mtp", "tales-9m-mtp-q8_0.gguf"},
}};

bool Holds(const std::string& folder, std::string_view file) {
  std::error_code failed;
  return fs::is_regular_file(fs::path(folder) / file, failed);
}

// Whether `path` is in `folder` or below it. Links are followed; a path that does not exist is
// nowhere.
bool LiesIn(const std::string& path, const std::string& folder) {
  std::error_code failed;
  const fs::path inner = fs::canonical(path, failed);
  if (failed) return false;
  const fs::path outer = fs::canonical(folder, failed);
  if (failed) return false;
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

tl::unexpected<Error> NotFound(const ModelPlaces& places) {
  constexpr std::string_view kWayOut = "name a GGUF file with -m PATH";
  if (!places.environment.empty()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("FORETOKEN_MODELS: {} holds no {}; point it to the folder of the "
                            "bundled models, or {}",
                            places.environment, kTarget, kWayOut));
  }
  return Fail(
      ErrorCode::kNotFound,
      fmt::format("model: none is named, and the bundled {} is not in {}; {}, or set "
                  "FORETOKEN_MODELS to the folder of the bundled models",
                  kTarget,
                  places.folders.empty() ? "any known folder"
                                         : fmt::format("{}", fmt::join(places.folders, " or ")),
                  kWayOut));
}

std::vector<std::string_view> BundledMethods() {
  std::vector<std::string_view> methods;
  for (const auto& [method, file] : kDrafters) methods.push_back(method);
  return methods;
}

// The methods that bundled files draft for.
std::vector<std::string_view> DraftsFor(std::string_view methods) {
  if (methods == "portfolio") return {kBestMethod};
  std::vector<std::string_view> found;
  for (const auto& [method, file] : kDrafters)
    if (UsesMethod(methods, method)) found.push_back(method);
  return found;
}

}  // namespace

ModelPlaces ModelPlaces::Of(const std::string& program) {
  ModelPlaces places;
  const fs::path installed = fs::path(program).parent_path() / FORETOKEN_INSTALLED_MODELS;
  places.folders.push_back(installed.lexically_normal().string());
  if (LiesIn(program, FORETOKEN_BUILD_FOLDER)) {
    places.folders.emplace_back(FORETOKEN_SOURCE_MODELS);
  }
  return places;
}

ModelPlaces ModelPlaces::OfThisProgram() {
  const fs::path program = ProgramPath();
  ModelPlaces places = program.empty() ? ModelPlaces() : Of(program.string());
  if (const char* folder = std::getenv("FORETOKEN_MODELS")) places.environment = folder;
  return places;
}

Result<BundledModels> BundledModels::Find(const ModelPlaces& places) {
  const std::vector<std::string> folders =
      places.environment.empty() ? places.folders : std::vector<std::string>{places.environment};
  const auto folder = std::find_if(folders.begin(), folders.end(),
                                   [](const std::string& path) { return Holds(path, kTarget); });
  if (folder == folders.end()) return NotFound(places);
  return BundledModels(*folder);
}

std::string BundledModels::target() const {
  return (fs::path(folder_) / kTarget).string();
}

Result<std::string> BundledModels::Drafter(std::string_view method) const {
  const auto* const row = std::find_if(kDrafters.begin(), kDrafters.end(),
                                       [&](const auto& known) { return known.first == method; });
  if (row == kDrafters.end()) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("--spec-type {}: no bundled model drafts that way; choose one of {}, "
                            "or name a file with -md PATH",
                            method, fmt::join(BundledMethods(), ", ")));
  }
  if (!Holds(folder_, row->second)) {
    return Fail(ErrorCode::kNotFound,
                fmt::format("drafter: {} holds no {}, the bundled one for {}; name one with -md "
                            "PATH, or choose --spec-type ngram",
                            folder_, row->second, method));
  }
  return (fs::path(folder_) / row->second).string();
}

Status FillInModels(EngineOptions& options, const ModelPlaces& places) {
  if (!options.model.empty()) return {};
  FORETOKEN_TRY(const BundledModels bundled, BundledModels::Find(places));
  options.model = bundled.target();
  std::string& method = options.speculative.method;
  auto& tokens = options.speculative.num_speculative_tokens;
  if (!options.DraftFiles().empty()) return {};
  if (method.empty() && !tokens && !options.speculative.profile.empty()) return {};
  if (method.empty()) method = kBestMethod;
  const std::vector<std::string_view> drafters = DraftsFor(method);
  if (drafters.empty()) return {};
  for (const std::string_view drafter : drafters) {
    FORETOKEN_TRY(std::string file, bundled.Drafter(drafter));
    if (options.draft_model.empty())
      options.draft_model = std::move(file);
    else
      options.speculative.draft_models.push_back(std::move(file));
  }
  if (!tokens && options.speculative.controller == "fixed") tokens = kBestTokens;
  return {};
}

Status FillInModel(std::string& model) {
  if (!model.empty()) return {};
  FORETOKEN_TRY(const BundledModels bundled, BundledModels::Find(ModelPlaces::OfThisProgram()));
  model = bundled.target();
  return {};
}

}  // namespace foretoken::settings
