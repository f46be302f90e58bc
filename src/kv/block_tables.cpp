// SPDX-License-Identifier: Apache-2.0
#include "kv/block_tables.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace foretoken::kv {
namespace {

PrefixIndex::Tokens TokensOf(std::span<const Token> text, int block) {
  return PrefixIndex::Tokens(text.data() + std::ptrdiff_t{block} * tensor::kKvBlock,
                             tensor::kKvBlock);
}

// The text behind so many full blocks.
std::span<const Token> Behind(std::span<const Token> text, int blocks) {
  return text.subspan(std::min(text.size(), static_cast<std::size_t>(blocks * tensor::kKvBlock)));
}

}  // namespace

BlockTables::BlockTables(const TablesShape& shape)
    : shape_(shape),
      n_blocks_(shape.n_blocks()),
      idle_(n_blocks_),
      windows_(shape.n_window_blocks(), n_blocks_),
      states_({.n_sequences = shape.n_sequences,
               .n_blocks = n_blocks_,
               .rows = shape.state_rows,
               .n_checkpoints = shape.n_checkpoints,
               .interval = shape.checkpoint_tokens}),
      index_(n_blocks_) {
  FORETOKEN_CHECK(shape.n_sequences > 0 && shape.max_positions > 0);
  sequences_.resize(static_cast<std::size_t>(shape.n_sequences));
  const auto most = static_cast<std::size_t>(BlocksFor(shape.max_positions));
  for (Sequence& sequence : sequences_) {
    sequence.blocks.reserve(most);
    if (HasWindows()) sequence.window_blocks.reserve(most);
  }
  n_users_.resize(static_cast<std::size_t>(n_blocks_));
  free_.reserve(static_cast<std::size_t>(n_blocks_));
  chain_.reserve(most);
  for (int id = n_blocks_ - 1; id >= 0; --id) free_.push_back(id);
}

std::int32_t BlockTables::Take() noexcept {
  if (free_.empty()) {
    const std::int32_t oldest = idle_.oldest();
    FORETOKEN_CHECK(oldest != kNone);
    Keep(oldest);
    Forget(oldest);
  }
  const std::int32_t block = free_.back();
  free_.pop_back();
  Users(block) = 1;
  return block;
}

// A block becomes free that is idle, or that a sequence holds for its rows only: then once it is released.
void BlockTables::Forget(std::int32_t block) noexcept {
  index_.Remove(block);
  windows_.Detach(block);
  states_.Detach(block);
  if (Users(block) > 0) return;
  idle_.Remove(block);
  free_.push_back(block);
}

void BlockTables::Hold(std::int32_t block) noexcept {
  if (Users(block)++ == 0) idle_.Remove(block);
}

void BlockTables::Release(std::int32_t block) noexcept {
  if (--Users(block) > 0) return;
  if (index_.Has(block)) return idle_.Append(block);
  states_.Detach(block);
  free_.push_back(block);
}

std::int32_t BlockTables::TakeWindow() noexcept {
  if (windows_.n_free() + windows_.n_idle() == 0)
    for (Sequence& s : sequences_) DropUnseen(s);
  return windows_.Take();
}

// The blocks [begin, end) in order of position: so the last ones stay idle longest.
void BlockTables::ReleaseWindows(Sequence& s, int begin, int end) noexcept {
  for (int i = std::max(begin, s.first_held); i < end; ++i)
    windows_.Release(std::exchange(s.window_blocks[static_cast<std::size_t>(i)], kNone));
}

void BlockTables::DropUnseen(Sequence& s) noexcept {
  const int seen_from = s.length + 1 - shape_.window - TablesShape::kRollback;
  const int first = std::max(s.first_held, seen_from / tensor::kKvBlock);
  ReleaseWindows(s, s.first_held, first);
  s.first_held = first;
}

