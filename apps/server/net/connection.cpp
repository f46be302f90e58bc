// SPDX-License-Identifier: Apache-2.0
#include "server/net/connection.h"

#include <fmt/format.h>
#include <poll.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include <algorithm>
#include <array>
#include <exception>
#include <random>
#include <utility>

#include "server/net/reply_head.h"

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kLinger{500};    // for input after the last answer
constexpr milliseconds kLastWord{200};  // for a request that was on its way when the server stopped
constexpr std::chrono::microseconds kTimePerByte{1'000'000 / 1024};  // the slowest allowed pace
constexpr int kRequestsPerConnection = 10'000;
constexpr int kRequestsPerTurn = 16;           // of one client, before others have their turn
constexpr std::size_t kReadAhead = 64 << 10;   // of requests behind the one that is being answered
constexpr std::size_t kOwnBytes = 4 << 10;     // of a connection, without its buffers
constexpr std::size_t kReadAtOnce = 16 << 10;  // of one client, before others have their turn
constexpr std::chrono::seconds kFresh{1};      // a connection's, for its first request to arrive
constexpr milliseconds kFreshInReserve{20};
constexpr std::chrono::seconds kSoon{5};        // for a request to arrive when others wait
constexpr milliseconds kReserveTime{2000};      // of a connection in reserve
constexpr std::size_t kSmallBuffer = 16 << 10;  // kept between requests
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

std::string NewId() {
  thread_local std::mt19937_64 numbers{(std::uint64_t{std::random_device()()} << 32) |
                                       std::random_device()()};
  return fmt::format("req-{:016x}", numbers());
}

void Shrink(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kSmallBuffer) std::string().swap(buffer);
}

}  // namespace

// `function`, with a reference to this connection; not called once the connection is closed.
template <typename F>
auto Connection::Bound(F function) {
  return [self = shared_from_this(), function = std::move(function)](auto&&... arguments) mutable {
    if (self->state_ == State::kClosed) return;
    try {
      function(std::forward<decltype(arguments)>(arguments)...);
    } catch (const std::exception&) {  // no memory, most likely
      self->Close();
    }
  };
}

Connection::Connection(Shared& shared, Socket socket, Client client)
    : shared_(shared),
      socket_(std::move(socket)),
      client_(std::move(client)),
      account_(std::make_shared<ByteLedger::Account>(shared.bytes)),
      held_(account_, kOwnBytes),
      reader_({.body_bytes = static_cast<std::size_t>(shared.options.max_body_bytes)}),
      patience_(std::chrono::seconds(shared.options.write_timeout_s)) {}

void Connection::Begin() {
  AwaitRequest();
  AwaitInput();
}

void Connection::BeginRefused(int status) {
  Refuse(status);
}

std::optional<Connection::Clock::time_point> Connection::could_go_since(
    Clock::time_point now) const {
  if (state_ == State::kAnswering || state_ == State::kClosed) return std::nullopt;
  Clock::duration own = {};
  if (state_ == State::kArriving || n_requests_ == 0)
    own = client_.in_reserve           ? Clock::duration(kFreshInReserve)
          : state_ == State::kArriving ? Clock::duration(kSoon)
                                       : Clock::duration(kFresh);
  if (now - since_ < own) return std::nullopt;
  return since_;
}

// ---- Input.

void Connection::AwaitInput() {
  if (state_ == State::kClosed || input_ended_ || std::exchange(reading_, true)) return;
  socket_.async_wait(Socket::wait_read, Bound([this](error_code error) {
                       reading_ = false;
                       error ? Close() : Receive();
                     }));
}

void Connection::Receive() {
  thread_local std::array<char, kReadAtOnce> buffer;
  error_code error;
  const std::size_t n = socket_.read_some(asio::buffer(buffer), error);
  if (error == asio::error::eof) return EndInput();
  const bool later = error == asio::error::would_block || error == asio::error::interrupted;
  if (error && !later) return Close();
  if (!later && state_ != State::kLeaving) {
    input_.append(buffer.data(), n);
    Look();
    Account();
  }
  // A client that keeps sending while it is answered has to wait.
  if (state_ == State::kAnswering && input_.size() >= kReadAhead) return AwaitFailure();
  AwaitInput();
}

