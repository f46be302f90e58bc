// SPDX-License-Identifier: Apache-2.0
// model/tile_cache.h: memory for repacked weights, and the files that keep it between starts.
//
// A kept file is a header of one page and then the tiles, byte for byte as kernels read them, so
// that a later start maps it and is done. It is found by the model's path and trusted only if its
// version, its size, the key (a hash of all that decides what the tiles are) and the checksum of
// the tiles are right, and if it belongs to this user; else it is as if it were not there, and is
// replaced.
//
// A new file has no name until it is whole (O_TMPFILE): a full disk, a crash or a kill leaves
// nothing behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/aligned_buffer.h"
#include "base/thread_pool.h"
#include "foretoken/result.h"

namespace foretoken::model {

// Anonymous, or pages of a file. Movable; unmapped on destruction.
class TileMemory {
 public:
  TileMemory() = default;
  explicit TileMemory(std::size_t size_bytes);  // anonymous and zero
  ~TileMemory();
  TileMemory(TileMemory&& other) noexcept;
  TileMemory& operator=(TileMemory&& other) noexcept;

  std::byte* data() noexcept;
  const std::byte* data() const noexcept;
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  friend class TileCache;
  AlignedBytes anonymous_;
  std::byte* mapping_ = nullptr;  // header and tiles
  std::size_t size_bytes_ = 0;    // of the tiles
  int fd_ = -1;                   // while the file has no name yet
};

class TileCache {
 public:
  // Keeps nothing.
  TileCache() = default;
  // Keeps files in `folder`, which is made when it is first needed.
  explicit TileCache(std::string folder) : folder_(std::move(folder)) {}

  // The user's folder for such files: $XDG_CACHE_HOME/foretoken, else $HOME/.cache/foretoken; empty
  // where neither is known.
  static std::string UserFolder();

  // The tiles kept for the model file at `model_path` under this key, read-only; nothing where
  // there are none that can be trusted. Costs one pass over them, on all threads of the pool.
  std::optional<TileMemory> Find(const std::string& model_path, std::uint64_t key,
                                 std::size_t size_bytes, ThreadPool& pool) const;

  // Memory to repack into: pages of a nameless file in the folder, anonymous where that fails (no
  // room, no permission: `why_not` says it) or nothing is kept.
  TileMemory Make(std::size_t size_bytes, std::string* why_not) const;

  // Gives what Make made its name; the memory is read-only from then on. Does nothing for anonymous
  // memory. Errors: kIo; the tiles stay usable.
  [[nodiscard]] Status Keep(TileMemory& tiles, const std::string& model_path, std::uint64_t key,
                            ThreadPool& pool) const;

 private:
  std::string FileFor(const std::string& model_path) const;

  std::string folder_;
};

}  // namespace foretoken::model
