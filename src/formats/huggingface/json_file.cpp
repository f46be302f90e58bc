// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/json_file.h"

#include <fmt/format.h>

#include <set>

#include "base/files/mapped_file.h"

namespace foretoken::formats::huggingface {

namespace {

// What can be seen of a text before it is read as JSON.
struct Outline {
  int depth = 0;              // how deep objects and lists lie in each other
  std::size_t n_members = 0;  // of the outermost object, a name given twice counted twice
};

Outline OutlineOf(std::string_view text) {
  Outline outline;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\')
      ++i;
    else if (c == '"')
      in_string = !in_string;
    else if (!in_string && (c == '{' || c == '['))
      outline.depth = std::max(outline.depth, ++depth);
    else if (!in_string && (c == '}' || c == ']'))
      --depth;
    else if (!in_string && c == ':' && depth == 1)
      ++outline.n_members;
  }
  return outline;
}

// Finds the first name that the outermost object has twice.
class TwiceFinder final : public nlohmann::json_sax<Json> {
 public:
  const std::string& found() const { return found_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(std::int64_t) override { return true; }
  bool number_unsigned(std::uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(Json::binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(std::string& name) override {
    if (depth_ > 1 || names_.insert(name).second) return true;
    found_ = name;
    return false;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  int depth_ = 0;
  std::set<std::string> names_;
  std::string found_;
};

}  // namespace

Result<Json> ParseObject(std::string_view text, const std::string& place,
                         const JsonLimits& limits) {
  const auto bad = [&](std::string_view why) {
    return Fail(ErrorCode::kInvalidFile, fmt::format("{}: {}; {}", place, why, kFetchAgain));
  };
  if (text.size() > limits.most_bytes)
    return bad(fmt::format("{} bytes of JSON are more than {}", text.size(), limits.most_bytes));
  const Outline outline = OutlineOf(text);
  if (outline.depth > limits.most_depth)
    return bad(fmt::format("objects are nested deeper than {}", limits.most_depth));
  // Without a callback: with one, the library looks through all members behind each object in them.
  Json object = Json::parse(text, nullptr, false);
  if (object.is_discarded()) return bad("it is not JSON in UTF-8");
  if (!object.is_object()) return bad("it is not a JSON object");
  if (!limits.distinct_names || object.size() == outline.n_members) return object;
  TwiceFinder twice;
  Json::sax_parse(text, &twice);
  return bad(fmt::format("{} occurs twice", Shown(twice.found())));
}

Result<Json> ReadObject(const std::string& path, const JsonLimits& limits) {
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
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

Result<std::optional<std::int64_t>> JsonFields::Int(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number_unsigned() &&
      value->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    return Bad(name, "it is too large");
  if (!value->is_number_integer()) return Bad(name, "it is not an integer");
  return value->get<std::int64_t>();
}

Result<std::optional<double>> JsonFields::Number(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) return Bad(name, "it is not a number");
  return value->get<double>();
}

Result<std::optional<bool>> JsonFields::Bool(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) return Bad(name, "it is neither true nor false");
  return value->get<bool>();
}

Result<std::optional<std::string>> JsonFields::String(std::string_view name) const {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return Bad(name, "it is not a string");
  return value->get<std::string>();
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