int BlockTables::MissingBlocks(SeqId seq, int n_rows) const noexcept {
  const Sequence& s = sequences_[seq];
  return std::max(0, BlocksFor(s.length + n_rows) - static_cast<int>(s.blocks.size()));
}

void BlockTables::Reserve(SeqId seq, int n_rows) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(n_rows >= 0 && s.length + n_rows <= shape_.max_positions);
  const auto needed = static_cast<std::size_t>(BlocksFor(s.length + n_rows));
  if (HasWindows()) DropUnseen(s);
  if (const std::int32_t tail = states_.parked(seq); tail != kNone) {
    states_.Forget(seq);
    if (!states_.Copied(tail)) Forget(tail);
  }
  while (s.blocks.size() < needed) {
    s.blocks.push_back(Take());
    if (HasWindows()) s.window_blocks.push_back(TakeWindow());
  }
}

void BlockTables::Append(SeqId seq, int n_rows) noexcept {
  sequences_[seq].length += n_rows;
  Truncate(seq, sequences_[seq].length);
}

// Whether the window of the position behind so many is still there.
bool BlockTables::SeesWindow(const Sequence& s, int length) const noexcept {
  return !HasWindows() ||
         std::max(0, length + 1 - shape_.window) / tensor::kKvBlock >= s.first_held;
}

int BlockTables::Truncate(SeqId seq, int length) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(length >= 0 && length <= s.length);
  FORETOKEN_CHECK(length % tensor::kKvBlock == 0 || length >= s.n_published * tensor::kKvBlock);
  if (!SeesWindow(s, length)) length = 0;
  length = states_.Truncate(seq, length, s.blocks);
  if (!SeesWindow(s, length)) length = states_.Truncate(seq, 0, s.blocks);
  s.length = length;
  s.n_published = std::min(s.n_published, length / tensor::kKvBlock);
  const auto needed = static_cast<std::size_t>(BlocksFor(length));
  if (HasWindows() && s.blocks.size() > needed) {
    ReleaseWindows(s, static_cast<int>(needed), static_cast<int>(s.blocks.size()));
    s.window_blocks.resize(needed);
    s.first_held = std::min(s.first_held, static_cast<int>(needed));
  }
  if (s.rows_of != kNone && s.blocks.size() > needed) ReleaseRows(s);
  while (s.blocks.size() > needed) {
    Release(s.blocks.back());
    s.blocks.pop_back();
  }
  return length;
}

// The published block that holds the text's block number `at` and follows `before`; kNone where
// there is none.
std::int32_t BlockTables::FindNext(std::int64_t before, std::span<const Token> text,
                                   int at) const noexcept {
  const bool full = static_cast<int>(text.size()) >= (at + 1) * tensor::kKvBlock;
  return full ? index_.Find(before, TokensOf(text, at)) : kNone;
}

void BlockTables::Publish(SeqId seq, std::span<const Token> text, SaltId salt) noexcept {
  if (!states_.shared()) return;
  Sequence& s = sequences_[seq];
  const int n_full = std::min(s.length, static_cast<int>(text.size())) / tensor::kKvBlock;
  for (; s.n_published < n_full; ++s.n_published) {
    const std::int64_t before =
        LastOf(std::span(s.blocks).first(static_cast<std::size_t>(s.n_published)), salt);
    std::int32_t& own = s.blocks[s.n_published];
    const std::int32_t known = FindNext(before, text, s.n_published);
    if (known == kNone) {
      index_.Add(own, before, TokensOf(text, s.n_published));
      Named(own);
    } else {
      Hold(known);
      states_.Replace(own, known);
      Release(std::exchange(own, known));
    }
    if (HasWindows()) PublishWindow(s, own);
  }
}

void BlockTables::End(SeqId seq, std::span<const Token> text, SaltId salt) noexcept {
  Publish(seq, text, salt);
  if (states_.shared()) KeepTail(seq, text, salt);
  Truncate(seq, 0);
}

