// SPDX-License-Identifier: Apache-2.0
#include "model/weights/tile_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/hash.h"

namespace foretoken::model {
namespace {

// Raise this whenever tensor/block_layout.h changes the layout of a tile, or the header changes.
constexpr std::uint32_t kVersion = 3;
constexpr std::array<char, 8> kMagic = {'F', 'T', 'K', 'T', 'I', 'L', 'E', 'S'},
                              kUnfinishedMagic = {'F', 'T', 'K', 'P', 'A', 'R', 'T', 'S'};
constexpr std::size_t kPathBegin = 64;
constexpr std::string_view kExtension = ".tiles", kDigits = "0123456789";
static_assert(sizeof(TileHeader) <= kPathBegin);

bool AreDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

// Whether this is "2of4", which the names of the files of ranks end with.
bool IsPart(std::string_view text) {
  const std::size_t of = text.find("of");
  return of != std::string_view::npos && AreDigits(text.substr(0, of)) &&
         AreDigits(text.substr(of + 2));
}

TileHeader Hashed(TileHeader header) {
  header.header_hash =
      Hash(std::as_bytes(std::span(&header, 1)).first(offsetof(TileHeader, header_hash)));
  return header;
}

}  // namespace

TileHeader TileHeaderOf(std::uint64_t key, std::size_t size, std::uint64_t checksum,
                        std::uint64_t source_hash) {
  return Hashed({kMagic, kVersion, kTileHeaderBytes, key, size, checksum, source_hash, 0});
}

TileHeader UnfinishedHeaderOf(std::uint64_t key, std::size_t size, std::uint64_t checksum,
                              std::size_t made) {
  return Hashed({kUnfinishedMagic, kVersion, kTileHeaderBytes, key, size, checksum, made, 0});
}

bool IsTileHeader(ConstTilePage page) noexcept {
  return std::memcmp(page.data(), kMagic.data(), kMagic.size()) == 0 ||
         std::memcmp(page.data(), kUnfinishedMagic.data(), kUnfinishedMagic.size()) == 0;
}

std::string TileFileName(const std::string& model_path, std::string_view part) {
  return fmt::format("{}-{:016x}{}{}", std::filesystem::path(model_path).stem().string(),
                     HashOf(model_path), part, kExtension);
}

std::optional<std::uint64_t> PathHashIn(std::string_view file_name) {
  if (!file_name.ends_with(kExtension)) return std::nullopt;
  file_name.remove_suffix(kExtension.size());
  const auto take_last = [&] {
    const std::size_t dash = file_name.rfind('-');
    if (dash == std::string_view::npos) return std::string_view();
    const std::string_view last = file_name.substr(dash + 1);
    file_name = file_name.substr(0, dash);
    return last;
  };
  std::string_view digits = take_last();
  if (IsPart(digits)) digits = take_last();
  if (digits.starts_with("copy.")) digits = take_last();
  std::uint64_t hash = 0;
  const char* const end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, hash, 16);
  if (digits.size() != 16 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return hash;
}

void WriteModelPath(TilePage page, std::string_view model_path) {
  const auto room = page.subspan<kPathBegin>();
  if (!model_path.starts_with('/') || model_path.size() >= room.size()) return;
  std::memcpy(room.data(), model_path.data(), model_path.size());
}

std::string ReadModelPath(ConstTilePage page, std::uint64_t path_hash) {
  const auto room = page.subspan<kPathBegin>();
  const auto end = std::find(room.begin(), room.end(), std::byte{0});
  if (end == room.end()) return "";
  std::string path(reinterpret_cast<const char*>(room.data()),
                   static_cast<std::size_t>(end - room.begin()));
  return path.starts_with('/') && HashOf(path) == path_hash ? path : "";
}

}  // namespace foretoken::model
