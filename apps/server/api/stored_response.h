// SPDX-License-Identifier: Apache-2.0
// server/api/stored_response.h: what is kept of a response, so that its client can continue it and
// read it again.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/api_error.h"
#include "server/api/long_text.h"

namespace foretoken::server {

struct StoredItem {
  std::string id;
  std::string json;  // an object, its id included, on one line
};

struct StoredResponse {
  std::string id, previous;               // previous: of the one that it continues, or ""
  std::vector<StoredItem> input, output;  // input: its own, without those of earlier responses
  std::string head, tail;                 // its JSON before and behind the output items
};

using SharedResponse = std::shared_ptr<const StoredResponse>;
using ResponseChain = std::vector<SharedResponse>;  // each continues the one before it

// The response, or one before it, is not there.
ApiError NoPreviousResponse(const std::string& id);

// Where a request finds the items of earlier responses; here, none are there. Items live as long as
// this.
class EarlierItems {
 public:
  virtual ~EarlierItems() = default;
  // Inputs and outputs of a response and of all before it, the oldest first.
  virtual Parsed<std::vector<const StoredItem*>> Until(const std::string& response_id) {
    return Refuse(NoPreviousResponse(response_id));
  }
  // An item that a model wrote. Null: there is none with this id.
  virtual Parsed<const StoredItem*> Output(const std::string& item_id [[maybe_unused]]) {
    return nullptr;
  }
  // An id for an item of the request. kind: "msg".
  virtual std::string NewId(std::string_view kind) { return std::string(kind); }
};

// The response as its client got it, written as it is read.
LongText ResponseJson(const SharedResponse& response);
// OpenAI's list of some items of a chain.
LongText ItemListJson(ResponseChain chain, const std::vector<const StoredItem*>& items,
                      bool has_more);

}  // namespace foretoken::server
