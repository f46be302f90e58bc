// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/open_order.h"

#include "loader/drafts/own_copy.h"

namespace foretoken::loader {
namespace {

tl::unexpected<Error> DamagedOrder() {
  return Fail(ErrorCode::kIo,
              "ranks: rank 0 sent a damaged message; start all ranks with the same program");
}

}  // namespace

void WriteTeam(const TeamOrder& team, model::Message& message) {
  message.AddText(team.isa);
  message.Add(team.threads);
  message.Add(static_cast<std::int32_t>(team.pin));
}

Result<TeamOrder> ReadTeam(model::Words words) {
  TeamOrder team;
  team.isa = words.TakeText();
  team.threads = words.Take();
  team.pin = words.Take() != 0;
  if (!words.good()) return DamagedOrder();
  return team;
}

void WriteOpen(const OpenOrder& order, model::Message& message) {
  const model::RunnerOptions& o = order.options;
  message.AddText(order.path);
  for (const int word :
       {order.target, order.vocabulary, o.max_rows, o.max_logit_rows, o.max_positions,
        static_cast<int>(o.cache.k_type), static_cast<int>(o.cache.v_type), o.cache.n_blocks,
        o.cache.n_window_blocks, o.state.n_sequences, o.state.rows, o.state.n_checkpoints})
    message.Add(word);
  message.AddText(order.copy ? NameOf(*order.copy) : "");
  message.AddList(o.output_tokens);
  message.AddList(order.shares);
  message.AddText(order.repack_cache);
  message.Add(order.repack_cache_gb);
}

Result<OpenOrder> ReadOpen(model::Words words) {
  OpenOrder order;
  model::RunnerOptions& o = order.options;
  order.path = words.TakeText();
  order.target = words.Take();
  order.vocabulary = words.Take();
  o.max_rows = words.Take();
  o.max_logit_rows = words.Take();
  o.max_positions = words.Take();
  o.cache.k_type = static_cast<tensor::KvType>(words.Take());
  o.cache.v_type = static_cast<tensor::KvType>(words.Take());
  o.cache.n_blocks = words.Take();
  o.cache.n_window_blocks = words.Take();
  o.state.n_sequences = words.Take();
  o.state.rows = words.Take();
  o.state.n_checkpoints = words.Take();
  if (const std::string types = words.TakeText(); !types.empty()) {
    const auto copy = CopyTypesFor(types);
    if (!copy) return DamagedOrder();
    order.copy = *copy;
  }
  const auto tokens = words.TakeList();
  o.output_tokens.assign(tokens.begin(), tokens.end());
  const auto shares = words.TakeList();
  order.shares.assign(shares.begin(), shares.end());
  order.repack_cache = words.TakeText();
  order.repack_cache_gb = words.Take();
  if (!words.good() || order.repack_cache_gb < 0) return DamagedOrder();
  return order;
}

}  // namespace foretoken::loader
