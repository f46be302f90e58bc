// SPDX-License-Identifier: Apache-2.0
// The listener, and the thread of all connections: an io_context of Boost.Asio.
#include "server/net/http.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <unordered_map>
#include <utility>

#include "server/net/client_address.h"
#include "server/net/connection.h"

namespace foretoken::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;
using Clock = Connection::Clock;

constexpr int kBacklog = 1024;          // connections that wait for their turn
constexpr int kPerTurn = 64;            // accepted in one turn, before others have theirs
constexpr milliseconds kLookEvery{50};  // clock ticks
constexpr milliseconds kLookSoon{10};   // while a client waits for a connection
constexpr std::size_t kWorthDropping = 64 << 10;
const error_code kNoneInSystem(ENFILE, boost::system::system_category());
constexpr int kReserve = 128;  // connections that are kept for health and metrics
// The system asks silent clients whether they are there: first after, then every, so often.
// Seconds.
constexpr int kAskAfter = 10, kAskEvery = 5, kAskTimes = 3;

// Bytes that the system keeps for a connection, in memory that counts in a control group: unread
// input, and output that has not left.
constexpr int kUnreadBytes = 128 << 10, kUnsentBytes = 128 << 10;

// Connections inherit these options from the listener.
void SetOptions(tcp::acceptor::native_handle_type socket) {
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &kUnreadBytes, sizeof(kUnreadBytes));
  setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof(kUnsentBytes));
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
  Impl(const HttpOptions& options, Responder& responder, ByteLedger& bytes, Overload& overload)
      : options_(options),
        n_reserve_(
            std::min<std::size_t>(kReserve, static_cast<std::size_t>(options.max_connections) / 4)),
        n_open_(static_cast<std::size_t>(options.max_connections) - n_reserve_),
        by_address_(options.max_connections_per_address),
        io_(1),
        workers_(io_, options.max_workers, static_cast<std::size_t>(overload.plan().work)),
        acceptor_(io_),
        clock_(io_),
        shared_{.options = options_,
                .responder = responder,
                .io = io_,
                .workers = workers_,
                .bytes = bytes,
                .overload = overload,
                .closed = [this](Connection* connection) { Forget(connection); }} {}

  ~Impl() {
    workers_.Join();
    if (spare_ >= 0) close(spare_);
  }

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
    KeepSpare();
    Run([this] { io_.run(); });  // until nothing is left to wait for
    workers_.Join();
    io_.restart();
    Run([this] { io_.poll(); });  // what workers still had for closed connections
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

  // Continues after a handler failed, most likely because memory is short.
  template <typename F>
  void Run(F run) {
    for (;;) try {
        AwaitGuests();
        LookAtClocksLater();
        return run();
      } catch (const std::exception&) {
        continue;
      }
  }

  // False: there is no room, or the system gives none; the clock tries again.
  bool Admit() {
    shared_.overload.Look();
    for (int i = 0; i < kPerTurn; ++i) {
      bool open = connections_.size() - n_in_reserve_ < n_open_ || MakeRoom(false);
      if (!open && n_in_reserve_ >= n_reserve_ && !MakeRoom(true)) return false;
      error_code error;
      tcp::socket socket(io_);
      tcp::endpoint address;
      acceptor_.accept(socket, address, error);
      if (error == asio::error::would_block) break;
      if (error == asio::error::interrupted || error == asio::error::connection_aborted) continue;
      if (error == asio::error::no_descriptors || error == kNoneInSystem) {
        if (!SomebodyWaits()) break;  // the system reports it in this case too
        if (MakeRoom(false) || MakeRoom(true)) continue;
        if (!UseSpare()) return false;
        acceptor_.accept(socket, address, error);
        open = false;
      }
      if (!error) socket.non_blocking(true, error);
      if (error) return false;
      Welcome(std::move(socket), address.address().to_string(), open);
    }
    return true;
  }

  bool SomebodyWaits() {
    ::pollfd entry = {.fd = acceptor_.native_handle(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) > 0;
  }

  void Welcome(tcp::socket socket, std::string address, bool open) {
    const bool limited = options_.limits_this_machine || !IsThisMachine(address);
    auto share = limited ? by_address_.Take(ClientOf(address)) : Quota::Share();
    const bool refused = !share;
    Connection::Client client{.address = std::move(address), .in_reserve = !open};
    if (share) client.share = *std::move(share);
    const auto connection =
        std::make_shared<Connection>(shared_, std::move(socket), std::move(client));
    connections_.emplace(connection.get(), connection);
    n_in_reserve_ += !open;
    refused ? connection->BeginRefused(429) : connection->Begin();
  }

  void Forget(Connection* connection) {
    n_in_reserve_ -= connection->in_reserve();
    connections_.erase(connection);
    KeepSpare();
  }

  // Closes the connection that could have been closed for the longest time, of those in reserve or
  // of the others.
  bool MakeRoom(bool in_reserve) {
    Connection* oldest = nullptr;
    const Clock::time_point now = Clock::now();
    Clock::time_point since = Clock::time_point::max();
    for (const auto& [connection, _] : connections_) {
      if (connection->in_reserve() != in_reserve) continue;
      if (const auto could = connection->could_go_since(now); could && *could < since) {
        oldest = connection;
        since = *could;
      }
    }
    if (oldest != nullptr) oldest->Close();
    return oldest != nullptr;
  }

  // A spare descriptor, for one more connection when the system gives none.
  void KeepSpare() {
    if (spare_ < 0) spare_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
  }
  bool UseSpare() {
    if (spare_ < 0) return false;
    close(std::exchange(spare_, -1));
    return true;
  }

  void LookAtClocksLater() {
    if (connections_.empty() && (at_door_ || shared_.stop_end)) return;
    if (std::exchange(clock_runs_, true)) return;
    clock_.expires_after(at_door_ ? kLookEvery : kLookSoon);
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
    KeepSpare();
    LookAtMemory(now);
  }

  void LookAtMemory(Clock::time_point now) {
    Overload& overload = shared_.overload;
    overload.Look();
    DropLargest(overload.Excess());
    if (overload.WantsTrim(now))
      workers_.Post({.begins = [] { return true; }, .run = TrimMemory, .ended = [] {}});
  }

  void DropLargest(std::size_t excess) {
    while (excess > 0) {
      std::shared_ptr<Connection> largest;
      std::size_t most = kWorthDropping;
      for (const auto& [_, connection] : connections_)
        if (const std::size_t bytes = connection->DroppableBytes(); bytes > most) {
          largest = connection;
          most = bytes;
        }
      if (!largest) return;
      largest->Drop();
      excess -= std::min(excess, most);
    }
  }

  void BeginStop(milliseconds grace) {
    for (int turn = 0; turn < kBacklog / kPerTurn && Admit(); ++turn) continue;  // earlier clients
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
  const std::size_t n_reserve_, n_open_;  // of the connections
  std::size_t n_in_reserve_ = 0;
  Quota by_address_;
  int spare_ = -1;
  asio::io_context io_;
  WorkGate workers_;
  tcp::acceptor acceptor_;
  asio::steady_timer clock_;
  bool at_door_ = false, clock_runs_ = false;
  Connection::Shared shared_;
  std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_;
  std::vector<std::shared_ptr<Connection>> looked_at_;
};

HttpServer::HttpServer(const HttpOptions& options, Responder& responder, ByteLedger& bytes,
                       Overload& overload)
    : impl_(std::make_unique<Impl>(options, responder, bytes, overload)) {}
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
