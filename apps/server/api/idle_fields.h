// SPDX-License-Identifier: Apache-2.0
// server/api/idle_fields.h: fields of the APIs that are accepted and change nothing here. The log
// tells of each once in a server's life for a path, at the first request that has it.
//
// Names are those that readers ask for, never a client's, so there are few of them.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace foretoken::server {

// While it lives, the thread's JsonFields note in it the fields that change nothing.
class IdleFields {
 public:
  IdleFields() : outer_(std::exchange(OfThread(), this)) {}
  ~IdleFields() { OfThread() = outer_; }
  IdleFields(const IdleFields&) = delete;
  IdleFields& operator=(const IdleFields&) = delete;

  void Add(std::string name) { names_.push_back(std::move(name)); }
  const std::vector<std::string>& names() const { return names_; }

  static IdleFields*& OfThread() {
    static thread_local IdleFields* fields = nullptr;
    return fields;
  }

 private:
  IdleFields* const outer_;
  std::vector<std::string> names_;
};

// What has been told. Any thread.
class ToldFields {
 public:
  // True for the first call with this name.
  bool Tell(const std::string& name) {
    const std::lock_guard lock(mutex_);
    return told_.insert(name).second;
  }

 private:
  std::mutex mutex_;
  std::set<std::string> told_;
};

}  // namespace foretoken::server
