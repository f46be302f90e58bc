// SPDX-License-Identifier: Apache-2.0
#include "formats/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "base/files/mapped_file.h"
#include "formats/gguf.h"
#include "formats/gguf_writer.h"
#include "formats/huggingface/model_folder.h"
#include "formats/mapped_checkpoint.h"

namespace foretoken::formats {

namespace {

class GgufCheckpoint final : public MappedCheckpoint {
 public:
  GgufCheckpoint(MappedFile file, GgufFile parsed)
      : MappedCheckpoint(file.path()), version_(parsed.version) {
    metadata_ = std::move(parsed.metadata);  // of the first part
    tensors_ = std::move(parsed.tensors);
    files_.push_back(std::move(file));
  }

  void Append(MappedFile file, GgufFile parsed) {
    files_.push_back(std::move(file));
    tensors_.insert(tensors_.end(), std::make_move_iterator(parsed.tensors.begin()),
                    std::make_move_iterator(parsed.tensors.end()));
  }

  using MappedCheckpoint::Index;  // call once, after the last Append

  // From the file itself: metadata as read no longer know the types of numbers.
  void CopyKeys(GgufWriter& writer) const override { writer.CopyKeys(files_.front().bytes()); }

  std::string format() const override {
    if (files_.size() == 1) return fmt::format("GGUF v{}", version_);
    return fmt::format("GGUF v{}, {} files", version_, files_.size());
  }

 private:
  std::uint32_t version_;
};

// ---- Split files -------------------------------------------------------------------------------

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";
constexpr std::int64_t kMaxParts = 65535;  // split.count is a u16

std::string PartSuffix(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number, count);
}

// "dir/model" of "dir/model-00002-of-00003.gguf"; nullopt if the path does not end like part
// `number` (from 1) of `count`.
std::optional<std::string> PartStem(const std::string& path, std::int64_t number,
                                    std::int64_t count) {
  const std::string suffix = PartSuffix(number, count);
  if (!path.ends_with(suffix)) return std::nullopt;
  return path.substr(0, path.size() - suffix.size());
}

Status CheckIsFirstPart(const std::string& path, const Metadata& metadata, std::int64_t count) {
  const std::int64_t no = metadata.Int(kSplitNo).value_or(-1);
  if (count < 1 || count > kMaxParts || no < 0 || no >= count) {
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("{}: key {}: part {} of {} cannot be; the file is damaged, fetch it again",
                    path, kSplitNo, no, count));
  }
  if (no == 0) return {};
  const auto stem = PartStem(path, no + 1, count);
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: this is part {} of {} of a split model; open {}", path, no + 1,
                          count, stem ? *stem + PartSuffix(1, count) : "its first part"));
}

Status AppendParts(const std::string& first, std::int64_t count, GgufCheckpoint* checkpoint) {
  const auto stem = PartStem(first, 1, count);
  if (!stem) {
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format(
            "{}: the first of {} parts of a split model, but the others cannot be named after it; "
            "rename it back to NAME{}",
            first, count, PartSuffix(1, count)));
  }
  for (std::int64_t i = 1; i < count; ++i) {
    const std::string path = *stem + PartSuffix(i + 1, count);
    auto file = MappedFile::Open(path);
    if (!file && file.error().code == ErrorCode::kNotFound) {
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: part {} of {} of a split model is missing; put it beside {}",
                              path, i + 1, count, first));
    }
    if (!file) return Fail(std::move(file).error());
    FORETOKEN_TRY(GgufFile parsed, ParseGguf(file->bytes(), path));
    if (parsed.metadata.Int(kSplitNo) != i || parsed.metadata.Int(kSplitCount) != count) {
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("{}: key {}: the file does not say that it is part {} of {}; fetch it again",
                      path, kSplitNo, i + 1, count));
    }
    checkpoint->Append(std::move(*file), std::move(parsed));
  }
  return {};
}

// ---- Files of other kinds ----------------------------------------------------------------------

struct Kind {
  std::string_view magic;
  std::string_view looks_like;
  std::string_view advice;
};

constexpr std::string_view kConvert =
    "convert the model to GGUF (llama.cpp's convert_hf_to_gguf.py) and name that file";
constexpr std::string_view kFolder =
    "name the folder that holds it, with config.json and tokenizer.json";
constexpr std::string_view kConvertAgain =
    "this format is no longer in use: convert the original model to GGUF again";

using std::string_view_literals::operator""sv;

