// SPDX-License-Identifier: Apache-2.0
// server/routes/responses.cpp: makes responses, of new items and of those of earlier responses.
#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/api/responses_schema.h"
#include "server/api/responses_writer.h"
#include "server/net/client_address.h"
#include "server/response_store.h"
#include "server/router.h"
#include "server/routes/generation.h"
#include "server/routes/routes.h"

namespace foretoken::server {
namespace {

std::string RandomDigits() {
  static thread_local std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// What a request reads of its client's responses, within a bound and in memory that counts as the
// request's.
class ClientItems final : public EarlierItems {
 public:
  ClientItems(Service& service, const HttpRequest& request)
      : service_(service),
        client_(ClientNameOf(request, service.options.api_keys)),
        held_(request.charges->bytes) {}

  const std::string& client() const { return client_; }

  Parsed<std::vector<const StoredItem*>> Until(const std::string& response_id) override {
    auto found = service_.responses.FindChain(client_, response_id, kMostTurns);
    if (found.missing) return Refuse(NoPreviousResponse(response_id));
    if (found.too_long) return Refuse(TooLongBefore("previous_response_id"));
    std::vector<const StoredItem*> items;
    for (SharedResponse& response : found.chain) {
      for (const auto* const list : {&response->input, &response->output})
        for (const StoredItem& item : *list) {
          if (auto error = Hold(item, "previous_response_id")) return Refuse(*std::move(error));
          items.push_back(&item);
        }
      read_.push_back(std::move(response));
    }
    return items;
  }

  // "msg_0123_4" is the fifth of "resp_0123".
  Parsed<const StoredItem*> Output(const std::string& item_id) override {
    const std::size_t begin = item_id.find('_') + 1, end = item_id.rfind('_');
    if (begin == 0 || end < begin) return nullptr;
    std::size_t place = 0;
    std::from_chars(item_id.data() + end + 1, item_id.data() + item_id.size(), place);
    SharedResponse response =
        service_.responses.Find(client_, "resp_" + item_id.substr(begin, end - begin));
    if (response == nullptr || place >= response->output.size()) return nullptr;
    const StoredItem& item = response->output[place];
    if (item.id != item_id) return nullptr;
    if (auto error = Hold(item, "input")) return Refuse(*std::move(error));
    read_.push_back(std::move(response));
    return &item;
  }

  std::string NewId(std::string_view kind) override {
    if (number_.empty()) number_ = RandomDigits();
    return fmt::format("{}_{}_in{}", kind, number_, n_ids_++);
  }

 private:
  static ApiError TooLongBefore(const char* field) {
    return BadField(field,
                    "the earlier items are more than a request can read; begin a new conversation, "
                    "or send those that matter in input",
                    "context_length_exceeded");
  }

  // As much as a worker takes to read it.
  std::optional<ApiError> Hold(const StoredItem& item, const char* field) {
    bytes_ += kWorkPerBodyByte * static_cast<std::int64_t>(item.json.size());
    if (bytes_ > service_.overload.plan().requests / 4) return TooLongBefore(field);
    held_.Set(static_cast<std::size_t>(bytes_));
    return service_.overload.full() ? std::optional(NoMemory()) : std::nullopt;
  }

  Service& service_;
  const std::string client_;
  ByteHold held_;
  std::int64_t bytes_ = 0;
  ResponseChain read_;
  std::string number_;
  int n_ids_ = 0;
};

// Puts a response into the store, with its input, which counts as its request's until then.
std::function<bool(StoredResponse)> Keeper(Service& service, const HttpRequest& request,
                                           std::string client, std::vector<StoredItem> input) {
  struct Input {
    std::vector<StoredItem> items;
    ByteHold held;
  };
  std::size_t bytes = 0;
  for (const StoredItem& item : input) bytes += 2 * sizeof(item) + item.json.size();
  auto kept =
      std::make_shared<Input>(Input{std::move(input), ByteHold(request.charges->bytes, bytes)});
  return [&service, client = std::move(client), kept](StoredResponse response) {
    response.input = std::move(kept->items);
    return service.responses.Put(client, std::move(response));
  };
}

HttpResponse CreateResponse(Service& service, const HttpRequest& request, LogLine& line) {
  ClientItems earlier(service, request);
  ResponsesRequest read;
  Parsed<GenerationCall> call = ParseResponsesCall(request.body, service.limits, earlier, read);
  ResponsesReply reply{.echo = std::move(read.echo), .previous = std::move(read.previous)};
  if (call && read.store)
    reply.keep = Keeper(service, request, earlier.client(), std::move(read.input));
  return Generate(service, request, std::move(call), ResponsesWriter(std::move(reply)), line);
}

}  // namespace

extern const Route kResponsesRoute = {
    .method = "POST",
    .path = "/v1/responses",
    .about = "OpenAI's responses, below",
    .handle = CreateResponse,
    .reads =
        [](const ModelLimits& limits) {
          EarlierItems none;
          ResponsesRequest read;
          return MissingField(ParseResponsesCall("{}", limits, none, read));
        },
    .reply = "Response",
    .event = "ResponseEvent"};

}  // namespace foretoken::server
