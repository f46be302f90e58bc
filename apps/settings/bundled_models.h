// SPDX-License-Identifier: Apache-2.0
// settings/bundled_models.h: finds the models that come with foretoken and uses them where the user
// names none. Only programs do this; the library has no default model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken::settings {

// The bundled target's drafter if neither a draft nor a method is named: the fastest one measured.
inline constexpr std::string_view kBestMethod = "standalone";
// The number of tokens that its drafters draft in a round: the target fits into the CPU's caches,
// so rows beyond the third cost nearly as much as the first (models/README.md).
inline constexpr int kBestTokens = 2;

// The folders where the bundled models may be.
struct ModelPlaces {
  std::string environment;           // $FORETOKEN_MODELS; if it is set, nothing else counts
  std::vector<std::string> folders;  // in order of preference

  static ModelPlaces OfThisProgram();
  // For the program with the file `program`: the share/ folder of its installation, wherever that
  // was moved; then, for a program in its build folder, the models/ of the sources.
  static ModelPlaces Of(const std::string& program);
};

class BundledModels {
 public:
  // Errors: kNotFound, naming the folders that hold no target.
  [[nodiscard]] static Result<BundledModels> Find(const ModelPlaces& places);

  std::string target() const;
  // The file of a method that needs one: "standalone", "eagle" or "mtp". Errors: kNotFound.
  [[nodiscard]] Result<std::string> Drafter(std::string_view method) const;

 private:
  explicit BundledModels(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// If `options` name no model: uses the bundled target and, unless a draft is named or the methods
// need none, its drafter for the first named method that needs one (kBestMethod if none or a
// portfolio is named), with kBestTokens if no number is given. A profile that alone is named chooses
// the drafter. Options that name a model stay as they are. Errors: kNotFound.
[[nodiscard]] Status FillInModels(EngineOptions& options, const ModelPlaces& places);

// The bundled target if `model` is empty, for verbs without a drafter. Errors: kNotFound.
[[nodiscard]] Status FillInModel(std::string& model);

}  // namespace foretoken::settings
