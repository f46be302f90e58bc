// SPDX-License-Identifier: Apache-2.0
// cli/documents/man_page.h: manual pages in roff (section 1, the macros of man(7)), made from the flags.
#pragma once

#include <string>

#include "cli/verb.h"

namespace foretoken::cli {

// The page foretoken(1), which lists the verbs.
std::string ProgramManPage();
// The page foretoken-VERB(1) with all flags.
std::string VerbManPage(const Verb& verb);

}  // namespace foretoken::cli
