// SPDX-License-Identifier: Apache-2.0
// The listener, and the thread of all connections: an io_context of Boost.Asio.
#include "server/http.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "server/connection.h"

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = Connection::Clock;

constexpr int kBacklog = 1024;          // connections that wait for their turn
constexpr int kPerTurn = 64;            // of them, before others have theirs
constexpr milliseconds kLookEvery{50};  // at the clocks
constexpr std::size_t kMaxHeldBytes = 256 << 20;
// The system asks silent clients whether they are there: first after, then every, so often.
// Seconds.
constexpr int kAskAfter = 10, kAskEvery = 5, kAskTimes = 3;

// Connections inherit these from the listener.
void SetOptions(int socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  for (const auto& [option, value] :
       {std::pair(TCP_KEEPIDLE, kAskAfter), {TCP_KEEPINTVL, kAskEvery}, {TCP_KEEPCNT, kAskTimes}})
    setsockopt(socket, IPPROTO_TCP, option, &value, sizeof(value));
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpOptions& options, Responder& responder)
      : options_(options),
        bytes_(std::max(kMaxHeldBytes, 4 * static_cast<std::size_t>(options.max_body_bytes))),
        io_(1),
        workers_(static_cast<std::size_t>(options.max_workers)),
        acceptor_(io_),
        clock_(io_),
        shared_{.options = options_,
                .responder = responder,
                .io = io_,
                .workers = workers_,
                .bytes = bytes_,
                .closed = [this](Connection* connection) { connections_.erase(connection); }} {}

  ~Impl() { workers_.join(); }

  Result<int> Bind() {
    error_code error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(options_.host, std::to_string(options_.port),
                                        tcp::resolver::passive, error);
    std::string why = "it is not an address of this machine";
    if (!error)
      for (const auto& entry : found) {
        if (!(error = Listen(entry.endpoint()))) return acceptor_.local_endpoint().port();
        if (error != asio::error::address_family_not_supported) why = std::strerror(error.value());
      }
    return Fail(ErrorCode::kIo,
                fmt::format("listen on {} port {}: {}; choose another with --host and "
                            "--port (0 finds a free port)",
                            options_.host, options_.port, why));
  }

  void Work() {
    AwaitGuests();
    io_.run();  // until nothing is left to wait for
    workers_.join();
    io_.restart();
    io_.poll();  // what workers still had for connections that were closed
  }

  void Stop(milliseconds grace) {
    asio::post(io_, [this, grace] { BeginStop(grace); });
  }

 private:
  error_code Listen(const tcp::endpoint& address) {
    error_code error;
    acceptor_.close(error);
    acceptor_.open(address.protocol(), error);
    if (error) return error;
    SetOptions(acceptor_.native_handle());
    if (address.protocol() == tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
    acceptor_.bind(address, error);
    if (!error) acceptor_.listen(kBacklog, error);
    if (!error) acceptor_.non_blocking(true, error);
    return error;
  }

  void AwaitGuests() {
    if (shared_.stop_end || std::exchange(at_door_, true)) return;
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code error) {
      at_door_ = false;
      if (error || shared_.stop_end) return;
      if (Admit()) AwaitGuests();
      LookAtClocksLater();
    });
  }

  // False: there is no room, or the system has none; the clock asks again.
  bool Admit() {
    for (int i = 0; i < kPerTurn; ++i) {
      if (connections_.size() >= static_cast<std::size_t>(options_.max_connections) && !MakeRoom())
        return false;
      error_code error;
      tcp::socket socket(io_);
      acceptor_.accept(socket, error);
      if (error == asio::error::would_block) break;
      if (error == asio::error::interrupted || error == asio::error::connection_aborted) continue;
      if (!error) socket.non_blocking(true, error);
      if (error) return false;
      const auto connection = std::make_shared<Connection>(shared_, std::move(socket));
      connections_.emplace(connection.get(), connection);
      connection->Begin();
    }
    return true;
  }

  // The connection that has been idle the longest gives way.
  bool MakeRoom() {
    Connection* oldest = nullptr;
    Clock::time_point since = Clock::time_point::max();
    for (const auto& [connection, _] : connections_)
      if (const auto idle = connection->idle_since(); idle && *idle < since) {
        oldest = connection;
        since = *idle;
      }
    if (oldest != nullptr) oldest->Close();
    return oldest != nullptr;
  }

  void LookAtClocksLater() {
    if (connections_.empty() && (at_door_ || shared_.stop_end)) return;
    if (std::exchange(clock_runs_, true)) return;
    clock_.expires_after(kLookEvery);
    clock_.async_wait([this](error_code) {
      clock_runs_ = false;
      LookAtClocks();
      AwaitGuests();
      LookAtClocksLater();
    });
  }

  void LookAtClocks() {
    const auto now = Clock::now();
    looked_at_.clear();
    for (const auto& [_, connection] : connections_) looked_at_.push_back(connection);
    for (const auto& connection : looked_at_) connection->LookAtClock(now);
    looked_at_.clear();
  }

  void BeginStop(milliseconds grace) {
    for (int turn = 0; turn < kBacklog / kPerTurn && Admit(); ++turn) continue;  // who came before
    shared_.stop_end = Clock::now() + grace;
    error_code error;
    acceptor_.close(error);
    looked_at_.clear();
    for (const auto& [_, connection] : connections_) looked_at_.push_back(connection);
    for (const auto& connection : looked_at_) connection->BeginStop();
    looked_at_.clear();
    LookAtClocksLater();
  }

  const HttpOptions options_;
  ByteLedger bytes_;  // before what holds connections
  asio::io_context io_;
  asio::thread_pool workers_;
  tcp::acceptor acceptor_;
  asio::steady_timer clock_;
  bool at_door_ = false, clock_runs_ = false;
  Connection::Shared shared_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> looked_at_;
};

HttpServer::HttpServer(const HttpOptions& options, Responder& responder)
    : impl_(std::make_unique<Impl>(options, responder)) {}
HttpServer::~HttpServer() = default;

Result<int> HttpServer::Bind() {
  return impl_->Bind();
}

void HttpServer::Listen() {
  impl_->Work();
}

void HttpServer::Stop(milliseconds grace) {
  impl_->Stop(grace);
}

}  // namespace foretoken::server
