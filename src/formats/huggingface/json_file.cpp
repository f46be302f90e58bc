// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/json_file.h"

#include <fmt/format.h>

#include "base/files/mapped_file.h"

namespace foretoken::formats::huggingface {

Result<Json> ParseObject(std::string_view text, const std::string& place,
                         const ObjectLimits& limits) {
  const auto bad = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}; {}", place, why, kFetchAgain));
  };
  if (text.size() > limits.most_bytes)
    return bad(fmt::format("{} bytes of JSON are more than {}", text.size(), limits.most_bytes));
  auto object = ReadJson(
      text, {.most_depth = limits.most_depth, .distinct = JsonLimits::Distinct::kOutermost});
  using Kind = JsonError::Kind;
  if (!object && object.error().kind == Kind::kDepth)
    return bad(fmt::format("objects are nested deeper than {}", limits.most_depth));
  if (!object && object.error().kind == Kind::kTwice)
    return bad(fmt::format("{} occurs twice", Shown(object.error().name)));
  if (!object) return bad("it is not JSON in UTF-8");
  if (!object->is_object()) return bad("it is not a JSON object");
  return *std::move(object);
}

Result<Json> ReadObject(const std::string& path, const ObjectLimits& limits) {
  auto file = MappedFile::Open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return Json();
  if (!file) return Fail(std::move(file).error());
  const auto bytes = file->bytes();
  FORETOKEN_TRY(
      Json object,
      ParseObject({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path, limits));
  FORETOKEN_CHECK_OK(file->Check());
  return object;
}

const Json* JsonFields::Find(std::string_view name) const {
  const Json* const value = object_.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<std::int64_t>> JsonFields::Int(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->kind() == Json::Kind::kUnsigned) return Bad(name, "it is too large");
  if (!value->is_integer()) return Bad(name, "it is not an integer");
  return value->integer();
}

Result<std::optional<double>> JsonFields::Number(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return Bad(name, "it is not a number");
  return value->number();
}

Result<std::optional<bool>> JsonFields::Bool(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return Bad(name, "it is neither true nor false");
  return value->boolean();
}

Result<std::optional<std::string>> JsonFields::String(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return Bad(name, "it is not a string");
  return value->text();
}

Result<const Json*> JsonFields::Object(std::string_view name) const {
  const Json* value = Find(name);
  if (value != nullptr && !value->is_object()) return Bad(name, "it is not an object");
  return value;
}

Result<const Json*> JsonFields::List(std::string_view name) const {
  const Json* value = Find(name);
  if (value != nullptr && !value->is_array()) return Bad(name, "it is not a list");
  return value;
}

Result<const Json*> JsonFields::NeedObject(std::string_view name) const {
  FORETOKEN_TRY(const Json* value, Object(name));
  if (value == nullptr) return Bad(name, "it is missing");
  return value;
}

tl::unexpected<Error> JsonFields::Bad(std::string_view name, std::string_view why) const {
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("{}: field {}: {}; {}", place_, Shown(name), why, kFetchAgain));
}

tl::unexpected<Error> JsonFields::Unsupported(std::string_view name, std::string_view why,
                                              std::string_view advice) const {
  return Fail(ErrorCode::kUnsupported,
              fmt::format("{}: field {}: {}; {}", place_, Shown(name), why, advice));
}

}  // namespace foretoken::formats::huggingface
