// SPDX-License-Identifier: Apache-2.0
// server/routes/stored_responses.cpp: reads and deletes the responses that are kept for a client.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/api/object_text.h"
#include "server/net/client_address.h"
#include "server/net/query.h"
#include "server/response_store.h"
#include "server/router.h"
#include "server/routes/long_reply.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

using ListedItems = std::vector<const StoredItem*>;

std::string ClientOfRequest(const Service& service, const HttpRequest& request) {
  return ClientNameOf(request, service.options.api_keys);
}

HttpResponse FailedResponse(const ApiError& error, LogLine& line) {
  line.Add("error", NameOf(error));
  return ErrorResponse(error);
}

ApiError NoSuchResponse(const std::string& id, std::string_view why) {
  return {
      .status = 404,
      .message = fmt::format("response_id: '{}' {}; create the response again", Shown(id, 64), why),
      .param = "response_id",
      .code = "response_not_found"};
}

ApiError UnknownResponse(const std::string& id) {
  return NoSuchResponse(id, "is no response that is kept for this client");
}

HttpResponse GetResponse(Service& service, const HttpRequest& request, LogLine& line) {
  const std::string id = NameInPath(request);
  if (QueryField(request.query, "stream") == "true")
    return FailedResponse(
        BadField("stream", "a stored response is not sent as events; leave it out",
                 "unsupported_parameter"),
        line);
  const SharedResponse response = service.responses.Find(ClientOfRequest(service, request), id);
  if (response == nullptr) return FailedResponse(UnknownResponse(id), line);
  return LongReply(service, request, line, ResponseJson(response), BytesOf(*response));
}

HttpResponse DeleteResponse(Service& service, const HttpRequest& request, LogLine& line) {
  const std::string id = NameInPath(request);
  if (!service.responses.Delete(ClientOfRequest(service, request), id))
    return FailedResponse(UnknownResponse(id), line);
  return {.body = Json{{"id", id}, {"object", "response"}, {"deleted", true}}.written()};
}

HttpResponse CancelResponse(Service& service, const HttpRequest& request, LogLine& line) {
  const std::string id = NameInPath(request);
  if (service.responses.Find(ClientOfRequest(service, request), id) == nullptr)
    return FailedResponse(UnknownResponse(id), line);
  return FailedResponse(
      {.message =
           "response: it has ended, and responses in the background are not supported; close "
           "the connection of one that is being made",
       .code = "unsupported_parameter"},
      line);
}

// Which items of a list a client asks for.
struct ItemPage {
  std::size_t limit = 20;
  bool newest_first = true;
  std::optional<std::string> after;  // an item's id
};

Parsed<ItemPage> ReadPage(std::string_view query) {
  constexpr std::size_t kMostItems = 100;
  ItemPage page{.after = QueryField(query, "after")};
  if (const auto limit = QueryField(query, "limit")) {
    const char* const end = limit->data() + limit->size();
    const auto [last, error] = std::from_chars(limit->data(), end, page.limit);
    if (error != std::errc() || last != end || page.limit < 1 || page.limit > kMostItems)
      return Refuse(BadField("limit", fmt::format("'{}' is not in 1..{}; give such a number",
                                                  Shown(*limit, 32), kMostItems)));
  }
  const std::string order = QueryField(query, "order").value_or("desc");
  if (order != "asc" && order != "desc")
    return Refuse(
        BadField("order", fmt::format("'{}' is not known; use asc or desc", Shown(order, 32))));
  page.newest_first = order == "desc";
  return page;
}

// All that a response was made of, the oldest first.
ListedItems ItemsBefore(const ResponseChain& chain) {
  ListedItems items;
  const auto add = [&items](const std::vector<StoredItem>& more) {
    for (const StoredItem& item : more) items.push_back(&item);
  };
  for (const SharedResponse& response : chain) {
    add(response->input);
    if (response != chain.back()) add(response->output);
  }
  return items;
}

HttpResponse ListInputItems(Service& service, const HttpRequest& request, LogLine& line) {
  const std::string id = NameInPath(request);
  auto found = service.responses.FindChain(ClientOfRequest(service, request), id, kMostTurns + 1);
  if (found.missing)
    return FailedResponse(
        found.chain.empty() ? UnknownResponse(id)
                            : NoSuchResponse(id, "continues a response that is not kept any more"),
        line);
  const auto page = ReadPage(request.query);
  if (!page) return FailedResponse(page.error(), line);
  ListedItems items = ItemsBefore(found.chain);
  if (page->newest_first) std::reverse(items.begin(), items.end());
  if (page->after) {
    const auto last = std::find_if(items.begin(), items.end(), [&](const StoredItem* item) {
      return item->id == *page->after;
    });
    if (last == items.end())
      return FailedResponse(
          BadField("after",
                   fmt::format("'{}' is no item of this response; give the last_id of a list",
                               Shown(*page->after, 64))),
          line);
    items.erase(items.begin(), last + 1);
  }
  const bool has_more = items.size() > page->limit;
  items.resize(std::min(items.size(), page->limit));
  std::size_t bytes = 0;
  for (const StoredItem* const item : items) bytes += item->json.size();
  return LongReply(service, request, line, ItemListJson(std::move(found.chain), items, has_more),
                   bytes);
}

}  // namespace

extern const Route kStoredResponseRoute = {
    .method = "GET",
    .path = "/v1/responses/*",
    .about = "a stored response as it was; an unknown id is 404, `response_not_found`",
    .handle = GetResponse,
    .reply = "Response"};
extern const Route kDeleteResponseRoute = {
    .method = "DELETE",
    .path = "/v1/responses/*",
    .about = "removes it: `{\"id\", \"object\": \"response\", \"deleted\": true}`",
    .handle = DeleteResponse,
    .reply = "DeletedResponse"};
extern const Route kInputItemsRoute = {
    .method = "GET",
    .path = "/v1/responses/*/input_items",
    .about =
        "the items that it was made of, those of earlier responses too; `limit`, `order`, `after`",
    .handle = ListInputItems,
    .reply = "InputItems"};
extern const Route kCancelResponseRoute = {.method = "POST",
                                           .path = "/v1/responses/*/cancel",
                                           .about = "400, as nothing runs in the background",
                                           .handle = CancelResponse,
                                           .without_body = true,
                                           .refuses = 400};

}  // namespace foretoken::server
