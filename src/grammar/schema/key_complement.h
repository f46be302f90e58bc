// SPDX-License-Identifier: Apache-2.0
// grammar/schema/key_complement.h: all keys of a JSON object except some.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "grammar/pattern/gbnf_writer.h"

namespace foretoken::grammar {

// With quotes, and without escapes, so that no key can be written in two ways. new_rule returns a
// rule name of the writer.
GbnfWriter::Part KeyComplement(std::span<const std::string> keys,
                               const std::function<int()>& new_rule, GbnfWriter& writer);

}  // namespace foretoken::grammar
