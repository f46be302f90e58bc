// SPDX-License-Identifier: Apache-2.0
// The file is one JSON object:
//   {"foretoken_profile": 1,
//    "machine": {"cpu", "isa", "threads"},
//    "target": {"file", "bytes", "hash": 16 hexadecimal digits},
//    "passes": [{"context", "rows", "us"}, ...],
//    "drafts": [{"method", "us", "model": as target, or null, "self_draft"}, ...],
//    "rest_us",
//    "recommendation": {"method", "draft_model", "num_speculative_tokens", "lookahead", "speedup",
//                       "self_draft"}}
// All of it must be there, and nothing else; "self_draft" only where the target drafts for itself.
#include "foretoken/tools/profile.h"
#include "foretoken/drafts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/files/text_file.h"
#include "base/machine/cpus.h"
#include "loader/file_content.h"

namespace foretoken {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 1 << 20, kMostPasses = 1024, kMostDrafts = 64, kMostText = 4096;
constexpr std::int64_t kMostContext = 1 << 24, kMostRows = 4096, kMostThreads = 4096;
constexpr double kMostUs = 1e12, kMostSpeedup = 1e6;
constexpr const char* kWayOut = "; write a new one with foretoken tune";

tl::unexpected<Error> Bad(const std::string& what, const std::string& why) {
  return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}{}", what, why, kWayOut));
}

// An object of the file. Fields are taken one by one, and a field that is left over is an error.
class Fields {
 public:
  // `object` must outlive this. Errors: it is not an object.
  static Result<Fields> Of(const Json& object, std::string where) {
    if (!object.is_object()) return Bad(where, "it is not an object");
    return Fields(object, std::move(where));
  }

  Result<const Json*> Take(const char* name) {
    const auto found = object_->find(name);
    if (found == object_->end()) return Bad(Path(name), "it is not there");
    ++taken_;
    return &*found;
  }
  Status Read(const char* name, std::string& out) {
    FORETOKEN_TRY(const Json* value, Take(name));
    if (!value->is_string()) return Bad(Path(name), "it is not a string");
    if (value->get_ref<const std::string&>().size() > kMostText)
      return Bad(Path(name), fmt::format("it is longer than {} bytes", kMostText));
    out = value->get<std::string>();
    return {};
  }
  Status ReadIfThere(const char* name, std::string& out) {
    return object_->contains(name) ? Read(name, out) : Status();
  }
  template <typename Integer>
  Status ReadInteger(const char* name, std::int64_t least, std::int64_t most, Integer& out) {
    FORETOKEN_TRY(const Json* value, Take(name));
    const bool huge = value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX;
    if (!value->is_number_integer() || huge || value->get<std::int64_t>() < least ||
        value->get<std::int64_t>() > most)
      return Bad(Path(name), fmt::format("it is not a whole number from {} to {}", least, most));
    out = static_cast<Integer>(value->get<std::int64_t>());
    return {};
  }
  Status ReadNumber(const char* name, double least, double most, double& out) {
    FORETOKEN_TRY(const Json* value, Take(name));
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most))
      return Bad(Path(name), fmt::format("it is not a number from {:g} to {:g}", least, most));
    out = value->get<double>();
    return {};
  }
  // Errors: no list, or more than `most` entries.
  Result<const Json*> TakeList(const char* name, std::size_t most) {
    FORETOKEN_TRY(const Json* value, Take(name));
    if (!value->is_array()) return Bad(Path(name), "it is not a list");
    if (value->size() > most)
      return Bad(Path(name), fmt::format("it has {} entries, more than {}", value->size(), most));
    return value;
  }
  Status End() const {
    if (taken_ == object_->size()) return {};
    return Bad(where_, "it has fields that this version does not know");
  }
  std::string Path(const std::string& name) const {
    return where_.empty() ? name : where_ + "." + name;
  }

 private:
  Fields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {}
  const Json* object_;
  std::string where_;
  std::size_t taken_ = 0;
};

Status ReadModel(const Json& json, const std::string& where, ProfileModel& model) {
  FORETOKEN_TRY(Fields fields, Fields::Of(json, where));
  std::string hash;
  FORETOKEN_CHECK_OK(fields.Read("file", model.file));
  FORETOKEN_CHECK_OK(fields.ReadInteger("bytes", 1, INT64_MAX, model.bytes));
  FORETOKEN_CHECK_OK(fields.Read("hash", hash));
  if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Bad(where + ".hash", "it is not a number of 16 hexadecimal digits");
  model.hash = std::strtoull(hash.c_str(), nullptr, 16);
  return fields.End();
}

Status ReadMachine(const Json& json, ProfileMachine& machine) {
  FORETOKEN_TRY(Fields fields, Fields::Of(json, "machine"));
  FORETOKEN_CHECK_OK(fields.Read("cpu", machine.cpu));
  FORETOKEN_CHECK_OK(fields.Read("isa", machine.isa));
  FORETOKEN_CHECK_OK(fields.ReadInteger("threads", 1, kMostThreads, machine.threads));
  return fields.End();
}

