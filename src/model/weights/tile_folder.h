// SPDX-License-Identifier: Apache-2.0
// model/weights/tile_folder.h: the bound on what files of kept tiles take in a folder.
//
// A file is deleted only if it is one of foretoken's: a regular file of this user with the name and
// the first bytes of such files. A process locks the file that it uses (flock), and a locked file
// stays. Where the file system has no locks a file in use can lose its name, which harms nobody:
// its process keeps it, and the next start repacks.
#pragma once

#include <cstdint>
#include <string>

namespace foretoken::model {

// The lock of a file that is in use. It ends by UnlockTiles, or some time after the descriptor is
// closed and the file unmapped: at once on most file systems, not on all.
void LockTiles(int descriptor) noexcept;
void UnlockTiles(int descriptor) noexcept;

// A tenth of the folder's disk, and at least 32 GB.
std::uint64_t DefaultTileLimit(const std::string& folder) noexcept;

// Makes room for a new file: deletes those that were not used for the longest time until, with
// `more_bytes`, the rest takes no more than `limit_bytes`. Files whose model is gone go first; those
// that nobody used for a week go in any case, and no sooner, because a disk may only be unmounted.
// The file `replaced`, a name in the folder, stays, and does not count. What cannot be deleted stays
// too: the bound is not an error.
void BoundTiles(const std::string& folder, std::uint64_t limit_bytes, std::uint64_t more_bytes,
                const std::string& replaced);

}  // namespace foretoken::model