// A client that ends its sending looks the same whether it waits for its answer or has closed. So
// the server sends an interim response, which HTTP/1.1 allows at any time: a closed socket resets
// it. A client that had its "100 Continue" gets no second one, and HTTP/1.0 has none. There the
// system's keep-alive probe is reset once the client's system has forgotten the connection.
void Connection::EndInput() {
  input_ended_ = true;
  if (state_ == State::kLeaving) return Close();
  if (state_ != State::kAnswering) return Look();
  if (!head_sent_ && request_->http11 && !std::exchange(asked_, true)) SendNow(kContinue);
  AwaitFailure();
}

// Checks whether the connection is broken while nothing is read.
void Connection::AwaitFailure() {
  if (state_ == State::kClosed || std::exchange(watching_, true)) return;
  socket_.async_wait(Socket::wait_error, Bound([this](error_code error) {
                       watching_ = false;
                       if (error || Failed()) return Close();
                       AwaitFailure();  // it was urgent data
                     }));
}

bool Connection::Failed() {
  ::pollfd entry = {.fd = socket_.native_handle(), .events = 0, .revents = 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

void Connection::Enter(State state, milliseconds time) {
  state_ = state;
  since_ = Clock::now();
  if (client_.in_reserve) time = std::min(time, kReserveTime);
  if (shared_.stop_end) time = std::min(time, kLastWord);
  until_ = since_ + time;
}

void Connection::AwaitRequest() {
  Enter(State::kIdle, std::chrono::seconds(shared_.options.idle_timeout_s));
}

// Handles the input: as many requests as have arrived.
void Connection::Look() {
  if (std::exchange(looking_, true)) return;  // already handling input: an answer has left at once
  int n = 0;
  while ((state_ == State::kIdle || state_ == State::kArriving) && Advance())
    if (state_ == State::kIdle && ++n == kRequestsPerTurn) {
      asio::post(shared_.io, Bound([this] { Look(); }));
      break;
    }
  looking_ = false;
  if (!input_ended_ || n == kRequestsPerTurn) return;
  if (state_ == State::kIdle) Close();
  if (state_ == State::kArriving) Refuse(400);
}

// Reads the arriving request further. False: more input is needed.
bool Connection::Advance() {
  using Reading = RequestReader::State;
  if (reader_.state() != Reading::kWhole) input_.erase(0, reader_.Read(input_));
  const Reading reading = reader_.state();
  if (reading == Reading::kEmpty) return false;
  if (state_ == State::kIdle) {
    Enter(State::kArriving, std::chrono::seconds(shared_.options.read_timeout_s));
  }
  if (reading == Reading::kRefused) return Refuse(reader_.refusal()), true;
  if (reading != Reading::kHead && !std::exchange(head_seen_, true)) {
    NameRequest();
    auto answer = shared_.responder.AnswerHead(reader_.request());
    if (answer) Respond(*std::move(answer), reading != Reading::kWhole);
    return true;
  }
  if (reading == Reading::kWhole) return CallWorker(), true;
  Account();
  if (shared_.overload.full()) return Refuse(503), true;
  if (reading == Reading::kBody && reader_.expects_continue() && !std::exchange(asked_, true))
    SendNow(kContinue);
  return false;
}

void Connection::NameRequest() {
  HttpRequest& request = reader_.request();
  const std::string_view id = request.Field("x-request-id");
  request.id = IsSaneId(id) ? std::string(id) : NewId();
  request.remote_address = client_.address;
  request.in_reserve = client_.in_reserve;
  request.charges = std::make_shared<Charges>();
  request.charges->bytes = account_;
}

void Connection::CallWorker() {
  const std::size_t body = reader_.request().body.size(), bytes = kWorkPerBodyByte * body;
  if (shared_.workers.TooLarge(bytes)) return Refuse(413);
  state_ = State::kAnswering;
  request_ = std::make_shared<HttpRequest>(std::move(reader_.request()));
  request_->charges->body = ByteHold(account_, body);
  awaits_worker_ = true;
  Account();
  const auto response = std::make_shared<HttpResponse>();
  shared_.workers.Post(
      {.bytes = bytes,
       .begins =
           [self = shared_from_this()] {
             const bool wanted = std::exchange(self->awaits_worker_, false);
             self->with_worker_ = wanted;
             return wanted && self->state_ != State::kClosed;
           },
       .run =
           [request = request_, response, &responder = shared_.responder]() mutable {
             try {
               if (!request->charges->client_gone) *response = responder.Answer(*request);
             } catch (const std::exception&) {  // no memory, most likely
               *response = responder.Refuse(*request, 500);
             }
             request.reset();
           },
       .ended = Bound([this, response] {
         with_worker_ = false;
         DropBody();
         Respond(std::move(*response), false);
       })});
}

void Connection::DropBody() {
  request_->body = std::string();
  request_->charges->body.Set(0);
}

void Connection::Refuse(int status) {
  if (reader_.request().id.empty()) NameRequest();
  Respond(shared_.responder.Refuse(reader_.request(), status), true);
}

// ---- Output.

// close: close the connection after the answer.
void Connection::Respond(HttpResponse response, bool close) {
  state_ = State::kAnswering;
  ++n_requests_;
  close_ = close || !reader_.keeps_connection();
  if (!request_) request_ = std::make_shared<HttpRequest>(std::move(reader_.request()));
  later_headers_ = std::move(response.headers);
  if (response.later) {
    later_ = std::move(response.later);
    later_->Watch(Waker());
    Pull();
  } else {
    Delivery whole{.bytes = std::move(response.body), .ended = true};
    response.headers.clear();
    whole.head = std::move(response);
    Deliver(std::move(whole));
  }
}

void Connection::SendHead(HttpResponse head, std::optional<std::size_t> n_bytes) {
  head_sent_ = true;
  chunked_ = !n_bytes && request_->http11;
  const bool last = n_requests_ >= kRequestsPerConnection || shared_.stop_end ||
                    client_.in_reserve || shared_.overload.ends_connections();
  close_ = close_ || last || (!n_bytes && !chunked_) || (input_ended_ && input_.empty());
  head.headers.insert(head.headers.end(), later_headers_.begin(), later_headers_.end());
  output_ += HeadText(head, {.http11 = request_->http11,
                             .keeps_connection = !close_,
                             .idle_timeout_s = shared_.options.idle_timeout_s,
                             .n_bytes = n_bytes,
                             .request_id = request_->id});
}

// Any thread may call the result. It posts no second call before the first has run.
std::function<void()> Connection::Waker() {
  return [weak = weak_from_this(), &io = shared_.io,
          posted = std::make_shared<std::atomic<bool>>(false)] {
    if (posted->exchange(true)) return;
    asio::post(io, [weak, posted] {
      posted->store(false);
      if (const auto self = weak.lock(); self && self->state_ == State::kAnswering) {
        self->woken_ = true;
        self->Pull();
      }
    });
  };
}

// Called when the system has taken everything that there was.
void Connection::Pull() {
  if (!later_ || !output_.empty()) return;
  woken_ = false;
  Deliver(later_->Take());
}

void Connection::Deliver(Delivery delivery) {
  const bool has_body = request_->method != "HEAD";
  if (delivery.head)
    SendHead(*std::move(delivery.head),
             delivery.ended ? std::optional(delivery.bytes.size()) : std::nullopt);
  if (has_body && chunked_ && !delivery.bytes.empty())
    output_ += fmt::format("{:x}\r\n{}\r\n", delivery.bytes.size(), delivery.bytes);
  else if (has_body && !chunked_)
    output_ += delivery.bytes;
  if (has_body && chunked_ && delivery.ended) output_ += "0\r\n\r\n";
  woken_ |= delivery.more;
  ended_ |= delivery.ended;
  if (ended_) later_.reset();
  Flush();
}

// Only if nothing else waits to leave.
void Connection::SendNow(std::string_view text) {
  error_code error;
  socket_.write_some(asio::buffer(text.data(), text.size()), error);
  if (error && error != asio::error::would_block) Close();
}

void Connection::Flush() {
  if (writing_) return;
  const Clock::duration full = std::chrono::seconds(shared_.options.write_timeout_s);
  while (output_sent_ < output_.size()) {
    error_code error;
    const std::size_t n = socket_.write_some(
        asio::buffer(output_.data() + output_sent_, output_.size() - output_sent_), error);
    if (error == asio::error::would_block) return AwaitRoom();
    if (error == asio::error::interrupted) continue;
    if (error) return Close();
    output_sent_ += n;
    patience_ = std::min(full, patience_ + static_cast<long>(n) * kTimePerByte);
  }
  output_.clear();
  output_sent_ = 0;
  Shrink(output_);
  if (ended_) return Finish();
  Account();
  if (woken_) asio::post(shared_.io, Bound([this] { Pull(); }));
}

void Connection::AwaitRoom() {
  writing_ = true;
  blocked_since_ = Clock::now();
  Account();
  socket_.async_wait(Socket::wait_write, Bound([this](error_code error) {
                       writing_ = false;
                       patience_ -= Clock::now() - blocked_since_;
                       error ? Close() : Flush();
                     }));
}

void Connection::Finish() {
  reader_.Restart();
  request_.reset();
  later_headers_.clear();
  woken_ = head_seen_ = asked_ = head_sent_ = ended_ = chunked_ = false;
  if (close_) return Leave();
  patience_ = std::chrono::seconds(shared_.options.write_timeout_s);
  AwaitRequest();
  Shrink(input_);
  Look();
  Account();
  AwaitInput();
}

// Unread input at the close would reset the connection and so lose the answer. So what the client
// still sends is read for a while.
void Connection::Leave() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error || input_ended_) return Close();
  input_ = std::string();
  Account();
  Enter(State::kLeaving, kLinger);
  AwaitInput();
}

