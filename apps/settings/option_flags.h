// SPDX-License-Identifier: Apache-2.0
// settings/option_flags.h: messages of the library in the words of the command line. The library names
// options as programs know them ("EngineOptions::context_size"); people who type flags know these.
#pragma once

#include <string>

#include "settings/flag_set.h"

namespace foretoken::settings {

// The message with flags in place of the options that they set (Flag::option).
std::string InFlags(std::string message, const FlagSet& flags);
// With the flags that all verbs which run models have.
std::string InFlags(std::string message);

}  // namespace foretoken::settings