// The cache may hold positions behind the text, of drafts that came after its end.
void BlockTables::KeepTail(SeqId seq, std::span<const Token> text, SaltId salt) noexcept {
  Sequence& s = sequences_[seq];
  const int n_text = std::min(s.length, static_cast<int>(text.size()));
  const int length = n_text < s.length ? Truncate(seq, n_text) : n_text;
  const int first = s.n_published * tensor::kKvBlock;
  if (length < n_text || length == first || (HasWindows() && s.n_published < s.first_held)) return;
  const std::int32_t tail = s.blocks.back();
  if (!states_.none() && !states_.Park(seq, tail, length)) return;
  const std::int64_t before = LastOf(std::span(s.blocks).first(s.blocks.size() - 1), salt);
  const std::int32_t older = index_.AddTail(
      tail, before,
      text.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length - first)));
  Named(tail);
  if (older != kNone) Forget(older);
  if (HasWindows()) windows_.Attach(s.window_blocks.back(), tail);
}

// Publishes the window block of the first block that is not published yet: the owner gets it, or
// the owner's takes its place.
void BlockTables::PublishWindow(Sequence& s, std::int32_t owner) noexcept {
  if (s.n_published < s.first_held) return;
  std::int32_t& own = s.window_blocks[static_cast<std::size_t>(s.n_published)];
  const std::int32_t known = windows_.Of(owner);
  if (known == kNone) return windows_.Attach(own, owner);
  windows_.Hold(known);
  windows_.Release(std::exchange(own, known));
}

// How many published blocks can follow. The last of them must be followed by a position whose window
// is still there, and by a known state. held_only: only blocks that sequences hold.
BlockTables::Found BlockTables::Find(Way way, std::span<const Token> text,
                                     bool held_only) const noexcept {
  const auto sees = [&] {
    return !HasWindows() || way.n_held >= std::min(way.n_blocks, shape_.SeenBlocks());
  };
  Found found{.last = way.before, .sees = sees()};
  for (;;) {
    const std::int32_t next = FindNext(way.before, text, way.n_blocks);
    if (next == kNone) return found;
    if (held_only && n_users_[static_cast<std::size_t>(next)] == 0) return found;
    way.before = found.last = next;
    chain_.push_back(next);
    ++way.n_blocks, ++found.n_known;
    if (HasWindows()) way.n_held = windows_.Of(next) == kNone ? 0 : way.n_held + 1;
    found.sees = sees();
    if (found.sees && states_.Known(next)) found.n_sharable = found.n_known;
  }
}

// The tail behind all known blocks, if the sequence can go on behind it. A state goes on at its end
// only; otherwise half of a tail is worth taking it from the text that it was of.
PrefixIndex::Tail BlockTables::FindTail(const Found& found, SeqId seq,
                                        std::span<const Token> rest) const noexcept {
  const PrefixIndex::Tail tail = index_.FindTail(found.last, rest);
  if (tail.block == kNone || !found.sees) return {};
  if (HasWindows() && windows_.Of(tail.block) == kNone) return {};
  const int length = index_.TailLength(tail.block);
  if (states_.none()) return 2 * tail.n_common >= length ? tail : PrefixIndex::Tail{};
  const bool goes_on = tail.n_common == length && states_.ParkedBehind(tail.block) == seq;
  return goes_on ? tail : PrefixIndex::Tail{};
}

// The block is the sequence's own from now on.
void BlockTables::TakeTail(Sequence& s, PrefixIndex::Tail tail) noexcept {
  Hold(tail.block);
  index_.Remove(tail.block);
  s.blocks.push_back(tail.block);
  s.length += tail.n_common;
  if (!HasWindows()) return;
  const std::int32_t window = windows_.Of(tail.block);
  windows_.Hold(window);
  windows_.Detach(tail.block);
  s.window_blocks.push_back(window);
}

