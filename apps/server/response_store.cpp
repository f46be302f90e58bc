// SPDX-License-Identifier: Apache-2.0
#include "server/response_store.h"

#include <algorithm>
#include <utility>

namespace foretoken::server {
namespace {

// What an entry takes beside its texts: nodes of maps and lists, the id as a key, a client's name.
constexpr std::size_t kEntryBytes = 640;
constexpr std::size_t kAllocationBytes = 16;  // beside what was asked for

std::size_t HeapBytes(const std::string& text) {
  return text.capacity() > sizeof(std::string) / 2 ? text.capacity() + 1 + kAllocationBytes : 0;
}

std::size_t HeapBytes(const std::vector<StoredItem>& items) {
  std::size_t bytes = items.capacity() * sizeof(StoredItem) + kAllocationBytes;
  for (const StoredItem& item : items) bytes += HeapBytes(item.id) + HeapBytes(item.json);
  return bytes;
}

void Shrink(std::vector<StoredItem>& items) {
  items.shrink_to_fit();
  for (StoredItem& item : items) {
    item.id.shrink_to_fit();
    item.json.shrink_to_fit();
  }
}

}  // namespace

std::size_t BytesOf(const StoredResponse& response) {
  std::size_t bytes = sizeof(response) + kEntryBytes;
  for (const std::string* const text :
       {&response.id, &response.previous, &response.head, &response.tail})
    bytes += HeapBytes(*text);
  return bytes + HeapBytes(response.input) + HeapBytes(response.output);
}

bool ResponseStore::Put(const std::string& client, StoredResponse response) {
  Shrink(response.input);
  Shrink(response.output);
  response.head.shrink_to_fit();
  response.tail.shrink_to_fit();
  const std::size_t bytes = BytesOf(response);
  if (bytes > share_) return false;
  SharedResponse shared = std::make_shared<const StoredResponse>(std::move(response));
  const std::scoped_lock lock(mutex_);
  Entry& entry = entries_[shared->id];
  entry.bytes = bytes;
  entry.response = std::move(shared);
  entry.owner = owners_.try_emplace(client).first;
  Owner& owner = entry.owner->second;
  entry.of_all = used_.insert(used_.end(), &entry);
  entry.of_owner = owner.used.insert(owner.used.end(), &entry);
  Charge(owner, 0, bytes);
  while (bytes_ > capacity_) Erase(Victim(owner));
  return true;
}

SharedResponse ResponseStore::Find(const std::string& client, const std::string& id) {
  const std::scoped_lock lock(mutex_);
  const Entry* const entry = Use(client, id);
  return entry != nullptr ? entry->response : nullptr;
}

ResponseStore::Found ResponseStore::FindChain(const std::string& client, const std::string& id,
                                              std::size_t most) {
  Found found;
  const std::scoped_lock lock(mutex_);
  for (std::string next = id; !next.empty(); next = found.chain.back()->previous) {
    const Entry* const entry = Use(client, next);
    found.missing = entry == nullptr;
    found.too_long = !found.missing && found.chain.size() == most;
    if (found.missing || found.too_long) break;
    found.chain.push_back(entry->response);
  }
  std::reverse(found.chain.begin(), found.chain.end());
  return found;
}

bool ResponseStore::Delete(const std::string& client, const std::string& id) {
  const std::scoped_lock lock(mutex_);
  Entry* const entry = Use(client, id);
  if (entry != nullptr) Erase(*entry);
  return entry != nullptr;
}

std::size_t ResponseStore::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

// The client's entry, from now on the most recently used one.
ResponseStore::Entry* ResponseStore::Use(const std::string& client, const std::string& id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || found->second.owner->first != client) return nullptr;
  Entry& entry = found->second;
  used_.splice(used_.end(), used_, entry.of_all);
  std::list<Entry*>& own = entry.owner->second.used;
  own.splice(own.end(), own, entry.of_owner);
  return &entry;
}

void ResponseStore::Charge(Owner& owner, std::size_t before, std::size_t now) {
  owner.bytes = owner.bytes - before + now;
  bytes_ = bytes_ - before + now;
  if (owner.bytes > share_)
    above_share_.insert(&owner);
  else
    above_share_.erase(&owner);
}

// What goes when this client puts a response in. No response is larger than a share, so one that holds
// more has an older one.
ResponseStore::Entry& ResponseStore::Victim(const Owner& client) const {
  if (client.bytes > share_) return *client.used.front();
  if (!above_share_.empty()) return *(*above_share_.begin())->used.front();
  return *used_.front();
}

void ResponseStore::Erase(Entry& entry) {
  const auto owner = entry.owner;
  used_.erase(entry.of_all);
  owner->second.used.erase(entry.of_owner);
  Charge(owner->second, entry.bytes, 0);
  if (owner->second.used.empty()) owners_.erase(owner);
  entries_.erase(std::string(entry.response->id));
}

}  // namespace foretoken::server
