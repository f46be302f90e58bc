// SPDX-License-Identifier: Apache-2.0
#include "engine/slots.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/files/own_folder.h"
#include "engine/impl.h"
#include "engine/open/cache_file.h"

namespace foretoken {
namespace engine {

Status CheckSlotFolder(const std::string& folder) {
  struct stat status {};
  const bool there = stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  const std::string why = there ? WhyNotOurs(status) : "there is no such folder";
  if (why.empty()) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("slot folder: {}: {}; name one that is this user's", folder, why));
}

// Windows' separator is refused, too, so that a name is the same plain name everywhere.
Result<std::string> SlotPath(const std::string& folder, const std::string& name) {
  constexpr std::size_t kMostBytes =
      200;  // leaves room for what a file is called while it is written
  const bool plain =
      !name.empty() && name.size() <= kMostBytes && name.front() != '.' &&
      name.find("..") == std::string::npos && std::none_of(name.begin(), name.end(), [](char c) {
        return static_cast<unsigned char>(c) < 32 || c == 127 || c == '/' || c == '\\';
      });
  if (!plain)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("filename: '{}' is no plain name; give one of 1 to {} bytes without /, "
                            "\\, .., control characters, or a point before it",
                            Shown(name), kMostBytes));
  return folder + "/" + name;
}

Status CheckSlotRoom(const std::string& folder, const std::string& name, std::int64_t bytes,
                     std::int64_t most) {
  std::error_code error;
  std::int64_t taken = 0;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    std::error_code gone;  // meanwhile
    if (entry->path().filename() == name ||
        entry->symlink_status(gone).type() != std::filesystem::file_type::regular)
      continue;
    const auto size = entry->file_size(gone);
    if (!gone) taken += static_cast<std::int64_t>(size);
  }
  if (error)
    return Fail(ErrorCode::kIo,
                fmt::format("slot folder: {}: {}; check its permissions", folder, error.message()));
  if (bytes <= most - taken) return {};
  return Fail(
      ErrorCode::kTooLarge,
      fmt::format("slot folder: its files have {} bytes, and {} more are more than {}; delete "
                  "some, or raise --cache-file-mb",
                  taken, bytes, most));
}

}  // namespace engine

// The text of a slot, empty where it is none of this owner's.
Result<engine::SlotTexts::Text*> Engine::Impl::SlotOf(int slot, const kv::BlockKey& owner) {
  if (!opened_.slot_shape)
    return Fail(ErrorCode::kUnsupported,
                "slots: this engine has no folder for them; give EngineOptions::slot_folder");
  engine::SlotTexts& slots = admission_->slots();
  if (slot < 0 || slot >= slots.size())
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("slot: there is no {}; give one from 0 to {}", slot, slots.size() - 1));
  FORETOKEN_CHECK_OK(WhyNot());
  engine::SlotTexts::Text& text = slots.At(slot);
  return text.owner == owner ? &text : nullptr;
}

Result<SlotCounts> Engine::Impl::SaveSlot(int slot, const std::string& name,
                                          const std::string& cache_salt) {
  kv::BlockFile::Shape shape = opened_.slot_shape.value_or(kv::BlockFile::Shape());
  shape.owner = kv::RootKey(cache_salt);
  FORETOKEN_TRY(engine::SlotTexts::Text* const text, SlotOf(slot, shape.owner));
  const std::string& folder = opened_.options.slot_folder;
  FORETOKEN_TRY(const std::string path, engine::SlotPath(folder, name));
  kv::BlockTables::Known known;
  if (text != nullptr) known = opened_.cache->Gather(text->tokens, text->salt);
  if (known.n_tokens == 0)
    return Fail(
        ErrorCode::kNotFound,
        fmt::format("slot: {} has no text of this client in the cache; send a request first, "
                    "of the same cache_salt",
                    slot));
  FORETOKEN_CHECK_OK(kv::BlockFile::MayReplace(path, shape.owner));
  const kv::BlockFile::Slots n_slots = {known.n_blocks, known.n_states};
  FORETOKEN_CHECK_OK(engine::CheckSlotRoom(folder, name, kv::BlockFile::BytesFor(shape, n_slots),
                                           shape.max_bytes));
  FORETOKEN_TRY(kv::BlockFile file, kv::BlockFile::Create(path, shape, n_slots));
  kv::BlockStore store = engine::StoreOver(std::move(file), opened_);
  opened_.cache->Save(store);
  FORETOKEN_CHECK_OK(store.file().status());
  FORETOKEN_CHECK_OK(store.Publish());
  return SlotCounts{.tokens = known.n_tokens, .bytes = store.file().bytes()};
}

Result<SlotCounts> Engine::Impl::RestoreSlot(int slot, const std::string& name,
                                             const std::string& cache_salt) {
  kv::BlockFile::Shape shape = opened_.slot_shape.value_or(kv::BlockFile::Shape());
  shape.owner = kv::RootKey(cache_salt);
  FORETOKEN_CHECK_OK(SlotOf(slot, shape.owner));
  FORETOKEN_TRY(const std::string path, engine::SlotPath(opened_.options.slot_folder, name));
  const int most = kv::BlocksFor(opened_.context);
  FORETOKEN_TRY(kv::BlockFile file, kv::BlockFile::OpenToRead(path, shape, {most, most}));
  const std::int64_t bytes = file.bytes();
  kv::BlockStore store = engine::StoreOver(std::move(file), opened_);
  engine::SlotTexts::Text& text = admission_->slots().At(slot);
  text.salt = admission_->NameSalt(cache_salt), text.owner = shape.owner;
  opened_.cache->Bring(store, text.salt, text.tokens);
  const kv::BlockFile& read = store.file();
  const int n_all = read.n_places(kv::BlockFile::kBlock);
  const int n_blocks = kv::BlocksFor(static_cast<int>(text.tokens.size()));
  const bool sound = read.n_records(kv::BlockFile::kBlock) == n_all &&
                     read.n_records(kv::BlockFile::kState) == read.n_places(kv::BlockFile::kState);
  if (sound && n_blocks == n_all)
    return SlotCounts{.tokens = std::ssize(text.tokens), .bytes = bytes};
  if (sound && opened_.cache->n_available_blocks() < n_all)
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: the cache has room for {} of its {} blocks of {} tokens; wait for "
                            "requests that run, or raise --cache-tokens",
                            path, n_blocks, n_all, tensor::kKvBlock));
  return Fail(ErrorCode::kInvalidFile, fmt::format("{}: it is damaged; delete it", path));
}

Result<int> Engine::Impl::EraseSlot(int slot, const std::string& cache_salt) {
  FORETOKEN_TRY(engine::SlotTexts::Text* const text, SlotOf(slot, kv::RootKey(cache_salt)));
  if (text == nullptr) return 0;
  const int n_tokens = opened_.cache->Drop(text->tokens, text->salt);
  text->tokens.clear();
  return n_tokens;
}

Result<SlotCounts> Engine::SaveSlot(int slot, const std::string& name,
                                    const std::string& cache_salt) {
  return CatchNoMemory("slot", [&] { return impl_->SaveSlot(slot, name, cache_salt); });
}

Result<SlotCounts> Engine::RestoreSlot(int slot, const std::string& name,
                                       const std::string& cache_salt) {
  return CatchNoMemory("slot", [&] { return impl_->RestoreSlot(slot, name, cache_salt); });
}

Result<int> Engine::EraseSlot(int slot, const std::string& cache_salt) {
  return CatchNoMemory("slot", [&] { return impl_->EraseSlot(slot, cache_salt); });
}

}  // namespace foretoken
