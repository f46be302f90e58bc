// SPDX-License-Identifier: Apache-2.0
#include "formats/mapped_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/hash.h"

namespace foretoken::formats {

namespace {

// Samples of four places at even distances, including the first and the last bytes.
void AddSamples(std::span<const std::byte> data, std::vector<std::uint64_t>& hashes) {
  constexpr std::size_t kSamples = 4, kBytes = 4096;
  if (data.size() <= kSamples * kBytes) return hashes.push_back(Hash(data));
  for (std::size_t i = 0; i < kSamples; ++i)
    hashes.push_back(Hash(data.subspan((data.size() - kBytes) / (kSamples - 1) * i, kBytes)));
}

bool Holds(const MappedFile& file, const std::byte* at) {
  const auto bytes = file.bytes();
  return !std::less<>{}(at, bytes.data()) && std::less<>{}(at, bytes.data() + bytes.size());
}

}  // namespace

const std::byte* TensorView::Row(std::int64_t row) const noexcept {
  const std::size_t size = row_bytes();
  if (pieces.empty()) return data.data() + static_cast<std::size_t>(row) * size;
  if (head_rows != 0) {
    const std::int64_t in_head = row % head_rows;
    row += in_head / 2 + in_head % 2 * (head_rows / 2) - in_head;
  }
  const std::int64_t each = n_rows() / static_cast<std::int64_t>(pieces.size());
  return pieces[static_cast<std::size_t>(row / each)].data() +
         static_cast<std::size_t>(row % each) * size;
}

Status MappedCheckpoint::Index() {
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::stable_sort(by_name_.begin(), by_name_.end(), [&](std::size_t a, std::size_t b) {
    return tensors_[a].name < tensors_[b].name;
  });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const TensorView& a = tensors_[by_name_[i - 1]];
    const TensorView& b = tensors_[by_name_[i]];
    if (a.name == b.name)
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: tensor {}: is also in {}; put parts of one split together",
                              PathOf(b), Shown(a.name), PathOf(a)));
  }
  return {};
}

const TensorView* MappedCheckpoint::Find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
  if (at == by_name_.end() || tensors_[*at].name != name) return nullptr;
  return &tensors_[*at];
}

const MappedFile* MappedCheckpoint::FileOf(const std::byte* at) const noexcept {
  for (const MappedFile& file : files_)
    if (Holds(file, at)) return &file;
  return nullptr;
}

void MappedCheckpoint::Release(std::span<const std::byte> bytes) const noexcept {
  const MappedFile* file = FileOf(bytes.data());
  if (file == nullptr) return;
  file->Release(static_cast<std::size_t>(bytes.data() - file->bytes().data()), bytes.size());
}

std::vector<std::string> MappedCheckpoint::files() const {
  std::vector<std::string> paths;
  for (const MappedFile& file : files_) paths.push_back(file.path());
  return paths;
}

std::size_t MappedCheckpoint::file_bytes() const {
  std::size_t sum = 0;
  for (const MappedFile& file : files_) sum += file.bytes().size();
  return sum;
}

const std::string& MappedCheckpoint::PathOf(const TensorView& tensor) const {
  const MappedFile* file = FileOf(tensor.places()[0].data());
  return file == nullptr ? path_ : file->path();
}

std::uint64_t MappedCheckpoint::ContentHash() const {
  std::vector<std::size_t> header_bytes;
  for (const MappedFile& file : files_) header_bytes.push_back(file.bytes().size());
  for (const TensorView& tensor : tensors_)
    for (const auto place : tensor.places()) {
      const MappedFile* file = FileOf(place.data());
      if (file == nullptr) continue;
      std::size_t& bytes = header_bytes[static_cast<std::size_t>(file - files_.data())];
      bytes = std::min(bytes, static_cast<std::size_t>(place.data() - file->bytes().data()));
    }
  std::vector<std::uint64_t> parts;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto bytes = files_[i].bytes();
    parts.insert(parts.end(), {bytes.size(), Hash(bytes.first(header_bytes[i]))});
  }
  for (const TensorView& tensor : tensors_)
    for (const auto place : tensor.places()) {
      AddSamples(place, parts);
      Release(place);  // a sample may bring 2 MiB into memory
    }
  return HashOf(parts);
}

std::uint64_t MappedCheckpoint::Fingerprint() const {
  std::vector<std::uint64_t> parts = {ContentHash()};
  for (const MappedFile& file : files_)
    parts.push_back(static_cast<std::uint64_t>(file.modified_ns()));
  return HashOf(parts);
}

Status MappedCheckpoint::Check() const {
  for (const MappedFile& file : files_) FORETOKEN_CHECK_OK(file.Check());
  return {};
}

}  // namespace foretoken::formats
