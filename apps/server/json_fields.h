// SPDX-License-Identifier: Apache-2.0
// server/json_fields.h: the fields of one JSON object, read by name and checked.
//
// Each reader leaves `out` alone where the field is absent or null. The first thing that is wrong
// is kept and ends all further reading; Finish reports fields that no reader asked for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api_error.h"

namespace foretoken::server {

using Json = nlohmann::json;

class JsonFields {
 public:
  // `object` and `error` must outlive this, names the readers. prefix: of the names in errors,
  // "speculative.".
  JsonFields(const Json& object, std::string prefix, std::optional<ApiError>& error)
      : object_(object), prefix_(std::move(prefix)), error_(error) {}

  bool failed() const { return error_.has_value(); }
  void Bad(std::string_view name, const std::string& why, std::string code = {});
  // Null where the field is absent, null, or no longer of interest.
  const Json* Find(std::string_view name);
  bool Has(std::string_view name) { return Find(name) != nullptr; }

  // `out`: T or optional<T>.
  template <typename T>
  void Integer(std::string_view name, std::int64_t least, std::int64_t most, T& out) {
    if (const auto value = ReadInteger(name, least, most)) out = static_cast<int>(*value);
  }
  template <typename T>
  void Number(std::string_view name, double least, double most, T& out) {
    if (const auto value = ReadNumber(name, least, most)) out = static_cast<float>(*value);
  }
  template <typename T>
  void Switch(std::string_view name, T& out) {
    if (const Json* const value = ReadKind(name, Json::value_t::boolean)) out = value->get<bool>();
  }
  // False: it is absent, or an error.
  bool Text(std::string_view name, std::string& out) {
    const Json* const value = ReadKind(name, Json::value_t::string);
    if (value != nullptr) out = value->get<std::string>();
    return value != nullptr;
  }
  // Null where it is absent; an error where it is something else.
  const Json* Object(std::string_view name) { return ReadKind(name, Json::value_t::object); }

  // ignored: known to clients, without effect here.
  void Finish(std::span<const std::string_view> ignored = {});

  // 4 and 4.0, within 64 bits.
  static std::optional<std::int64_t> WholeNumber(const Json& value);
  // A value in an error, on one line and short.
  static std::string Shown(const Json& value);

 private:
  std::optional<std::int64_t> ReadInteger(std::string_view name, std::int64_t least,
                                          std::int64_t most);
  std::optional<double> ReadNumber(std::string_view name, double least, double most);
  const Json* ReadKind(std::string_view name, Json::value_t kind);

  const Json& object_;
  const std::string prefix_;
  std::optional<ApiError>& error_;
  std::vector<std::string_view> known_;
};

}  // namespace foretoken::server
