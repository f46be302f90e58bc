// SPDX-License-Identifier: Apache-2.0
// settings/bundled_models.h: the models that come with foretoken: where they lie, and what they
// stand for where the user names none. Programs ask here; the library knows no default.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken::settings {

// The bundled target's drafter where neither a draft nor a method is named: the fastest measured.
inline constexpr std::string_view kBestMethod = "standalone";
// And how many tokens its drafters draft in a round: the target lies in the processor's caches, so
// rows beyond the third cost nearly as much as the first (models/README.md).
inline constexpr int kBestTokens = 2;

// The folders where the bundled models may lie.
struct ModelPlaces {
  std::string environment;           // $FORETOKEN_MODELS; where it is set, nothing else counts
  std::vector<std::string> folders;  // in order of preference

  static ModelPlaces OfThisProgram();
  // Of the program whose file is `program`: the share/ folder of its installation, wherever that
  // was moved to; then, for a program in the folder that it was built in, the sources' models/.
  static ModelPlaces Of(const std::string& program);
};

// `methods` is the method, or names it in a list with commas.
bool UsesMethod(std::string_view methods, std::string_view method);

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

// Where `options` name no model: the bundled target, and, unless a draft is named or the methods
// need none, its drafter of a named method that needs one, or of kBestMethod where none or a
// portfolio is named, with kBestTokens where no number is given. Options that name a model stay as
// they are. Errors: kNotFound.
[[nodiscard]] Status FillInModels(EngineOptions& options, const ModelPlaces& places);

// The bundled target where `model` is empty, for verbs that need no drafter. Errors: kNotFound.
[[nodiscard]] Status FillInModel(std::string& model);

}  // namespace foretoken::settings
