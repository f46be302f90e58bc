// SPDX-License-Identifier: Apache-2.0
// model/ranks/heads.h: which heads of a layer each rank computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/config.h"
#include "model/ranks/division.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

// Queries [queries.begin, queries.end), and the key-value heads that they read. Where there are more
// ranks than key-value heads, several ranks have the same one.
struct HeadRange {
  OutputRange queries, keys;
};

// The results of a rank's queries fill whole blocks of 32 columns, and as far as there are enough
// key-value heads, a rank has all queries that read the same one.
inline HeadRange HeadsOf(const AttentionConfig& config, const Division& division, int rank) {
  const int group = config.n_heads / config.n_kv_heads;
  const int fill = tensor::kBlock / std::gcd(tensor::kBlock, config.head_dim);
  const int unit = config.n_kv_heads >= division.size() ? std::lcm(group, fill) : fill;
  HeadRange heads;
  heads.queries = division.Of(rank, config.n_heads, unit);
  if (heads.queries.n() > 0)
    heads.keys = {heads.queries.begin / group, (heads.queries.end - 1) / group + 1};
  return heads;
}
inline HeadRange OwnHeads(const AttentionConfig& config, const Division& division) {
  return HeadsOf(config, division, division.rank());
}

// Latent attention: the heads whose queries a rank computes. All of them read the same keys, which
// every rank has.
inline OutputRange HeadsOf(const LatentAttentionConfig& config, const Division& division,
                           int rank) {
  const int fill = tensor::kBlock / std::gcd(tensor::kBlock, config.value_dim);
  return division.Of(rank, config.n_heads, fill);
}
inline OutputRange OwnHeads(const LatentAttentionConfig& config, const Division& division) {
  return HeadsOf(config, division, division.rank());
}

// The first column of each rank's results, and the end.
inline std::vector<std::int32_t> HeadColumnsByRank(const AttentionConfig& config,
                                                   const Division& division) {
  std::vector<std::int32_t> begins;
  for (int r = 0; r < division.size(); ++r)
    begins.push_back(HeadsOf(config, division, r).queries.begin * config.head_dim);
  begins.push_back(config.n_heads * config.head_dim);
  return begins;
}
inline std::vector<std::int32_t> HeadColumnsByRank(const LatentAttentionConfig& config,
                                                   const Division& division) {
  std::vector<std::int32_t> begins;
  for (int r = 0; r < division.size(); ++r)
    begins.push_back(HeadsOf(config, division, r).begin * config.value_dim);
  begins.push_back(config.n_heads * config.value_dim);
  return begins;
}

}  // namespace foretoken::model
