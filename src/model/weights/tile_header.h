// SPDX-License-Identifier: Apache-2.0
// model/weights/tile_header.h: the first page of a file of kept tiles, and the file's name.
//
//   0   TileHeader      64   path of the model's file, with a zero behind it      zeros
//
// The path serves only to find files whose model is gone. It is believed only if the file's name
// has its hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace foretoken::model {

constexpr std::size_t kTileHeaderBytes = 4096;
using TilePage = std::span<std::byte, kTileHeaderBytes>;
using ConstTilePage = std::span<const std::byte, kTileHeaderBytes>;

struct TileHeader {
  std::array<char, 8> magic;
  std::uint32_t version, header_bytes;
  std::uint64_t key, tile_bytes, checksum;
  std::uint64_t source_hash;  // in an unfinished file: how many of the bytes are there
  std::uint64_t header_hash;  // hash of all fields before it

  bool operator==(const TileHeader&) const = default;
};

TileHeader TileHeaderOf(std::uint64_t key, std::size_t size, std::uint64_t checksum,
                        std::uint64_t source_hash);
// The header of a file whose making was stopped: it has the first `made` of `size` bytes, and the
// checksum is that of these.
TileHeader UnfinishedHeaderOf(std::uint64_t key, std::size_t size, std::uint64_t checksum,
                              std::size_t made);
// Whether a page begins as those of foretoken's tiles do, whole or unfinished, of this version or another.
bool IsTileHeader(ConstTilePage page) noexcept;

// `part`: "", or that of one of several ranks: "-2of4". Two models may have the same file name, so
// the name contains a hash of the path.
std::string TileFileName(const std::string& model_path, std::string_view part);
// The hash of the model's path in the name of a file of tiles; nothing if it is another name.
std::optional<std::uint64_t> PathHashIn(std::string_view file_name);

// Puts the path behind the header, if it is absolute and has room there.
void WriteModelPath(TilePage page, std::string_view model_path);
// The path behind the header; "" if there is none, or one whose hash is not this.
std::string ReadModelPath(ConstTilePage page, std::uint64_t path_hash);

}  // namespace foretoken::model
