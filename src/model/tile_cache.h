// SPDX-License-Identifier: Apache-2.0
// model/tile_cache.h: memory for repacked weights, and the files that keep it between starts.
//
// A kept file is a header of one page and then the tiles, byte for byte as kernels read them, so
// that a later start maps it and is done. It is found by the model's path and trusted only if its
// version, its size, the key (a hash of all that decides what the tiles are) and the checksum of
// the tiles are right, and if this user alone can write to it and to its folder; else it is as if
// it were not there, and is replaced.
//
// A new file has no name until it is whole (base/files/output_file.h): a full disk, a crash or a kill
// leaves nothing behind.
//
// A kept file stays mapped while the model is used, and so it can change under it. Check says so;
// a file that was cut short reads as zeros (base/files/guarded_range.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/aligned_buffer.h"
#include "base/files/guarded_range.h"
#include "base/files/input_file.h"
#include "base/files/output_file.h"
#include "base/machine/thread_pool.h"
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
  // Of the model's data that the tiles were made of; 0 where they come from no file.
  std::uint64_t source_hash() const noexcept { return source_hash_; }
  const std::string& path() const noexcept { return path_; }  // of the kept file; "": none

  // Whether the tiles are still as they were. Where something happened to the file that need not
  // have changed them (another name, another mode), they are read again, on all threads; otherwise
  // a few hundred nanoseconds. Error: kIo, with the file's name; then all that was computed since
  // the last Check may be wrong.
  [[nodiscard]] Status Check(ThreadPool& pool);
  // The same by what costs nothing. Any thread.
  [[nodiscard]] Status QuickCheck() const;
  // Whether a page could not be written or read: the memory is of no use.
  bool faulted() const noexcept { return guard_.faulted(); }

 private:
  friend class TileCache;
  // Maps header and tiles; false where the system refuses.
  bool Map(int descriptor, std::size_t size_bytes, bool writable);
  FileIdentity Identity() const noexcept;  // of the file now

  AlignedBytes anonymous_;
  std::byte* mapping_ = nullptr;  // header and tiles
  std::size_t size_bytes_ = 0;    // of the tiles
  GuardedRange guard_;
  std::unique_ptr<OutputFile> made_;  // the file, where Make made it
  int fd_ = -1;                       // the file, where Find found it
  bool kept_ = false;                 // others can reach the file, so it can change
  FileIdentity identity_;
  std::uint64_t checksum_ = 0, source_hash_ = 0;
  std::string path_;
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
  // room, no permission, a folder that others can write to: `why_not` says it) or nothing is kept.
  TileMemory Make(const std::string& model_path, std::size_t size_bytes,
                  std::string* why_not) const;

  // Gives what Make made its name; the memory is read-only from then on. Does nothing for anonymous
  // memory. Errors: kIo; the tiles stay usable.
  [[nodiscard]] Status Keep(TileMemory& tiles, std::uint64_t key, std::uint64_t source_hash,
                            ThreadPool& pool) const;

  // Takes the kept file away that these tiles come from, if it still has its name.
  static void Drop(const TileMemory& tiles) noexcept;

 private:
  std::string FileFor(const std::string& model_path) const;

  std::string folder_;
};

// A hash of bytes: that of the hashes of pieces of this size. On all threads; their number does not
// matter.
inline constexpr std::size_t kHashPieceBytes = std::size_t{4} << 20;
std::uint64_t PieceHash(std::span<const std::byte> bytes, ThreadPool& pool);

}  // namespace foretoken::model
