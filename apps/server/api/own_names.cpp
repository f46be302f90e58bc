// SPDX-License-Identifier: Apache-2.0
#include "server/api/own_names.h"

#include <utility>

namespace foretoken::server {
namespace {

// The whole of a field's name, not only its beginning.
bool BeginsWithField(std::string_view text, std::string_view name) {
  return text.starts_with(name) &&
         (text.size() == name.size() ||
          std::string_view(":.[").find(text[name.size()]) != std::string_view::npos);
}

}  // namespace

std::string InOwnNames(std::string text, std::span<const OwnName> names) {
  for (const auto& [name, own] : names)
    if (BeginsWithField(text, name)) return text.replace(0, name.size(), own);
  return text;
}

ApiError InOwnNames(ApiError error, std::span<const OwnName> names) {
  if (error.code == "unknown_field") return error;  // a name of the client's
  error.message = InOwnNames(std::move(error.message), names);
  error.param = InOwnNames(std::move(error.param), names);
  return error;
}

}  // namespace foretoken::server
