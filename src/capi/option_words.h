// SPDX-License-Identifier: Apache-2.0
// capi/option_words.h: errors in the words of foretoken.h. The library names options by the
// members of C++ that hold them ("EngineOptions::context_size", "dry.base"); a user of the interface
// knows keys.
#pragma once

#include "foretoken/result.h"

namespace foretoken::capi {

// The error with the keys of foretoken_options_set in place of members, in its message and as its
// field.
Error InKeys(Error why);

}  // namespace foretoken::capi