// What the copy in the place reaches of the text, whose known blocks are in chain_. Its block is of the
// text, or the block where the text parts from it, or the next one behind that.
BlockTables::Copy BlockTables::Reached(std::int32_t place, std::span<const Token> text,
                                       SaltId salt) const noexcept {
  const std::int32_t block = states_.checkpoints().BlockOf(place);
  if (block == kNone || !index_.Has(block)) return {};
  const auto [first, last] = states_.checkpoints().reach(place);
  const auto goes_on = [&](std::int64_t before, int n) {
    if (n > static_cast<int>(chain_.size())) return false;
    return before ==
           (n == 0 ? PrefixIndex::BeginOf(salt) : chain_[static_cast<std::size_t>(n) - 1]);
  };
  const std::int64_t before = index_.Before(block);
  int n = (last - 1) / tensor::kKvBlock;
  std::int32_t parts = block;
  if (!goes_on(before, n)) {
    if (n == 0 || first >= n * tensor::kKvBlock) return {};
    parts = static_cast<std::int32_t>(before), --n;
    if (!goes_on(index_.Before(parts), n)) return {};
  }
  const Pos at = std::min(last, n * tensor::kKvBlock + index_.Common(parts, Behind(text, n)));
  if (at < first) return {};
  return {.place = place, .at = at, .block = at % tensor::kKvBlock == 0 ? kNone : parts};
}

// The copy that reaches most of the text.
BlockTables::Copy BlockTables::FindCopy(SeqId seq, std::span<const Token> text,
                                        SaltId salt) const noexcept {
  Copy best;
  for (std::int32_t place = 0; place < states_.checkpoints().n_places(); ++place) {
    const Copy copy = Reached(place, text, salt);
    if (copy.at > best.at && CanCopyRows(seq, copy)) best = copy;
  }
  return best;
}

// Whether the sequence can go on there: the next position sees its window, and there is a block.
bool BlockTables::CanCopyRows(SeqId seq, const Copy& copy) const noexcept {
  const Sequence& s = sequences_[seq];
  const int n = copy.at / tensor::kKvBlock;
  if (n < s.n_published || n > static_cast<int>(chain_.size())) return false;
  for (int i = std::max(0, n - shape_.SeenBlocks()); HasWindows() && i < n; ++i)
    if (i < s.n_published ? i < s.first_held
                          : windows_.Of(chain_[static_cast<std::size_t>(i)]) == kNone)
      return false;
  if (copy.block == kNone) return true;
  const auto idle = [this](std::int32_t block) {
    return n_users_[static_cast<std::size_t>(block)] == 0 ? 1 : 0;
  };
  int n_taken = 1 + idle(copy.block);
  for (int i = s.n_published; i < n; ++i) n_taken += idle(chain_[static_cast<std::size_t>(i)]);
  if (n_taken > n_available_blocks()) return false;
  return !HasWindows() || (windows_.Of(copy.block) != kNone &&
                           windows_.n_free() + windows_.n_idle() > shape_.SeenBlocks() + 1);
}

void BlockTables::CopyRows(Sequence& s, const Copy& copy) noexcept {
  Hold(s.rows_of = copy.block);
  if (HasWindows()) windows_.Hold(s.window_rows_of = windows_.Of(copy.block));
  s.blocks.push_back(Take());
  if (HasWindows()) s.window_blocks.push_back(TakeWindow());
  s.length = copy.at;
}

void BlockTables::ReleaseRows(Sequence& s) noexcept {
  if (s.rows_of != kNone) Release(std::exchange(s.rows_of, kNone));
  if (s.window_rows_of != kNone) windows_.Release(std::exchange(s.window_rows_of, kNone));
}

