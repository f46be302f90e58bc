// SPDX-License-Identifier: Apache-2.0
// cli/documents/help.h: what the program prints about itself.
#pragma once

#include <cstddef>
#include <string>

#include "foretoken/result.h"

namespace foretoken::cli {

// The verbs, and two commands to try.
std::string Overview(std::size_t width);

// The error for an unknown verb: the nearest one, and all verbs.
Error NoSuchVerb(const std::string& name);

}  // namespace foretoken::cli
