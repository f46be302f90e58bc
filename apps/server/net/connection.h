// SPDX-License-Identifier: Apache-2.0
// server/net/connection.h: one connection: its requests, one after the other, and their answers.
//
// All of it runs in the one thread of the io_context, except work for the workers. It reads into a
// buffer that all connections share, and writes as much as the system accepts. So it only holds
// input that was not used yet and output that was not accepted yet.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/net/byte_ledger.h"
#include "server/net/http.h"
#include "server/net/quota.h"
#include "server/net/request_reader.h"
#include "server/net/work_gate.h"
#include "server/overload.h"

namespace foretoken::server {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Socket = boost::asio::ip::tcp::socket;

  // What all connections of a server share. It must outlive them.
  struct Shared {
    const HttpOptions& options;
    Responder& responder;
    boost::asio::io_context& io;
    WorkGate& workers;
    ByteLedger& bytes;
    Overload& overload;
    std::function<void(Connection*)> closed;         // forgets it
    std::optional<Clock::time_point> stop_end = {};  // set: no more requests are taken
  };

  // The client at the other end, and the limits that it counts against.
  struct Client {
    std::string address;
    Quota::Share share = {};  // of the address's connections
    bool in_reserve = false;  // for paths that are answered while all other connections are taken
  };
  Connection(Shared& shared, Socket socket, Client client);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Begin();
  // Sends only this refusal.
  void BeginRefused(int status);
  void LookAtClock(Clock::time_point now);
  // The server accepts nothing more: shared.stop_end was set.
  void BeginStop();
  void Close();
  // Since when it could be closed for another connection: it is idle, lingers, or has sent only a
  // part of a request, or nothing, for a while. Nothing: it could not.
  std::optional<Clock::time_point> could_go_since(Clock::time_point now) const;
  bool in_reserve() const { return client_.in_reserve; }
  // The bytes of it and its requests; 0 if Drop would not change that now.
  std::size_t DroppableBytes() const;
  // Refuses its request, or cuts its answer: there is no memory for it.
  void Drop();

 private:
  enum class State { kIdle, kArriving, kAnswering, kLeaving, kClosed };
  template <typename F>
  auto Bound(F function);

  void AwaitInput();
  void AwaitFailure();
  bool Failed();
  void Receive();
  void EndInput();
  void Enter(State state, std::chrono::milliseconds time);
  void AwaitRequest();
  void Look();
  bool Advance();
  void CallWorker();
  void DropBody();
  void Refuse(int status);
  void NameRequest();

  void Respond(HttpResponse response, bool close);
  void SendHead(HttpResponse head, std::optional<std::size_t> n_bytes);
  std::function<void()> Waker();
  void Pull();
  void Deliver(Delivery delivery);
  void SendNow(std::string_view text);
  void Flush();
  void AwaitRoom();
  void Finish();
  void Leave();
  void Account();

  Shared& shared_;
  Socket socket_;
  const Client client_;
  const std::shared_ptr<ByteLedger::Account> account_;
  ByteHold held_;  // for the members below
  State state_ = State::kIdle;
  Clock::time_point since_, until_;  // of this state; not while it answers
  int n_requests_ = 0;

  RequestReader reader_;
  std::string input_;  // input that was not used yet
  bool reading_ = false, watching_ = false, looking_ = false;
  bool input_ended_ = false;                // the client sends no more
  bool head_seen_ = false, asked_ = false;  // by the responder; 100 Continue was sent
  std::shared_ptr<HttpRequest> request_;    // the one that is being answered

  std::shared_ptr<LaterReply> later_;
  HttpFields later_headers_;
  bool awaits_worker_ = false, with_worker_ = false;
  bool woken_ = false;                      // later_ may have something
  bool close_ = false, chunked_ = false;    // after this answer; this answer
  bool head_sent_ = false, ended_ = false;  // of the answer: the rest of it is in output_
  std::string output_;
  std::size_t output_sent_ = 0;
  bool writing_ = false;
  Clock::time_point blocked_since_;
  Clock::duration patience_;  // grows with what the client reads
};

}  // namespace foretoken::server
