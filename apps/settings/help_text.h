// SPDX-License-Identifier: Apache-2.0
// settings/help_text.h: the help of a verb as text, made from its flags.
#pragma once

#include <cstddef>
#include <string>

#include "settings/flag_set.h"

namespace foretoken::settings {

struct HelpForm {
  std::size_t width = 80;  // columns of the terminal; lines fit them where their words do
  bool all = false;        // every flag, not just the essential ones
};

std::string HelpText(const FlagSet& flags, const HelpForm& form);

// The text in lines of at most `width` columns; all but the first are indented. `used` columns of
// the first line are taken. Ends with a line break.
std::string Wrapped(const std::string& text, std::size_t width, std::size_t indent,
                    std::size_t used = 0);

}  // namespace foretoken::settings