// The old ggml formats wrote their magic as a little-endian number, so its letters are reversed in
// the file.
constexpr Kind kKinds[] = {
    {"FUGG"sv, "a GGUF file with its bytes swapped", "convert it to little-endian"},
    {"tjgg"sv, "a GGML file of the old 'ggjt' kind", kConvertAgain},
    {"fmgg"sv, "a GGML file of the old 'ggmf' kind", kConvertAgain},
    {"lmgg"sv, "a GGML file of the old 'ggml' kind", kConvertAgain},
    {"algg"sv, "a LoRA adapter of the old 'ggla' kind",
     "merge it into its model and convert that to GGUF"},
    {"PK\x03\x04"sv, "a ZIP archive, probably a PyTorch checkpoint (.bin, .pt, .pth)", kConvert},
    {"\x80\x02"sv, "a Python pickle, probably an old PyTorch checkpoint", kConvert},
    {"\x89HDF"sv, "an HDF5 file, probably a Keras model", kConvert},
    {"\x93NUMPY"sv, "a NumPy array", kConvert},
    {"\x1F\x8B"sv, "a gzip archive", "unpack it first"},
    {"\x28\xB5\x2F\xFD"sv, "a zstd archive", "unpack it first"},
    {"version https://git-lfs"sv, "a Git LFS pointer, not the model itself",
     "fetch the model with `git lfs pull`"},
    {"<!"sv, "a web page, not a model", "fetch the file itself, not the page about it"},
    {"<html"sv, "a web page, not a model", "fetch the file itself, not the page about it"},
    {"{"sv, "a JSON file", "name the model file beside it, or the folder of a model"},
};

bool LooksLikeSafetensors(std::string_view head, std::size_t file_bytes) {
  std::uint64_t header_bytes = 0;
  if (head.size() < sizeof(header_bytes) + 1) return false;
  std::memcpy(&header_bytes, head.data(), sizeof(header_bytes));
  return header_bytes >= 2 && header_bytes <= file_bytes - sizeof(header_bytes) &&
         head[sizeof(header_bytes)] == '{';
}

auto NotGguf(const MappedFile& file) {
  const auto bytes = file.bytes();
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 256));
  const auto is = [&](std::string_view looks_like, std::string_view advice) {
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: not a GGUF file but {}; {}", file.path(), looks_like, advice));
  };
  if (LooksLikeSafetensors(head, bytes.size())) return is("a safetensors file", kFolder);
  for (const Kind& kind : kKinds)
    if (head.starts_with(kind.magic)) return is(kind.looks_like, kind.advice);
  if (bytes.size() < 64)
    return is(fmt::format("a file of only {} bytes", bytes.size()), "fetch it again");
  if (std::all_of(head.begin(), head.end(), [](char c) { return c == 0; }))
    return is("a file that begins with zeros", "its download did not finish: fetch it again");
  const auto is_text = [](char c) {
    return std::isprint(static_cast<unsigned char>(c)) != 0 || c == '\n' || c == '\r' || c == '\t';
  };
  if (std::all_of(head.begin(), head.end(), is_text)) return is("a text file", "name a model file");
  return is(fmt::format("of unknown kind (it begins with the bytes {:02x} {:02x} {:02x} {:02x})",
                        std::to_integer<unsigned>(bytes[0]), std::to_integer<unsigned>(bytes[1]),
                        std::to_integer<unsigned>(bytes[2]), std::to_integer<unsigned>(bytes[3])),
            "name a GGUF file");
}

}  // namespace

Result<std::unique_ptr<Checkpoint>> OpenGguf(MappedFile first) {
  const std::string path = first.path();
  FORETOKEN_TRY(GgufFile parsed, ParseGguf(first.bytes(), path));
  const bool is_split = parsed.metadata.Find(kSplitCount) != nullptr;
  const std::int64_t count = parsed.metadata.Int(kSplitCount).value_or(0);
  if (is_split) FORETOKEN_CHECK_OK(CheckIsFirstPart(path, parsed.metadata, count));
  std::optional<std::int64_t> n_tensors;
  if (parsed.metadata.Find(kSplitTensors) != nullptr)
    n_tensors = parsed.metadata.Int(kSplitTensors).value_or(-1);

  auto checkpoint = std::make_unique<GgufCheckpoint>(std::move(first), std::move(parsed));
  if (is_split && count > 1) {
    FORETOKEN_CHECK_OK(AppendParts(path, count, checkpoint.get()));
    if (n_tensors && *n_tensors != static_cast<std::int64_t>(checkpoint->tensors().size())) {
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: key {}: {} tensors expected but the parts hold {}; put parts of "
                              "one split together",
                              path, kSplitTensors, *n_tensors, checkpoint->tensors().size()));
    }
  }
  FORETOKEN_CHECK_OK(checkpoint->Index());
  FORETOKEN_CHECK_OK(checkpoint->Check());  // nothing changed while the file was parsed
  return checkpoint;
}

Result<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return huggingface::OpenModelFolder(path);
  FORETOKEN_TRY(MappedFile file, MappedFile::Open(path));
  const auto bytes = file.bytes();
  if (bytes.size() >= kGgufMagic.size() &&
      std::memcmp(bytes.data(), kGgufMagic.data(), kGgufMagic.size()) == 0)
    return OpenGguf(std::move(file));
  return NotGguf(file);
}

}  // namespace foretoken::formats
