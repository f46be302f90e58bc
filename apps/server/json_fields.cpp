// SPDX-License-Identifier: Apache-2.0
#include "server/json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "foretoken/nearest_name.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kShownBytes = 40, kShownNameBytes = 64;

const char* Wanted(Json::value_t kind) {
  return kind == Json::value_t::boolean  ? "is neither true nor false; give one of them"
         : kind == Json::value_t::string ? "is not a text; give one in quotes"
                                         : "is not an object; give one";
}

}  // namespace

void JsonFields::Bad(std::string_view name, const std::string& why, std::string code) {
  if (!failed()) error_ = BadField(prefix_ + std::string(name), why, std::move(code));
}

const Json* JsonFields::Find(std::string_view name) {
  known_.push_back(name);
  if (failed()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> JsonFields::ReadInteger(std::string_view name, std::int64_t least,
                                                    std::int64_t most) {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto n = WholeNumber(*value);
  if (!n)
    Bad(name, Shown(*value) + " is not a whole number; give one");
  else if (*n < least || *n > most)
    Bad(name, fmt::format("{} is not in [{}, {}]; give a value in that range", *n, least, most));
  return failed() ? std::nullopt : n;
}

std::optional<double> JsonFields::ReadNumber(std::string_view name, double least, double most) {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  const double x = value->is_number() ? value->get<double>() : 0;
  if (!value->is_number())
    Bad(name, Shown(*value) + " is not a number; give one");
  else if (!(x >= least && x <= most))
    Bad(name, fmt::format("{} is not in [{}, {}]; give a value in that range", Shown(*value), least,
                          most));
  return failed() ? std::nullopt : std::optional(x);
}

const Json* JsonFields::ReadKind(std::string_view name, Json::value_t kind) {
  const Json* const value = Find(name);
  if (value == nullptr || value->type() == kind) return value;
  Bad(name, fmt::format("{} {}", Shown(*value), Wanted(kind)));
  return nullptr;
}

void JsonFields::Finish(std::span<const std::string_view> ignored) {
  if (failed()) return;
  known_.insert(known_.end(), ignored.begin(), ignored.end());
  for (const auto& item : object_.items()) {
    const std::string& name = item.key();
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string_view nearest =
        name.size() <= kShownNameBytes ? NearestName(name, known_) : std::string_view();
    // A name out of a body, in a line of text: plain ASCII, and not endless.
    const std::string shown = Shown(Json(name));
    return Bad(shown.substr(1, shown.size() - 2),
               nearest.empty() ? "no such field; leave it out"
                               : fmt::format("no such field; the nearest one is {}", nearest),
               "unknown_field");
  }
}

std::optional<std::int64_t> JsonFields::WholeNumber(const Json& value) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost) return std::nullopt;
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double x = value.get<double>();
  if (!(std::fabs(x) < 9e15) || x != std::floor(x)) return std::nullopt;
  return static_cast<std::int64_t>(x);
}

std::string JsonFields::Shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes - 3) + "...";
  return text;
}

}  // namespace foretoken::server
