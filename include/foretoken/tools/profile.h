// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/profile.h: what passes and drafts of some models cost on some machine, and what was
// fastest there, measured once by `foretoken tune` and kept in a file, so that an engine knows it from
// its first round.
//
//   auto profile = foretoken::Profile::Load("target.profile.json");
//   if (profile && profile->WhyNot(machine, target).empty())
//     options.speculative.profile = "target.profile.json";
//
// A profile counts only for the machine and the model files that it was measured with. It changes
// the speed, never the text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/result.h"

namespace foretoken {

struct ProfileMachine {
  std::string cpu;  // the system's name for it, "" if it has none
  std::string isa;  // of the kernels: "avx512"
  int threads = 1;

  // This machine. isa and threads are those of an engine: see EngineSummary.
  static ProfileMachine This(std::string isa, int threads);
  bool operator==(const ProfileMachine&) const = default;
};

// Identifies a file by its content: its size, and a hash of its beginning (metadata and first
// tensors), middle and end. The name is only for people.
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

// One more draft token, or all of a round where the method makes them in one pass.
struct ProfileDraft {
  std::string method;  // "standalone"
  ProfileModel
      model;      // bytes is 0 if the method needs no file; the target where it drafts for itself
  double us = 0;  // may be 0: a lookup can be too fast to measure
  std::string self_draft =
      {};  // the types of the target's copy (SpeculativeOptions::self_draft), or ""
};

struct Profile {
  static constexpr int kVersion = 1;

  ProfileMachine machine;
  ProfileModel target;
  std::vector<ProfilePass> passes;   // a full grid, by context and then rows, both ascending
  std::vector<ProfileDraft> drafts;  // each method with each file at most once
  double rest_us = 0;                // of a round, besides its pass and its drafts
  // The fastest choice: a method's name or "none", its file ("" if it has none), K and controller,
  // its speed-up over plain decoding, and the types of the target's copy ("" if it has none).
  struct {
    std::string method = "none", draft_model;
    int num_speculative_tokens = 0;
    std::string controller = "fixed";
    double speedup = 1;
    std::string self_draft = {};
  } recommendation;

  // Everything is checked: a profile that loads is complete and in range. Errors: those of the
  // file; kInvalidFile, with the field.
  [[nodiscard]] static Result<Profile> Load(const std::string& path);
  // Reads a profile from a file's text. Errors: kInvalidFile.
  [[nodiscard]] static Result<Profile> Parse(const std::string& text);

  std::string ToText() const;
  // Replaces the file in one step when the new one is complete; after an error or a kill the old
  // one is still there. Errors: kIo; kInvalidArgument if Load would refuse the profile.
  [[nodiscard]] Status Save(const std::string& path) const;

  // "" if these costs hold for this machine and target, else the reason: "it was measured on ...,
  // and this is ...".
  std::string WhyNot(const ProfileMachine& here, const ProfileModel& model) const;
  // Null if drafts of this method with this file (null: none), or with the target's copy of these types,
  // were not measured.
  const ProfileDraft* DraftOf(const std::string& method, const ProfileModel* file,
                              const std::string& self_draft = "") const;
};

}  // namespace foretoken