// The next blocks of chain_ become the sequence's.
void BlockTables::HoldKnown(Sequence& s, int n_more) noexcept {
  const int n_own = s.n_published;
  const int first = n_own + n_more - shape_.SeenBlocks();  // of the window blocks that are needed
  if (HasWindows() && first > s.first_held) {
    ReleaseWindows(s, s.first_held, std::min(first, n_own));
    s.first_held = first;
  }
  for (int i = n_own; i < n_own + n_more; ++i) {
    const std::int32_t next = chain_[static_cast<std::size_t>(i)];
    Hold(next);
    s.blocks.push_back(next);
    if (!HasWindows()) continue;
    const std::int32_t window = i < s.first_held ? kNone : windows_.Of(next);
    if (window != kNone) windows_.Hold(window);
    s.window_blocks.push_back(window);
  }
  s.n_published += n_more;
  s.length += n_more * tensor::kKvBlock;
}

int BlockTables::Share(SeqId seq, std::span<const Token> text, SaltId salt) noexcept {
  Sequence& s = sequences_[seq];
  if (s.length != s.n_published * tensor::kKvBlock) return 0;
  const int n_own = s.n_published, length = s.length;
  chain_.assign(s.blocks.begin(), s.blocks.end());
  const Found found =
      Find({.before = LastOf(s.blocks, salt), .n_blocks = n_own, .n_held = n_own - s.first_held},
           text, false);
  const int n_all = n_own + found.n_known;
  const PrefixIndex::Tail tail = FindTail(found, seq, Behind(text, n_all));
  const bool goes_on = tail.block != kNone;
  const Copy copy = goes_on || states_.none() ? Copy{} : FindCopy(seq, text, salt);
  const Pos at = std::max(copy.at, length + found.n_sharable * tensor::kKvBlock);
  const int n_more = goes_on ? found.n_known : at / tensor::kKvBlock - n_own;
  if (found.n_known > n_more) states_.SetBranch(seq, n_all * tensor::kKvBlock);
  if (!goes_on && at == length) return 0;
  HoldKnown(s, n_more);
  if (goes_on) {
    states_.Unpark(seq);
    TakeTail(s, tail);
  } else if (copy.at == at) {
    states_.Continue(seq, copy.place, at);
    if (copy.block != kNone) CopyRows(s, copy);
  } else {
    states_.Continue(seq, states_.checkpoints().Of(s.blocks.back()), at);
  }
  return s.length - length;
}

// Tokens of the text that the one begins with whose state is parked. The known blocks are in chain_.
int BlockTables::CommonWithParked(SeqId seq, std::span<const Token> text,
                                  SaltId salt) const noexcept {
  std::int32_t parts = states_.parked(seq);
  if (parts == kNone) return 0;
  const int n_known = static_cast<int>(chain_.size());
  for (int n = states_.parked_end(seq) / tensor::kKvBlock;; --n) {  // blocks before `parts`
    const std::int64_t before = index_.Before(parts);
    const bool is_known =
        n <= n_known && n > 0 && before == chain_[static_cast<std::size_t>(n) - 1];
    if (is_known || before == PrefixIndex::BeginOf(salt))
      return n * tensor::kKvBlock + index_.Common(parts, Behind(text, n));
    if (before < 0) return 0;
    parts = static_cast<std::int32_t>(before);
  }
}

SeqId BlockTables::SequenceOf(std::span<const Token> text, SaltId salt) const noexcept {
  if (states_.none()) return kNoSequence;
  chain_.clear();
  Find({.before = PrefixIndex::BeginOf(salt)}, text, false);
  SeqId found = kNoSequence;
  int most = 0;
  for (SeqId seq = 0; seq < shape_.n_sequences; ++seq) {
    const int common = CommonWithParked(seq, text, salt);
    if (common == 0 || common + kCopiedInputs < states_.parked_prompt(seq)) continue;
    const bool newer = found < 0 || ended(seq) > ended(found);
    if (common > most || (common == most && newer)) most = common, found = seq;
  }
  return found;
}

int BlockTables::SharedBlocks(std::span<const Token> text, SaltId salt) const noexcept {
  chain_.clear();
  return Find({.before = PrefixIndex::BeginOf(salt)}, text, true).n_sharable;
}

}  // namespace foretoken::kv