void Connection::Close() {
  if (std::exchange(state_, State::kClosed) == State::kClosed) return;
  later_.reset();
  held_.Set(0);
  if (request_) request_->charges->client_gone = true;
  error_code error;
  socket_.close(error);
  shared_.closed(this);
}

void Connection::Account() {
  if (state_ == State::kClosed) return;
  held_.Set(kOwnBytes + input_.capacity() + reader_.head_bytes() + reader_.request().body.size() +
            output_.capacity());
}

// ---- Memory is scarce.

std::size_t Connection::DroppableBytes() const {
  const bool waits = state_ == State::kArriving || (state_ == State::kAnswering && !with_worker_);
  return waits ? account_->held() : 0;
}

void Connection::Drop() {
  if (state_ == State::kArriving) return Refuse(503);
  if (writing_ || (later_ && !later_->Drop())) {  // its client would not take a word about it
    shared_.responder.NoteCut(*request_);
    return Close();
  }
  if (later_) return Pull();
  if (!std::exchange(awaits_worker_, false)) return;
  DropBody();
  Respond(shared_.responder.Refuse(*request_, 503), true);
}

// ---- Time.

void Connection::LookAtClock(Clock::time_point now) {
  if (state_ == State::kAnswering) {
    if (shared_.stop_end && now >= *shared_.stop_end) return Close();
    if (writing_ && now - blocked_since_ > patience_) {
      shared_.responder.NoteCut(*request_);
      Close();
    } else if (later_ && now >= later_->deadline()) {
      Pull();
    }
  } else if (state_ == State::kIdle && shared_.overload.ends_connections() &&
             now - since_ > kReserveTime) {
    Close();
  } else if (now >= until_) {
    state_ == State::kArriving ? Refuse(408) : Close();
  }
}

void Connection::BeginStop() {
  if (state_ == State::kAnswering) {
    woken_ = true;  // an unfinished answer must end
    return Pull();
  }
  until_ = std::min(until_, Clock::now() + kLastWord);
}

}  // namespace foretoken::server
