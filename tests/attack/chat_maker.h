// SPDX-License-Identifier: Apache-2.0
// attack/chat_maker.h: hostile chat templates, and hostile conversations for them.
#pragma once

#include <cstddef>
#include <string>

#include "attack/random.h"

namespace foretoken::attack {

// A program of the template language, made from its statements and expressions: most are right and
// do something, some want far more steps, memory or depth than there is, and some are damaged.
std::string HostileTemplate(Random& random);

// A JSON object of variables, tools or members of a message: with many names, names that share a
// hash of a well-known function, deep, long, or damaged.
std::string HostileObject(Random& random);

// A text with what templates and tokenizers look for.
std::string HostileText(Random& random, std::size_t most_bytes);

}  // namespace foretoken::attack
