// SPDX-License-Identifier: Apache-2.0
// server/response_store.h: the responses that clients may continue or read again, within a bound of
// bytes.
//
// A response belongs to the client that asked for it; to all others it is as one that never was. When
// there is no room, the least recently used responses go: those of clients that hold more than their
// share first, so that one client's flood costs the others a share at most. Any thread may use it.
#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "server/api/stored_response.h"

namespace foretoken::server {

// The most responses that one continues.
inline constexpr std::size_t kMostTurns = 2048;

// The bytes that a response takes.
std::size_t BytesOf(const StoredResponse& response);

class ResponseStore {
 public:
  explicit ResponseStore(std::size_t capacity) : capacity_(capacity), share_(capacity / 4) {}
  ResponseStore(const ResponseStore&) = delete;
  ResponseStore& operator=(const ResponseStore&) = delete;

  // False: it takes more than a client's share, and is not kept. REQUIRES: no other has its id.
  bool Put(const std::string& client, StoredResponse response);
  // Null: this client has no such response.
  SharedResponse Find(const std::string& client, const std::string& id);

  struct Found {
    ResponseChain chain;    // the oldest first
    bool missing = false;   // the response is not there, or one before it
    bool too_long = false;  // as many as were asked for are there, and one more
  };
  // A response and those before it.
  Found FindChain(const std::string& client, const std::string& id, std::size_t most);
  // False: this client has no such response.
  bool Delete(const std::string& client, const std::string& id);

  std::size_t bytes() const;
  std::size_t share() const { return share_; }

 private:
  struct Entry;
  struct Owner {
    std::size_t bytes = 0;
    std::list<Entry*> used;  // the least recently used first
  };
  struct Entry {
    SharedResponse response;
    std::size_t bytes = 0;
    std::map<std::string, Owner>::iterator owner;
    std::list<Entry*>::iterator of_all, of_owner;  // its places in the lists of use
  };
  using Entries = std::map<std::string, Entry>;

  Entry* Use(const std::string& client, const std::string& id);
  void Charge(Owner& owner, std::size_t before, std::size_t now);
  Entry& Victim(const Owner& client) const;
  void Erase(Entry& entry);

  const std::size_t capacity_, share_;
  mutable std::mutex mutex_;
  // Guarded by it.
  Entries entries_;  // by id
  std::map<std::string, Owner> owners_;
  std::set<Owner*> above_share_;
  std::list<Entry*> used_;  // of all, the least recently used first
  std::size_t bytes_ = 0;
};

}  // namespace foretoken::server
