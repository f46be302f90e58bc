// SPDX-License-Identifier: Apache-2.0
// cli/chat/chat_settings.h: the flags of `chat`.
#pragma once

#include "settings/flag_set.h"
#include "settings/generate_flags.h"

namespace foretoken::cli {

// The flags write into `settings`, which must live as long as the FlagSet.
settings::FlagSet ChatFlags(settings::GenerateSettings& settings);

// After Parse. Errors: those of settings::Finish.
[[nodiscard]] Status FinishChat(settings::GenerateSettings& settings);

}  // namespace foretoken::cli
