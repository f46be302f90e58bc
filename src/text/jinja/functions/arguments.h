// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/arguments.h: the arguments of a call.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/values/name_table.h"

namespace foretoken::text::jinja {

struct Arguments {
  Values positional;
  NameTable named;
};

// The arguments of one function, by the order of its parameters.
class Bound {
 public:
  // `function` and the parameters are for errors. Errors: too many arguments, a name that is no
  // parameter, a parameter that is given twice, fewer than `n_needed`.
  [[nodiscard]] static Result<Bound> Make(std::string_view function, const Arguments& arguments,
                                          std::initializer_list<std::string_view> parameters,
                                          std::size_t n_needed = 0);

  bool Has(std::size_t i) const { return values_[i].has_value(); }
  // The argument; undefined if it is not given.
  const Value& operator[](std::size_t i) const;
  bool IsTrueAt(std::size_t i, bool otherwise = false) const;
  // Errors: the argument is given, and it is of another type. None counts as not given.
  [[nodiscard]] Result<std::int64_t> Integer(std::size_t i, std::int64_t otherwise) const;
  [[nodiscard]] Result<const Characters*> Text(std::size_t i, const Characters* otherwise) const;

 private:
  std::string function_;
  List<std::optional<Value>> values_;
};

}  // namespace foretoken::text::jinja
