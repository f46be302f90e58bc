// SPDX-License-Identifier: Apache-2.0
// settings/llama_flags.h: flags that users of llama.cpp's programs may type here.
#pragma once

#include "settings/flag_set.h"

namespace foretoken::settings {

// For the verbs that decode texts. Flags that only say how llama.cpp computes are accepted without
// effect; those that would change the text are refused, with the flag to use instead.
void AddLlamaFlags(FlagSet& flags);

}  // namespace foretoken::settings
