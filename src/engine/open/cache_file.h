// SPDX-License-Identifier: Apache-2.0
// engine/open/cache_file.h: the file beside the cache's memory (EngineOptions::cache_file).
#pragma once

#include "engine/open/opened.h"
#include "foretoken/result.h"
#include "kv/block_store.h"
#include "loader/model_part.h"

namespace foretoken::engine {

// REQUIRES: the target is loaded, and outlives the store. Errors: those of kv::BlockFile, and
// kUnsupported (several ranks).
[[nodiscard]] Result<kv::BlockStore> OpenCacheFile(const Opened& opened,
                                                   const loader::ModelPart& target);

}  // namespace foretoken::engine
