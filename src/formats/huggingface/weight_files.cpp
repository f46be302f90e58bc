// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/weight_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "formats/huggingface/json_file.h"

namespace foretoken::formats::huggingface {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWhole = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

tl::unexpected<Error> NoWeights(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (IsThere(fmt::format("{}/{}", folder, name)))
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: its weights are in PyTorch's format ({}); fetch the model in "
                              "safetensors, or convert it to GGUF",
                              folder, name));
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.path().extension() == ".gguf")
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: this is a folder without {}; name a file in it, such as {}",
                              folder, kWhole, entry.path().string()));
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("{}: this folder has neither {} nor {}; name a GGUF file, or a folder as "
                          "it is downloaded from Hugging Face",
                          folder, kWhole, kIndex));
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

}  // namespace

Result<WeightFiles> FindWeightFiles(const std::string& folder) {
  const std::string whole = fmt::format("{}/{}", folder, kWhole);
  if (IsThere(whole)) return WeightFiles{.paths = {whole}, .path_of = {}};
  const std::string index = fmt::format("{}/{}", folder, kIndex);
  FORETOKEN_TRY(const Json object, ReadObject(index));
  if (object.is_null()) return NoWeights(folder);
  const JsonFields fields(object, index);
  FORETOKEN_TRY(const Json* map, fields.NeedObject("weight_map"));
  WeightFiles files;
  std::set<std::string> names;
  for (const auto& [tensor, value] : map->members()) {
    if (!value.is_string() || !IsPlainName(value.text()))
      return fields.Bad("weight_map",
                        fmt::format("the file of {} is not a file of this folder", Shown(tensor)));
    names.insert(value.text());
    files.path_of[tensor] = fmt::format("{}/{}", folder, value.text());
  }
  if (names.empty()) return fields.Bad("weight_map", "it names no file");
  for (const std::string& name : names) {
    files.paths.push_back(fmt::format("{}/{}", folder, name));
    if (!IsThere(files.paths.back()))
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: missing, though {} names it; fetch it into this folder",
                              files.paths.back(), kIndex));
  }
  return files;
}

}  // namespace foretoken::formats::huggingface
