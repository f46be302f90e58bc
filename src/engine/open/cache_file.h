// SPDX-License-Identifier: Apache-2.0
// engine/open/cache_file.h: files beside the cache's memory: EngineOptions::cache_file, and those of slots.
#pragma once

#include "engine/open/opened.h"
#include "foretoken/result.h"
#include "kv/block_store.h"
#include "loader/model_part.h"

namespace foretoken::engine {

// What blocks are like in files, and all that they depend on. Error: kUnsupported (several ranks).
[[nodiscard]] Result<kv::BlockFile::Shape> FileShape(const Opened& opened,
                                                     const loader::ModelPart& target);
// The file beside the target's memory.
kv::BlockStore StoreOver(kv::BlockFile file, const Opened& opened);
// REQUIRES: the target is loaded, and outlives the store. Errors: those of kv::BlockFile, and
// kUnsupported (several ranks).
[[nodiscard]] Result<kv::BlockStore> OpenCacheFile(const Opened& opened,
                                                   const loader::ModelPart& target);

}  // namespace foretoken::engine