Status ReadPasses(const Json& list, std::vector<ProfilePass>& passes) {
  for (const Json& json : list) {
    ProfilePass pass;
    FORETOKEN_TRY(Fields fields, Fields::Of(json, fmt::format("passes[{}]", passes.size())));
    FORETOKEN_CHECK_OK(fields.ReadInteger("context", 0, kMostContext, pass.context));
    FORETOKEN_CHECK_OK(fields.ReadInteger("rows", 1, kMostRows, pass.rows));
    FORETOKEN_CHECK_OK(fields.ReadNumber("us", 1e-3, kMostUs, pass.us));
    FORETOKEN_CHECK_OK(fields.End());
    passes.push_back(pass);
  }
  return {};
}

Status ReadDrafts(const Json& list, std::vector<ProfileDraft>& drafts) {
  for (const Json& json : list) {
    ProfileDraft draft;
    const std::string where = fmt::format("drafts[{}]", drafts.size());
    FORETOKEN_TRY(Fields fields, Fields::Of(json, where));
    FORETOKEN_CHECK_OK(fields.Read("method", draft.method));
    FORETOKEN_CHECK_OK(fields.ReadNumber("us", 0, kMostUs, draft.us));
    FORETOKEN_TRY(const Json* model, fields.Take("model"));
    if (!model->is_null()) FORETOKEN_CHECK_OK(ReadModel(*model, where + ".model", draft.model));
    FORETOKEN_CHECK_OK(fields.ReadIfThere("self_draft", draft.self_draft));
    FORETOKEN_CHECK_OK(fields.End());
    drafts.push_back(std::move(draft));
  }
  return {};
}

Status ReadRecommendation(const Json& json, Profile& profile) {
  auto& r = profile.recommendation;
  FORETOKEN_TRY(Fields fields, Fields::Of(json, "recommendation"));
  FORETOKEN_CHECK_OK(fields.Read("method", r.method));
  FORETOKEN_CHECK_OK(fields.Read("draft_model", r.draft_model));
  FORETOKEN_CHECK_OK(
      fields.ReadInteger("num_speculative_tokens", 0, kMaxDraft, r.num_speculative_tokens));
  FORETOKEN_CHECK_OK(fields.Read("lookahead", r.controller));
  FORETOKEN_CHECK_OK(fields.ReadNumber("speedup", 0, kMostSpeedup, r.speedup));
  FORETOKEN_CHECK_OK(fields.ReadIfThere("self_draft", r.self_draft));
  return fields.End();
}

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

void AddIfAny(Json& json, const char* name, const std::string& text) {
  if (!text.empty()) json[name] = text;
}

Json ModelJson(const ProfileModel& model) {
  return {
      {"file", model.file}, {"bytes", model.bytes}, {"hash", fmt::format("{:016x}", model.hash)}};
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
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Bad("profile", "this is not JSON");
  FORETOKEN_TRY(Fields fields, Fields::Of(json, ""));
  if (!json.contains("foretoken_profile")) return Bad("profile", "this is none");
  Profile profile;
  int version = 0;
  FORETOKEN_CHECK_OK(fields.ReadInteger("foretoken_profile", kVersion, kVersion, version));
  FORETOKEN_TRY(const Json* machine, fields.Take("machine"));
  FORETOKEN_CHECK_OK(ReadMachine(*machine, profile.machine));
  FORETOKEN_TRY(const Json* target, fields.Take("target"));
  FORETOKEN_CHECK_OK(ReadModel(*target, "target", profile.target));
  FORETOKEN_TRY(const Json* passes, fields.TakeList("passes", kMostPasses));
  FORETOKEN_CHECK_OK(ReadPasses(*passes, profile.passes));
  FORETOKEN_TRY(const Json* drafts, fields.TakeList("drafts", kMostDrafts));
  FORETOKEN_CHECK_OK(ReadDrafts(*drafts, profile.drafts));
  FORETOKEN_CHECK_OK(fields.ReadNumber("rest_us", 0, kMostUs, profile.rest_us));
  FORETOKEN_TRY(const Json* recommendation, fields.Take("recommendation"));
  FORETOKEN_CHECK_OK(ReadRecommendation(*recommendation, profile));
  FORETOKEN_CHECK_OK(fields.End());
  FORETOKEN_CHECK_OK(CheckGrid(profile.passes));
  FORETOKEN_CHECK_OK(CheckDrafts(profile.drafts));
  return profile;
}

std::string Profile::ToText() const {
  Json pass_list = Json::array(), draft_list = Json::array();
  for (const ProfilePass& pass : passes)
    pass_list.push_back({{"context", pass.context}, {"rows", pass.rows}, {"us", pass.us}});
  for (const ProfileDraft& draft : drafts) {
    draft_list.push_back({{"method", draft.method},
                          {"us", draft.us},
                          {"model", draft.model.bytes > 0 ? ModelJson(draft.model) : Json()}});
    AddIfAny(draft_list.back(), "self_draft", draft.self_draft);
  }
  Json json = {
      {"foretoken_profile", kVersion},
      {"machine", {{"cpu", machine.cpu}, {"isa", machine.isa}, {"threads", machine.threads}}},
      {"target", ModelJson(target)},
      {"passes", std::move(pass_list)},
      {"drafts", std::move(draft_list)},
      {"rest_us", rest_us},
      {"recommendation",
       {{"method", recommendation.method},
        {"draft_model", recommendation.draft_model},
        {"num_speculative_tokens", recommendation.num_speculative_tokens},
        {"lookahead", recommendation.controller},
        {"speedup", recommendation.speedup}}}};
  AddIfAny(json["recommendation"], "self_draft", recommendation.self_draft);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
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
