// SPDX-License-Identifier: Apache-2.0
// foretoken/profile.h: what passes and drafts of some models cost on some machine, measured once by
// `foretoken tune` and kept in a file, so that an engine knows it from its first round.
//
//   auto profile = foretoken::Profile::Load("target.profile.json");
//   if (profile && profile->WhyNot(machine, target).empty()) ...
//
// A profile serves only the machine and the model files that it was measured with. It changes the
// speed, never the text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

struct ProfileMachine {
  std::string cpu;  // as the system names it, "" where it does not
  std::string isa;  // of the kernels: "avx512"
  int threads = 1;

  // This one. isa and threads are an engine's: EngineSummary has them.
  static ProfileMachine This(std::string isa, int threads);
  bool operator==(const ProfileMachine&) const = default;
};

// A file by its content: its size, and a hash of its beginning (metadata and first tensors), middle
// and end. Its name is only for people.
struct ProfileModel {
  std::string file;  // without folders
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;

  // Errors: those of the file.
  [[nodiscard]] static Result<ProfileModel> Of(const std::string& path);
  bool Same(const ProfileModel& other) const { return bytes == other.bytes && hash == other.hash; }
};

// A pass of the target that decodes `rows` rows behind `context` positions.
struct ProfilePass {
  int context = 0, rows = 1;
  double us = 0;
};

// One more draft token.
struct ProfileDraft {
  std::string method;  // "standalone"
  ProfileModel model;  // bytes 0 where the method needs no file
  double us = 0;       // 0 is allowed: a lookup may be too fast to be seen
};

struct Profile {
  static constexpr int kVersion = 1;

  ProfileMachine machine;
  ProfileModel target;
  std::vector<ProfilePass> passes;   // a full grid, by context and then rows, both ascending
  std::vector<ProfileDraft> drafts;  // each method with each file at most once
  double rest_us = 0;                // of a round, beside its pass and its drafts
  // What was fastest: a method's name or "none", its file ("" where it has none), K and controller,
  // and how much faster than plain decoding it was.
  struct {
    std::string method = "none", draft_model;
    int num_speculative_tokens = 0;
    std::string lookahead = "fixed";
    double speedup = 1;
  } recommendation;

  // Everything is checked: a profile that loads is whole and in range. Errors: those of the file;
  // kInvalidFile, naming the field.
  [[nodiscard]] static Result<Profile> Load(const std::string& path);
  // Of a file's text. Errors: kInvalidFile.
  [[nodiscard]] static Result<Profile> Parse(const std::string& text);

  std::string ToText() const;
  // The file is replaced at once when it is complete; after an error or a kill it is as it was.
  // Errors: kIo; kInvalidArgument where the profile is one that Load would refuse.
  [[nodiscard]] Status Save(const std::string& path) const;

  // "" if these costs hold for this machine and target, else why they do not: "it was measured on
  // ..., and this is ...".
  std::string WhyNot(const ProfileMachine& here, const ProfileModel& model) const;
  // Null where drafts of this method by this file (null: none) were not measured.
  const ProfileDraft* DraftOf(const std::string& method, const ProfileModel* file) const;
};

}  // namespace foretoken
