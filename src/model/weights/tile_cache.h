// SPDX-License-Identifier: Apache-2.0
// model/weights/tile_cache.h: memory for repacked weights, and the files that keep them between starts.
//
// A kept file is a header of one page and then the tiles, byte for byte as kernels read them, so a
// later start only maps it. It is found by the model's path. It is trusted only if its version, its
// size, its key (a hash of all that decides what the tiles are) and the checksum of the tiles are
// right, and if only this user can write to it and to its folder. Otherwise it is ignored and
// replaced.
//
// A new file has no name until it is complete (base/files/output_file.h), so a full disk, a crash
// or a kill leaves nothing behind. Only KeepUnfinished leaves a part of one, for tiles that took long.
//
// Before a new file is made, those that were not used for the longest time are deleted until all
// together are below a limit (tile_folder.h).
//
// A kept file stays mapped while the model is used, and it can change meanwhile. Check notices
// that. A file that was cut short reads as zeros (base/files/guarded_range.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/aligned_buffer.h"
#include "base/files/guarded_range.h"
#include "base/files/input_file.h"
#include "base/files/output_file.h"
#include "base/machine/thread_pool.h"
#include "foretoken/result.h"
#include "model/weights/piece_hash.h"

namespace foretoken::model {

// Memory for tiles: anonymous, or pages of a file. It can be moved, and is unmapped on destruction.
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
  // A hash of the model's data that the tiles were made of, and 0 if they come from no file.
  std::uint64_t source_hash() const noexcept { return source_hash_; }
  const std::string& path() const noexcept { return path_; }  // the kept file, or ""

  // Checks that the tiles have not changed. It takes a few hundred nanoseconds, unless something
  // happened to the file that may or may not have changed them (another name, another mode): then
  // they are read again, on all threads. Error: kIo with the file's name. Everything computed since
  // the last Check may then be wrong.
  [[nodiscard]] Status Check(ThreadPool& pool);
  // Checks as far as it costs nothing. Any thread may call it.
  [[nodiscard]] Status QuickCheck() const;
  // For tiles that Make gave room for. The first `n` bytes are final: where a file keeps them, they
  // are hashed now, while they are still in the CPU's caches.
  void Finish(std::size_t n, ThreadPool& pool);
  // For weights that do not fit memory. Starts to write the first `n` bytes to their file, and waits for
  // those of the call before, whose pages then leave this process's memory. They return from the
  // file when they are read.
  void WriteBack(std::size_t n);
  bool in_file() const noexcept { return mapping_ != nullptr; }
  // Bytes a second that the disk gives: reads a few pieces of the file, at most 32 MiB, after their pages
  // have left memory. 0 if the tiles are in no file or too few.
  double ReadSpeed() const;
  // Whether a page could not be written or read. Then the memory is useless.
  bool faulted() const noexcept { return guard_.faulted(); }

 private:
  friend class TileCache;
  // Maps header and tiles. Returns false if the system refuses.
  bool Map(int descriptor, std::size_t size_bytes, bool writable);
  void Unmap(std::size_t begin, std::size_t end) const noexcept;  // until they are read again
  int descriptor() const noexcept;         // of the file; -1 if there is none
  FileIdentity Identity() const noexcept;  // the file as it is now

  AlignedBytes anonymous_;
  std::byte* mapping_ = nullptr;  // header and tiles
  std::size_t size_bytes_ = 0;    // size of the tiles
  GuardedRange guard_;
  std::unique_ptr<OutputFile> made_;  // the file, if Make made it
  int fd_ = -1;                       // the file, if Find found it
  bool kept_ = false;                 // whether others can open the file, so that it can change
  FileIdentity identity_;
  std::uint64_t checksum_ = 0, source_hash_ = 0;
  PieceHasher hasher_;                         // of tiles that are being made
  std::size_t write_begun_ = 0, written_ = 0;  // WriteBack's
  std::string path_;
};

class TileCache {
 public:
  // A cache that keeps nothing.
  TileCache() = default;
  // A cache that keeps files in `folder`, which is created when it is first needed. They take at most
  // `limit_bytes` together; 0: DefaultTileLimit (tile_folder.h). One file may be larger.
  explicit TileCache(std::string folder, std::uint64_t limit_bytes = 0)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes) {}

  // This folder, for the part that one of several ranks has of each model. Its files have names of
  // their own, so that ranks may share a folder.
  TileCache ForRank(int rank, int n_ranks) const;

  // This folder, for a copy of each model with fewer bits. name: of its types (copy_types.h).
  TileCache ForCopy(std::string_view name) const;

  // The tiles kept for the model file at `model_path` under this key, read-only. Empty if there are
  // none that can be trusted, or if on_progress stopped it. Costs one pass over them, on all threads
  // of the pool. on_progress gets the number of bytes that were read; false stops.
  std::optional<TileMemory> Find(const std::string& model_path, std::uint64_t key,
                                 std::size_t size_bytes, ThreadPool& pool,
                                 const std::function<bool(std::size_t)>& on_progress = {}) const;

  // Memory to repack into: pages of a file in the folder that has no name yet. It is anonymous if
  // nothing is kept, or if there can be no such file (no room, no permission, a folder that others
  // can write to: `why_not` says which).
  TileMemory Make(const std::string& model_path, std::size_t size_bytes,
                  std::string* why_not) const;

  // Gives the file that Make made its name. From then on the memory is read-only. Does nothing for
  // anonymous memory. Errors: kIo; the tiles stay usable.
  [[nodiscard]] Status Keep(TileMemory& tiles, std::uint64_t key, std::uint64_t source_hash,
                            ThreadPool& pool) const;

  // For tiles that Make gave room for, and whose making is stopped. What is final (Finish) becomes a
  // file of its own, if there is none with as much. The tiles cannot be used any more.
  void KeepUnfinished(TileMemory& tiles, std::uint64_t key) const;
  // For new tiles that Make gave room for: takes over what KeepUnfinished kept under this key, if it
  // can be trusted. Returns how many of the first bytes are final.
  std::size_t TakeUnfinished(TileMemory& tiles, std::uint64_t key, ThreadPool& pool) const;

  // Deletes the kept file that these tiles come from, if it still has its name.
  static void Drop(const TileMemory& tiles) noexcept;

 private:
  std::string FileFor(const std::string& model_path) const;

  std::string folder_;
  std::uint64_t limit_bytes_ = 0;
  std::string part_;  // of a rank or a copy, in the names of files; or ""
};

}  // namespace foretoken::model
