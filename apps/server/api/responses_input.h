// SPDX-License-Identifier: Apache-2.0
// server/api/responses_input.h: the items of a request for OpenAI's responses, as the messages of a
// chat, and as they are stored.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/json_fields.h"
#include "server/api/stored_response.h"

namespace foretoken::server {

// Reads items in order. An answer's text and the calls after it are one message, as chats have them;
// reasoning is left out. Errors name the item; nothing is read after one.
class InputItems {
 public:
  // store: whether items of the input are to be stored. All must outlive this.
  InputItems(EarlierItems& earlier, bool store, std::optional<ApiError>& error)
      : earlier_(earlier), store_(store), error_(error) {}

  void AddText(std::string_view role, const std::string& content);
  // The items of a response and of those before it.
  void AddEarlier(const std::string& response_id);
  // The field of the request. fields: of the request.
  void AddInput(const Json& input, JsonFields& fields);

  Json TakeMessages();
  std::vector<StoredItem> TakeStored() { return std::move(stored_); }

 private:
  // What the model has thought, said and called between two other messages.
  struct Turn {
    std::string thought = {};
    std::optional<std::string> content = {};
    Json calls = Json::array();
  };

  void AddItem(const Json& item, const std::string& where);
  void AddReferred(JsonFields& fields);
  void Read(const Json& item, const std::string& type, JsonFields& fields);
  void ReadMessage(JsonFields& fields);
  void ReadCall(JsonFields& fields);
  void ReadOutput(JsonFields& fields);
  std::string ReadStored(const Json& item, const char* where);
  void Store(const Json& item, const std::string& type);
  Turn& OpenTurn();
  void EndTurn();

  EarlierItems& earlier_;
  const bool store_;
  std::optional<ApiError>& error_;
  Json messages_ = Json::array();
  std::optional<Turn> turn_;
  std::string thought_;                         // in front of the next item
  std::map<std::string, std::string> name_of_;  // by the id of the call
  std::set<std::string> ids_;                   // of items
  std::vector<StoredItem> stored_;
};

}  // namespace foretoken::server
