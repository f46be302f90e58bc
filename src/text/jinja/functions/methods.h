// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/methods.h: the methods of texts, lists, dictionaries and loops.
#pragma once

#include "text/jinja/functions/arguments.h"
#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

// Whether Python's type has a method of this name, even one that is not supported here.
bool HasMethod(const Value& value, std::string_view name);
// Errors: those of the method, kUnsupported for one that only Python has, one that would change the
// value.
[[nodiscard]] Result<Value> CallMethod(Environment& environment, const Value& self,
                                       std::string_view name, const Arguments& arguments);

// `text` with the first `most` occurrences of `from` replaced; all, if that is negative.
[[nodiscard]] Result<Characters> Replaced(Environment& environment, CharactersView text,
                                          CharactersView from, CharactersView to,
                                          std::int64_t most);

// For methods.cpp: the methods of texts.
[[nodiscard]] Result<Value> CallTextMethod(Environment& environment, const TextObject& self,
                                           std::string_view name, const Arguments& arguments);

}  // namespace foretoken::text::jinja
