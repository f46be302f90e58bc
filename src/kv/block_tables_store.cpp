// SPDX-License-Identifier: Apache-2.0
// What block tables write to a store, and bring back from it.
#include <algorithm>

#include "base/check.h"
#include "kv/block_tables.h"

namespace foretoken::kv {

void BlockTables::Use(BlockStore& store) {
  FORETOKEN_CHECK(!HasWindows() && n_free_blocks() == n_blocks_);
  store_ = source_ = &store;
  keys_.resize(static_cast<std::size_t>(n_blocks_));
  found_.reserve(static_cast<std::size_t>(BlocksFor(shape_.max_positions)));
  taken_.reserve(found_.capacity());
  if (!states_.none())
    states_.checkpoints().OnLost([this](std::int32_t place) { KeepState(place); });
}

// The key of what may stand before a block in the index.
std::optional<BlockKey> BlockTables::KeyOf(std::int64_t before) const noexcept {
  if (before >= 0) return keys_[static_cast<std::size_t>(before)];
  return store_->RootOf(-1 - before);
}

// The block has come into the index.
void BlockTables::Named(std::int32_t block) noexcept {
  if (store_ == nullptr) return;
  const std::optional<BlockKey> before = KeyOf(index_.Before(block));
  keys_[static_cast<std::size_t>(block)] =
      before ? std::optional(KeyAfter(*before, index_.TokensOf(block))) : std::nullopt;
}

std::optional<BlockFile::Text> BlockTables::TextOf(std::int32_t block) const noexcept {
  if (!index_.Has(block)) return std::nullopt;
  const std::optional<BlockKey> before = KeyOf(index_.Before(block));
  if (!before) return std::nullopt;
  BlockFile::Text text{.before = *before};
  const auto tokens = index_.TokensOf(block);
  text.n_tokens = static_cast<std::int32_t>(tokens.size());
  std::copy(tokens.begin(), tokens.end(), text.tokens.begin());
  for (std::int64_t at = index_.Before(block); at >= 0;
       at = index_.Before(static_cast<std::int32_t>(at)))
    ++text.n_before;
  return text;
}

void BlockTables::Keep(std::int32_t block) noexcept {
  if (store_ == nullptr || store_->file().n_places(BlockFile::kBlock) == 0) return;
  if (const auto text = TextOf(block)) store_->Write(BlockFile::kBlock, *text, block);
  if (states_.Copied(block)) KeepState(states_.checkpoints().Of(block));
}

void BlockTables::KeepState(std::int32_t place) noexcept {
  WriteState(*store_, place);
}

void BlockTables::WriteState(BlockStore& to, std::int32_t place) const noexcept {
  const std::int32_t block = states_.checkpoints().BlockOf(place);
  auto text = TextOf(block);
  if (!text) return;
  const auto [first, last] = states_.checkpoints().reach(place);
  text->first = first, text->last = last;
  to.Write(BlockFile::kState, *text, place);
}

// Blocks of running texts are in the list only when these have ended.
void BlockTables::KeepAll() noexcept {
  if (store_ == nullptr) return;
  for (std::int32_t block = idle_.oldest(); block != kNone; block = idle_.NewerThan(block))
    Keep(block);
}

// What follows the known blocks of the text, which are in chain_. With recurrent layers it ends where a
// state is, here or in the store.
BlockTables::Stored BlockTables::FindStored(std::span<const Token> text,
                                            SaltId salt) const noexcept {
  Stored found;
  found_.clear();
  const BlockFile& file = source_->file();
  const auto n_known = static_cast<int>(chain_.size());
  const std::optional<BlockKey> root = KeyOf(LastOf(chain_, salt));
  if (!root) return found;
  const auto tokens = [&text](int n) {
    return text.subspan(static_cast<std::size_t>(n) * tensor::kKvBlock);
  };
  const auto behind = [&](const BlockKey& key, int n) {
    return file.FindLike(
        BlockFile::kBlock, key, tokens(n), [&](const BlockFile::Text& like, int common) {
          if (like.n_before != n) return false;
          const std::int32_t here = n == n_known ? KnownLike(LastOf(chain_, salt), like) : kNone;
          if (states_.none())
            return here == kNone && like.n_tokens < tensor::kKvBlock && 2 * common >= like.n_tokens;
          if (here != kNone && states_.Copied(here)) return false;
          const std::int32_t state = file.Find(BlockFile::kState, KeyAfter(key, like.View()));
          return state != kNone &&
                 file.TextOf(BlockFile::kState, state).first <= n * tensor::kKvBlock + common;
        });
  };
  const int most = std::min(static_cast<int>(text.size()) / tensor::kKvBlock,
                            n_known + n_available_blocks() - 1);
  BlockKey key = *root;
  for (int n = n_known; n <= most; ++n) {
    const std::int32_t more = behind(key, n);
    if (states_.none()) {
      found.n_blocks = n - n_known, found.more = more;
    } else if (more != kNone) {
      found = {.n_blocks = n - n_known,
               .more = more,
               .state = file.Find(BlockFile::kState,
                                  KeyAfter(key, file.TextOf(BlockFile::kBlock, more).View()))};
    } else if (const std::int32_t state = file.Find(BlockFile::kState, key);
               n > n_known && state != kNone) {
      found = {.n_blocks = n - n_known, .state = state};
    }
    if (n == most) break;
    key = KeyAfter(key, tokens(n).first(tensor::kKvBlock));
    const std::int32_t next = file.Find(BlockFile::kBlock, key);
    if (next == kNone || file.TextOf(BlockFile::kBlock, next).n_before != n) break;
    found_.push_back(key);
  }
  return found;
}

// The block in the index that follows `before` and has the text's tokens, or kNone.
std::int32_t BlockTables::KnownLike(std::int64_t before,
                                    const BlockFile::Text& text) const noexcept {
  if (text.n_tokens == tensor::kKvBlock)
    return index_.Find(before, PrefixIndex::Tokens(text.tokens));
  const PrefixIndex::Tail tail = index_.FindTail(before, text.View());
  const bool same =
      tail.n_common == text.n_tokens && index_.TailLength(tail.block) == text.n_tokens;
  return same ? tail.block : kNone;
}

// The block that has the record's content, and is held; kNone: it could not be read.
std::int32_t BlockTables::Load(std::int32_t record, std::int64_t before) noexcept {
  const BlockFile::Text text = source_->file().TextOf(BlockFile::kBlock, record);
  const BlockKey key = source_->file().KeyOf(BlockFile::kBlock, record);
  if (const std::int32_t known = KnownLike(before, text); known != kNone) {
    Hold(known);
    return known;
  }
  if (n_available_blocks() == 0) return kNone;
  const std::int32_t block = Take();
  // The file may have lost the record, because Take wrote another one.
  record = source_->file().Find(BlockFile::kBlock, key);
  if (record == kNone || !source_->Read(BlockFile::kBlock, record, block)) {
    Release(block);
    return kNone;
  }
  Enter(block, before, record);
  return block;
}

// The block, which has what the record has, comes into the index behind `before`.
void BlockTables::Enter(std::int32_t block, std::int64_t before, std::int32_t record) noexcept {
  const BlockFile::Text& text = source_->file().TextOf(BlockFile::kBlock, record);
  if (text.n_tokens == tensor::kKvBlock) {
    index_.Add(block, before, PrefixIndex::Tokens(text.tokens));
  } else if (const std::int32_t older = index_.AddTail(block, before, text.View());
             older != kNone) {
    Forget(older);
  }
  keys_[static_cast<std::size_t>(block)] = source_->file().KeyOf(BlockFile::kBlock, record);
}

void BlockTables::LoadState(std::int32_t record, std::int32_t block) noexcept {
  if (states_.Copied(block)) return;
  const BlockFile::Text text = source_->file().TextOf(BlockFile::kState, record);
  const BlockKey key = source_->file().KeyOf(BlockFile::kState, record);
  const std::int32_t place =
      states_.checkpoints().Put(block, {.first = text.first, .last = text.last});
  if (place == kNone) return;
  record = source_->file().Find(BlockFile::kState, key);
  if (record == kNone || !source_->Read(BlockFile::kState, record, place)) states_.Detach(block);
}

// The newest copy of a state in the store that is of a known block, where none is here of a later one.
void BlockTables::RestoreKnownState(std::size_t n_own) noexcept {
  const BlockFile& file = source_->file();
  for (std::size_t i = chain_.size(); i-- > n_own && !states_.Copied(chain_[i]);) {
    const std::optional<BlockKey>& key = keys_[static_cast<std::size_t>(chain_[i])];
    const std::int32_t state = key ? file.Find(BlockFile::kState, *key) : kNone;
    if (state != kNone) return LoadState(state, chain_[i]);
  }
}

void BlockTables::Restore(SeqId seq, std::span<const Token> text, SaltId salt) noexcept {
  Sequence& s = sequences_[seq];
  if (store_ == nullptr || !states_.shared() || text.empty() ||
      s.length != s.n_published * tensor::kKvBlock)
    return;
  chain_.assign(s.blocks.begin(), s.blocks.end());
  RestoreBehind(static_cast<std::size_t>(s.n_published), text, salt);
}

// Restores what follows the first blocks of the text, which are in chain_.
void BlockTables::RestoreBehind(std::size_t n_own, std::span<const Token> text,
                                SaltId salt) noexcept {
  const BlockFile& file = source_->file();
  if (file.n_records(BlockFile::kBlock) + file.n_records(BlockFile::kState) == 0) return;
  Find({.before = LastOf(chain_, salt), .n_blocks = static_cast<int>(n_own)}, text, false);
  const Stored stored = FindStored(text, salt);
  for (std::size_t i = n_own; i < chain_.size(); ++i) Hold(chain_[i]);
  if (stored.more == kNone && stored.n_blocks == 0) {
    if (!states_.none()) RestoreKnownState(n_own);
  } else {
    LoadStored(stored, salt);
  }
  for (std::size_t i = chain_.size(); i-- > n_own;) Release(chain_[i]);
}

// Reads what is in taken_, in the order of the file. A record that cannot be read becomes kNone.
void BlockTables::ReadTaken() noexcept {
  for (Taken& taken : taken_)
    taken.record =
        source_->file().Find(BlockFile::kBlock, found_[static_cast<std::size_t>(taken.n)]);
  std::ranges::sort(taken_, {}, &Taken::record);
  for (Taken& taken : taken_)
    if (taken.record != kNone && !source_->Read(BlockFile::kBlock, taken.record, taken.block))
      taken.record = kNone;
  std::ranges::sort(taken_, {}, &Taken::n);
}

// Loads the first n of found_ behind chain_, up to the first that cannot be read. All their memory is taken before
// any is read, because taking it may write other records to the file.
void BlockTables::LoadFound(int n, SaltId salt) noexcept {
  const BlockFile& file = source_->file();
  std::int32_t next = 0;
  for (; next < n; ++next) {
    const std::int32_t record =
        file.Find(BlockFile::kBlock, found_[static_cast<std::size_t>(next)]);
    const std::int32_t known =
        record == kNone ? kNone
                        : KnownLike(LastOf(chain_, salt), file.TextOf(BlockFile::kBlock, record));
    if (known == kNone) break;
    Hold(known);
    chain_.push_back(known);
  }
  taken_.clear();
  for (; next < n && n_available_blocks() > 0; ++next) taken_.push_back({next, Take()});
  ReadTaken();
  bool whole = true;
  for (const Taken& taken : taken_) {
    whole = whole && taken.record != kNone;
    if (!whole) {
      Release(taken.block);
      continue;
    }
    Enter(taken.block, LastOf(chain_, salt), taken.record);
    chain_.push_back(taken.block);
  }
}

// Each block that is loaded may let the file lose a record that was found before, so all are looked for again.
void BlockTables::LoadStored(const Stored& stored, SaltId salt) noexcept {
  const BlockFile& file = source_->file();
  const auto key = [&file](BlockFile::Kind kind, std::int32_t record) {
    return record == kNone ? BlockKey() : file.KeyOf(kind, record);
  };
  const BlockKey more_key = key(BlockFile::kBlock, stored.more);
  const bool has_state = stored.state != kNone;
  const BlockKey state_key = key(BlockFile::kState, stored.state);
  const std::size_t wanted = chain_.size() + static_cast<std::size_t>(stored.n_blocks);
  LoadFound(stored.n_blocks, salt);
  if (chain_.size() < wanted) return;
  const auto load_state = [&](std::int32_t block) {
    const std::int32_t record = file.Find(BlockFile::kState, state_key);
    if (has_state && record != kNone) LoadState(record, block);
  };
  if (stored.more == kNone) return load_state(chain_.back());
  const std::int32_t record = file.Find(BlockFile::kBlock, more_key);
  const std::int32_t more = record == kNone ? kNone : Load(record, LastOf(chain_, salt));
  if (more == kNone) return;
  load_state(more);
  Release(more);
}

// The known blocks of the text go to chain_, with a tail that the text has all of.
void BlockTables::FollowKnown(std::span<const Token> text, SaltId salt) const noexcept {
  chain_.clear();
  const Found found = Find({.before = PrefixIndex::BeginOf(salt)}, text, false);
  const auto rest = text.subspan(static_cast<std::size_t>(found.n_known) * tensor::kKvBlock);
  const PrefixIndex::Tail tail = index_.FindTail(found.last, rest);
  if (tail.block != kNone && tail.n_common == index_.TailLength(tail.block))
    chain_.push_back(tail.block);
}

BlockTables::Known BlockTables::Gather(std::span<const Token> text, SaltId salt) noexcept {
  chain_.clear();
  RestoreBehind(0, text, salt);
  FollowKnown(text, salt);
  Known known{.n_blocks = static_cast<int>(chain_.size())};
  for (const std::int32_t block : chain_) {
    known.n_tokens += static_cast<int>(index_.TokensOf(block).size());
    known.n_states += states_.Copied(block) ? 1 : 0;
  }
  return known;
}

void BlockTables::Save(BlockStore& to) noexcept {
  for (const std::int32_t block : chain_) {
    const auto text = TextOf(block);
    if (!text) return;
    to.Write(BlockFile::kBlock, *text, block);
    if (states_.Copied(block)) WriteState(to, states_.checkpoints().Of(block));
  }
}

void BlockTables::Bring(BlockStore& from, SaltId salt, std::vector<Token>& text) noexcept {
  source_ = &from;
  chain_.clear(), text.clear();
  const BlockFile& file = from.file();
  const std::optional<BlockKey> root = store_->RootOf(salt);
  std::int32_t record = root ? file.Follower(BlockFile::kBlock, *root) : kNone;
  while (record != kNone && chain_.size() < chain_.capacity() &&
         file.TextOf(BlockFile::kBlock, record).n_before == static_cast<int>(chain_.size())) {
    const BlockFile::Text more = file.TextOf(BlockFile::kBlock, record);
    const BlockKey key = file.KeyOf(BlockFile::kBlock, record);
    const std::int32_t block = Load(record, LastOf(chain_, salt));
    if (block == kNone) break;
    chain_.push_back(block);
    text.insert(text.end(), more.View().begin(), more.View().end());
    const std::int32_t state = file.Find(BlockFile::kState, key);
    if (state != kNone) LoadState(state, block);
    if (more.n_tokens < tensor::kKvBlock) break;
    record = file.Follower(BlockFile::kBlock, key);
  }
  for (std::size_t i = chain_.size(); i-- > 0;) Release(chain_[i]);
  source_ = store_;
}

int BlockTables::Drop(std::span<const Token> text, SaltId salt) noexcept {
  DropStored(text, salt);
  FollowKnown(text, salt);
  int n_tokens = 0;
  for (std::size_t i = chain_.size(); i-- > 0;) {
    const std::int32_t block = chain_[i];
    if (n_users_[static_cast<std::size_t>(block)] > 0 || index_.HasFollowers(block)) break;
    n_tokens += static_cast<int>(index_.TokensOf(block).size());
    Forget(block);
  }
  return n_tokens;
}

void BlockTables::DropStored(std::span<const Token> text, SaltId salt) noexcept {
  const BlockFile& file = store_->file();
  std::optional<BlockKey> key = store_->RootOf(salt);
  if (!key || file.n_records(BlockFile::kBlock) == 0) return;
  found_.clear();
  while (!text.empty() && found_.size() < found_.capacity()) {
    const auto tokens = text.first(std::min<std::size_t>(text.size(), tensor::kKvBlock));
    found_.push_back(*(key = KeyAfter(*key, tokens)));
    text = text.subspan(tokens.size());
  }
  for (std::size_t i = found_.size(); i-- > 0;) {
    if (file.Follower(BlockFile::kBlock, found_[i]) != BlockFile::kNone) return;
    store_->Erase(BlockFile::kBlock, found_[i]);
    store_->Erase(BlockFile::kState, found_[i]);
  }
}

}  // namespace foretoken::kv
