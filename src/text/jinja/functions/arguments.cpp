// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/functions/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

Result<Bound> Bound::Make(std::string_view function, const Arguments& arguments,
                          std::initializer_list<std::string_view> parameters,
                          std::size_t n_needed) {
  Bound bound;
  bound.function_ = function;
  bound.values_.resize(parameters.size());
  if (arguments.positional.size() > parameters.size())
    return InvalidArgument(fmt::format("{} takes at most {} arguments, and {} are given", function,
                                       parameters.size(), arguments.positional.size()));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i)
    bound.values_[i] = arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto* const found =
        std::find(parameters.begin(), parameters.end(), std::string_view(name));
    if (found == parameters.end())
      return InvalidArgument(fmt::format("{} has no parameter '{}'", function, Shown(name)));
    auto& place = bound.values_[static_cast<std::size_t>(found - parameters.begin())];
    if (place) return InvalidArgument(fmt::format("{} is given '{}' twice", function, name));
    place = value;
  }
  for (std::size_t i = 0; i < n_needed; ++i)
    if (!bound.values_[i])
      return InvalidArgument(
          fmt::format("{} needs the argument '{}'", function, *(parameters.begin() + i)));
  return bound;
}

const Value& Bound::operator[](std::size_t i) const {
  static const Value undefined;
  return values_[i] ? *values_[i] : undefined;
}

bool Bound::IsTrueAt(std::size_t i, bool otherwise) const {
  return values_[i] ? IsTrue(*values_[i]) : otherwise;
}

Result<std::int64_t> Bound::Integer(std::size_t i, std::int64_t otherwise) const {
  if (!values_[i] || values_[i]->IsNone()) return otherwise;
  if (values_[i]->integer()) return *values_[i]->integer();
  return InvalidArgument(fmt::format("{}: '{}' object cannot be interpreted as an integer",
                                     function_, TypeName(*values_[i])));
}

Result<const Characters*> Bound::Text(std::size_t i, const Characters* otherwise) const {
  if (!values_[i] || values_[i]->IsNone()) return otherwise;
  if (values_[i]->IsText()) return &values_[i]->text();
  return InvalidArgument(
      fmt::format("{}: argument must be str, not {}", function_, TypeName(*values_[i])));
}

}  // namespace foretoken::text::jinja
