// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace foretoken::grammar {

GrammarCache::GrammarCache(std::shared_ptr<const TokenTrie> vocabulary, Grammar::Cut cut,
                           std::size_t max_bytes)
    : vocabulary_(std::move(vocabulary)), cut_(std::move(cut)), max_bytes_(max_bytes) {}

Result<std::shared_ptr<const Grammar>> GrammarCache::Get(std::string_view gbnf) {
  {
    const std::scoped_lock lock(mutex_);
    if (auto known = Find(gbnf)) return known;
  }
  FORETOKEN_TRY(auto grammar, Grammar::Compile(gbnf, vocabulary_, cut_));
  const std::scoped_lock lock(mutex_);
  if (auto known = Find(gbnf)) return known;  // another thread was faster
  entries_.push_front({std::string(gbnf), grammar});
  DropIdle();
  if (SumOfBytes() <= max_bytes_) return grammar;
  for (Entry& entry : entries_) entry.grammar->Trim();
  if (SumOfBytes() <= max_bytes_) return grammar;
  entries_.pop_front();
  return FailField(ErrorCode::kNoMemory, "grammar",
                   fmt::format("those of the requests in progress take {} MiB, and no more is "
                               "kept; try again later",
                               max_bytes_ >> 20));
}

void GrammarCache::Limit(std::size_t max_bytes) noexcept {
  {
    const std::scoped_lock lock(mutex_);
    max_bytes_ = max_bytes;
  }
  Bound();
}

void GrammarCache::Bound() noexcept {
  const std::scoped_lock lock(mutex_);
  DropIdle();
  for (std::size_t bytes = SumOfBytes(); bytes > max_bytes_;) {
    const std::size_t given_back = TrimLargest();
    if (given_back == 0) return;
    bytes -= std::min(bytes, given_back);
  }
}

std::size_t GrammarCache::bytes() const noexcept {
  const std::scoped_lock lock(mutex_);
  return SumOfBytes();
}

std::shared_ptr<const Grammar> GrammarCache::Find(std::string_view gbnf) {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& e) { return e.gbnf == gbnf; });
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return found->grammar;
}

std::size_t GrammarCache::SumOfBytes() const noexcept {
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) bytes += entry.bytes();
  return bytes;
}

// Drops the oldest first, until few enough are left and all fit.
void GrammarCache::DropIdle() noexcept {
  std::size_t bytes = SumOfBytes();
  auto n_idle = static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return e.idle(); }));
  for (auto entry = entries_.end(); entry != entries_.begin();) {
    --entry;
    if (n_idle <= kMostIdle && bytes <= max_bytes_) return;
    if (!entry->idle()) continue;
    bytes -= entry->bytes();
    --n_idle;
    entry = entries_.erase(entry);
  }
}

// Returns the number of bytes that were released.
std::size_t GrammarCache::TrimLargest() noexcept {
  const auto largest = std::max_element(
      entries_.begin(), entries_.end(),
      [](const Entry& a, const Entry& b) { return a.grammar->bytes() < b.grammar->bytes(); });
  if (largest == entries_.end()) return 0;
  const std::size_t before = largest->grammar->bytes();
  largest->grammar->Trim();
  return before - std::min(before, largest->grammar->bytes());
}

}  // namespace foretoken::grammar
