// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/encode/prefix_index.h"

#include <algorithm>

namespace foretoken::text {

PrefixIndex::PrefixIndex(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.text < b.text; });
  entries_.erase(std::unique(entries_.begin(), entries_.end(),
                             [](const Entry& a, const Entry& b) { return a.text == b.text; }),
                 entries_.end());
  for (const Entry& entry : entries_) ++first_[static_cast<unsigned char>(entry.text[0]) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
}

bool PrefixIndex::Step(Node& node, char byte) const {
  const auto value = static_cast<unsigned char>(byte);
  if (node.depth == 0) {
    node = {first_[value], first_[value + 1u], 1};
    return node.low != node.high;
  }
  const std::uint32_t depth = node.depth;
  const auto byte_of = [depth](const Entry& entry) {
    return static_cast<unsigned char>(entry.text[depth]);
  };
  // A text that ends here comes first in the range, and leads no further.
  auto low = entries_.begin() + node.low + (At(node) == kNoToken ? 0 : 1);
  auto high = entries_.begin() + node.high;
  low = std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) < value; });
  high =
      std::partition_point(low, high, [&](const Entry& entry) { return byte_of(entry) == value; });
  node = {static_cast<std::uint32_t>(low - entries_.begin()),
          static_cast<std::uint32_t>(high - entries_.begin()), depth + 1};
  return low != high;
}

}  // namespace foretoken::text
