// SPDX-License-Identifier: Apache-2.0
#include "draft/sequence_lease.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace foretoken::draft {
namespace {

struct DrafterUse {
  bool all = false;             // an engine has it
  std::vector<bool> sequences;  // those that sessions have

  bool none() const {
    return !all && std::find(sequences.begin(), sequences.end(), true) == sequences.end();
  }
};

// The drafters in use; a lease keeps its drafter alive.
struct LeaseTable {
  std::mutex mutex;
  std::map<const foretoken::Drafter*, DrafterUse> uses;
};
// Never destroyed: static objects of a program may hold leases.
LeaseTable& Leases() {
  static LeaseTable& table = *new LeaseTable;
  return table;
}

}  // namespace

SequenceLease& SequenceLease::operator=(SequenceLease&& other) noexcept {
  std::swap(drafter_, other.drafter_);
  std::swap(sequence_, other.sequence_);
  std::swap(all_, other.all_);
  return *this;
}

SequenceLease::~SequenceLease() {
  if (!held()) return;
  LeaseTable& table = Leases();
  const std::lock_guard lock(table.mutex);
  const auto use = table.uses.find(drafter_.get());
  if (all_)
    use->second.all = false;
  else
    use->second.sequences[static_cast<std::size_t>(sequence_)] = false;
  if (use->second.none()) table.uses.erase(use);
}

Result<SequenceLease> SequenceLease::One(std::shared_ptr<foretoken::Drafter> drafter) {
  const int most = drafter->limits().max_sequences;
  LeaseTable& table = Leases();
  const std::lock_guard lock(table.mutex);
  DrafterUse& use = table.uses[drafter.get()];
  if (use.all)
    return InvalidArgument(fmt::format(
        "drafter '{}': an engine uses it; make another one for this text", drafter->name()));
  const auto free = std::find(use.sequences.begin(), use.sequences.end(), false);
  const auto sequence = static_cast<int>(free - use.sequences.begin());
  if (most > 0 && sequence >= most)
    return InvalidArgument(fmt::format(
        "drafter '{}': it drafts for {} text(s) at a time, and other sessions have begun as many; "
        "end one, or make it for more (max_sequences)",
        drafter->name(), most));
  if (free == use.sequences.end())
    use.sequences.push_back(true);
  else
    *free = true;
  return SequenceLease(std::move(drafter), sequence, false);
}

Result<SequenceLease> SequenceLease::All(std::shared_ptr<foretoken::Drafter> drafter) {
  LeaseTable& table = Leases();
  const std::lock_guard lock(table.mutex);
  DrafterUse& use = table.uses[drafter.get()];
  if (!use.none())
    return InvalidArgument(fmt::format(
        "drafter '{}': another engine, or a session whose text has not ended, uses it; end that "
        "first, or make another one",
        drafter->name()));
  use.all = true;
  return SequenceLease(std::move(drafter), 0, true);
}

}  // namespace foretoken::draft
