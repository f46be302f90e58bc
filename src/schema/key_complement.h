// SPDX-License-Identifier: Apache-2.0
// schema/key_complement.h: keys of a JSON object other than some.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "schema/gbnf_writer.h"

namespace foretoken::schema {

// With its quotes, and without escapes, so that none is written in two ways. new_rule names a rule
// of the writer's.
GbnfWriter::Part KeyComplement(std::span<const std::string> keys,
                               const std::function<int()>& new_rule, GbnfWriter& writer);

}  // namespace foretoken::schema
