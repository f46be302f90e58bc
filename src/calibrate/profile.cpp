// SPDX-License-Identifier: Apache-2.0
// The file is one JSON object: kProfileFields. All of it must be there, and nothing else.
#include "foretoken/tools/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/files/text_file.h"
#include "base/json/json_reader.h"
#include "base/json/json_record.h"
#include "base/machine/cpus.h"
#include "foretoken/drafts.h"
#include "foretoken/options.h"
#include "loader/file_content.h"

namespace foretoken {
namespace {

constexpr std::size_t kMostBytes = 1 << 20, kMostPasses = 1024, kMostDrafts = 64, kMostText = 4096;
constexpr int kMostRows = 4096, kMostThreads = 4096;
constexpr double kMostUs = 1e12, kMostSpeedup = 1e6;
constexpr const char* kWayOut = "; write a new one with foretoken tune";

tl::unexpected<Error> Bad(const std::string& what, const std::string& why) {
  return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}{}", what, why, kWayOut));
}

constexpr auto kModelFields = [](auto& fields, auto& model) {
  fields.Text("file", kMostText, model.file);
  fields.Integer("bytes", 1, INT64_MAX, model.bytes);
  fields.Hash("hash", model.hash);
};

constexpr auto kMachineFields = [](auto& fields, auto& machine) {
  fields.Text("cpu", kMostText, machine.cpu);
  fields.Text("isa", kMostText, machine.isa);
  fields.Integer("threads", 1, kMostThreads, machine.threads);
};

constexpr auto kPassFields = [](auto& fields, auto& pass) {
  fields.Integer("context", 0, kMaxTextTokens, pass.context);
  fields.Integer("rows", 1, kMostRows, pass.rows);
  fields.Number("us", 1e-3, kMostUs, pass.us);
};

constexpr auto kDraftFields = [](auto& fields, auto& draft) {
  fields.Text("method", kMostText, draft.method);
  fields.Number("us", 0, kMostUs, draft.us);
  fields.ObjectOrNull("model", draft.model.bytes > 0, draft.model, kModelFields);
  fields.TextIfAny("self_draft", kMostText, draft.self_draft);
};

constexpr auto kRecommendationFields = [](auto& fields, auto& r) {
  fields.Text("method", kMostText, r.method);
  fields.Text("draft_model", kMostText, r.draft_model);
  fields.Integer("num_speculative_tokens", 0, kMaxDraft, r.num_speculative_tokens);
  fields.Text("lookahead", kMostText, r.controller);
  fields.Number("speedup", 0, kMostSpeedup, r.speedup);
  fields.TextIfAny("self_draft", kMostText, r.self_draft);
};

constexpr auto kProfileFields = [](auto& fields, auto& profile) {
  int version = Profile::kVersion;
  fields.Integer("foretoken_profile", Profile::kVersion, Profile::kVersion, version);
  fields.Object("machine", profile.machine, kMachineFields);
  fields.Object("target", profile.target, kModelFields);
  fields.List("passes", kMostPasses, profile.passes, kPassFields);
  fields.List("drafts", kMostDrafts, profile.drafts, kDraftFields);
  fields.Number("rest_us", 0, kMostUs, profile.rest_us);
  fields.Object("recommendation", profile.recommendation, kRecommendationFields);
};

Status CheckGrid(const std::vector<ProfilePass>& passes) {
  if (passes.empty()) return Bad("passes", "there are none");
  std::set<int> contexts, rows;
  for (const ProfilePass& pass : passes) contexts.insert(pass.context), rows.insert(pass.rows);
  if (*rows.begin() != 1) return Bad("passes", "none has one row");
  if (passes.size() != contexts.size() * rows.size())
    return Bad("passes", "not every number of rows is there once with every context");
  std::size_t i = 0;
  for (const int context : contexts)
    for (const int r : rows) {
      if (passes[i].context != context || passes[i].rows != r)
        return Bad("passes", "they are not in the order of contexts and rows");
      ++i;
    }
  return {};
}

Status CheckDrafts(const std::vector<ProfileDraft>& drafts) {
  for (std::size_t i = 0; i < drafts.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (drafts[i].method == drafts[j].method && drafts[i].model.Same(drafts[j].model) &&
          drafts[i].self_draft == drafts[j].self_draft)
        return Bad("drafts", fmt::format("'{}' is there twice", Shown(drafts[i].method)));
  return {};
}

}  // namespace

ProfileMachine ProfileMachine::This(std::string isa, int threads) {
  return {.cpu = CpuName().substr(0, kMostText), .isa = std::move(isa), .threads = threads};
}

Result<ProfileModel> ProfileModel::Of(const std::string& path) {
  FORETOKEN_TRY(const loader::FileContent content, loader::ContentOf(path));
  const auto name = std::filesystem::path(path).lexically_normal();
  return ProfileModel{.file = (name.has_filename() ? name : name.parent_path()).filename().string(),
                      .bytes = content.bytes,
                      .hash = content.hash};
}

Result<Profile> Profile::Load(const std::string& path) {
  auto text = ReadTextFile(path, {.most_bytes = kMostBytes});
  if (!text && text.error().code == ErrorCode::kTooLarge)
    return Bad(path, fmt::format("it is larger than {} bytes, and so no profile", kMostBytes));
  if (!text) return Fail(std::move(text).error());
  auto profile = Parse(*text);
  if (!profile) return Fail(std::move(profile).error().In(path));
  return profile;
}

Result<Profile> Profile::Parse(const std::string& text) {
  if (text.size() > kMostBytes) return Bad("profile", "it is too long");
  const auto json = ReadJson(text);
  if (!json) return Bad("profile", "this is not JSON");
  if (!json->contains("foretoken_profile")) return Bad("profile", "this is none");
  Profile profile;
  if (const auto error = ReadRecord(*json, profile, kProfileFields))
    return Bad(error->where.empty() ? "profile" : error->where, "it " + error->why);
  FORETOKEN_CHECK_OK(CheckGrid(profile.passes));
  FORETOKEN_CHECK_OK(CheckDrafts(profile.drafts));
  return profile;
}

std::string Profile::ToText() const {
  return WriteRecord(*this, kProfileFields).dump({.indent = 1}) + "\n";
}

Status Profile::Save(const std::string& path) const {
  const std::string text = ToText();
  if (auto parsed = Parse(text); !parsed) {
    Error error = std::move(parsed).error();
    error.code = ErrorCode::kInvalidArgument;
    return Fail(std::move(error).In("profile"));
  }
  return WriteTextFile(path, text);
}

std::string Profile::WhyNot(const ProfileMachine& here, const ProfileModel& model) const {
  const auto describe = [](const ProfileMachine& m) {
    return fmt::format("'{}' with {} and {} {}", m.cpu, m.isa, m.threads,
                       m.threads == 1 ? "thread" : "threads");
  };
  if (machine != here)
    return fmt::format("it was measured on {}, and this is {}", describe(machine), describe(here));
  if (!target.Same(model))
    return fmt::format("it was measured with {} of {} bytes, and {} is another file or has changed",
                       target.file, target.bytes, model.file);
  return "";
}

const ProfileDraft* Profile::DraftOf(const std::string& method, const ProfileModel* file,
                                     const std::string& self_draft) const {
  const ProfileModel none;
  const auto found = std::find_if(drafts.begin(), drafts.end(), [&](const ProfileDraft& draft) {
    return draft.method == method && draft.model.Same(file != nullptr ? *file : none) &&
           draft.self_draft == self_draft;
  });
  return found == drafts.end() ? nullptr : &*found;
}

}  // namespace foretoken
