// SPDX-License-Identifier: Apache-2.0
// engine/slots.h: the folder of slots' files (EngineOptions::slot_folder).
#pragma once

#include <string>

#include "foretoken/result.h"

namespace foretoken::engine {

// Errors: kInvalidArgument (no folder, or one that others may write to).
[[nodiscard]] Status CheckSlotFolder(const std::string& folder);
// The path of a plain name in the folder. Error: kInvalidArgument.
[[nodiscard]] Result<std::string> SlotPath(const std::string& folder, const std::string& name);
// Whether the folder's files, but for this one, leave so many bytes of `most`. Errors: kTooLarge, kIo.
[[nodiscard]] Status CheckSlotRoom(const std::string& folder, const std::string& name,
                                   std::int64_t bytes, std::int64_t most);

}  // namespace foretoken::engine
