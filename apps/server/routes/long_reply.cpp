// SPDX-License-Identifier: Apache-2.0
#include "server/routes/long_reply.h"

#include <memory>
#include <utility>

#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

class Reply : public LaterReply {
 public:
  Reply(Service& service, LogLine line, LongText text, ByteHold held)
      : service_(service), line_(std::move(line)), text_(std::move(text)), held_(std::move(held)) {}
  ~Reply() override {
    if (!text_.ended()) line_.Add("error", "client_gone");
    service_.metrics.AddResponse(kStatus);
    service_.log.Write(line_.Add("status", kStatus));
  }
  Reply(const Reply&) = delete;
  Reply& operator=(const Reply&) = delete;

  void Watch(std::function<void()>) override {}  // everything is there already
  std::chrono::steady_clock::time_point deadline() const override {
    return std::chrono::steady_clock::time_point::max();
  }
  bool Drop() override { return false; }
  Delivery Take() override {
    Delivery delivery;
    if (!std::exchange(begun_, true)) delivery.head = HttpResponse{.status = kStatus};
    text_.Write(kAtOnce, delivery.bytes);
    delivery.ended = text_.ended();
    delivery.more = !delivery.ended;
    return delivery;
  }

 private:
  static constexpr int kStatus = 200;

  Service& service_;
  LogLine line_;
  LongText text_;
  const ByteHold held_;
  bool begun_ = false;
};

}  // namespace

HttpResponse LongReply(Service& service, const HttpRequest& request, const LogLine& line,
                       LongText text, std::size_t bytes) {
  return {.later = std::make_shared<Reply>(service, line, std::move(text),
                                           ByteHold(request.charges->bytes, bytes))};
}

}  // namespace foretoken::server
