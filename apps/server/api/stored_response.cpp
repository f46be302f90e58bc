// SPDX-License-Identifier: Apache-2.0
#include "server/api/stored_response.h"

#include <fmt/format.h>

#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kPieceBytes = 16 << 10;

// Adds a text that `owner` keeps alive, in pieces.
void AddShared(LongText& all, std::string_view text, const std::shared_ptr<const void>& owner) {
  all.AddEach((text.size() + kPieceBytes - 1) / kPieceBytes,
              [text, owner](std::size_t i, std::string& out) {
                out += text.substr(i * kPieceBytes, kPieceBytes);
              });
}

}  // namespace

ApiError NoPreviousResponse(const std::string& id) {
  return BadField(
      "previous_response_id",
      fmt::format("no response '{}' is kept for this client, or none before it: ids are "
                  "those of its own responses with store true, and old ones make room "
                  "for new ones; send the items of earlier turns in input",
                  Shown(id, 64)),
      "previous_response_not_found");
}

LongText ResponseJson(const SharedResponse& response) {
  LongText text;
  AddShared(text, response->head, response);
  for (const StoredItem& item : response->output) {
    if (&item != &response->output.front()) text.Add(",");
    AddShared(text, item.json, response);
  }
  AddShared(text, response->tail, response);
  return text;
}

LongText ItemListJson(ResponseChain chain, const std::vector<const StoredItem*>& items,
                      bool has_more) {
  const auto owner = std::make_shared<const ResponseChain>(std::move(chain));
  LongText text;
  text.Add(R"({"object":"list","data":[)");
  for (const StoredItem* const item : items) {
    if (item != items.front()) text.Add(",");
    AddShared(text, item->json, owner);
  }
  const bool some = !items.empty();
  const Json rest = {{"first_id", some ? Json(items.front()->id) : Json()},
                     {"last_id", some ? Json(items.back()->id) : Json()},
                     {"has_more", has_more}};
  text.Add("]," + rest.written().substr(1));
  return text;
}

}  // namespace foretoken::server
