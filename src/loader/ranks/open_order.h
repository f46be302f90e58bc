// SPDX-License-Identifier: Apache-2.0
// loader/ranks/open_order.h: what rank 0 tells the other ranks when it opens an engine.
#pragma once

#include <string>
#include <vector>

#include "foretoken/result.h"
#include "model/local_runner.h"
#include "model/ranks/fields.h"

namespace foretoken::loader {

// The threads that compute, as EngineOptions say.
struct TeamOrder {
  std::string isa;
  int threads = 0;
  bool pin = false;
};

template <class Record, class Field>
requires std::same_as<std::remove_const_t<Record>, TeamOrder>
void VisitFields(Record& team, Field&& field) {
  field(team.isa), field(team.threads), field(team.pin);
}

// A network to load a part of.
struct OpenOrder {
  std::string path;
  int target = -1;   // of a head or a copy: the number of the network that it belongs to
  std::string copy;  // the types of a copy of `target`, by name; empty: the network is none
  int vocabulary = 0;
  model::RunnerOptions options;  // without `ranks`; `division` by `shares`
  std::vector<int> shares;
  std::string repack_cache;
  int repack_cache_gb = 0;
};

template <class Record, class Field>
requires std::same_as<std::remove_const_t<Record>, OpenOrder>
void VisitFields(Record& order, Field&& field) {
  auto& o = order.options;
  field(order.path), field(order.target), field(order.copy), field(order.vocabulary);
  field(o.max_rows), field(o.max_logit_rows), field(o.max_positions), field(o.output_tokens);
  field(o.cache.k_type), field(o.cache.v_type), field(o.cache.n_blocks);
  field(o.cache.n_window_blocks), field(o.cache.key_bounds);
  field(o.state.n_sequences), field(o.state.rows), field(o.state.n_checkpoints);
  field(order.shares), field(order.repack_cache), field(order.repack_cache_gb);
}

// Reads an order that VisitFields describes. Error: kIo (a damaged message).
template <class Order>
[[nodiscard]] Result<Order> ReadOrder(std::span<const std::int32_t> body) {
  model::Words words(body);
  Order order;
  VisitFields(order, model::TakeFields(words));
  if (words.good() && words.empty()) return order;
  return Fail(ErrorCode::kIo,
              "ranks: rank 0 sent a damaged message; start all ranks with the same program");
}

}  // namespace foretoken::loader
