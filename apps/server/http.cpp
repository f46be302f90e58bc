// SPDX-License-Identifier: Apache-2.0
// The only file that knows cpp-httplib. The library parses requests and writes responses; the loop
// over a connection's requests, its socket and its limits are here: the library's own loop neither
// bounds a header's bytes nor lets a handler see that its client has hung up.
#include "server/http.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRequestsPerConnection = 10'000;
constexpr std::int64_t kMaxHeaderBytes = 64 << 10;
constexpr milliseconds kStopLook{50};  // how often waiting threads see whether the server stops
constexpr milliseconds kLinger{500};   // for what a client still sends after it was refused

// REQUIRES: fd is open. False: the time is over, or the socket is broken.
bool WaitFor(int fd, short events, milliseconds time) {
  pollfd entry = {.fd = fd, .events = events, .revents = 0};
  const int ready = poll(&entry, 1, static_cast<int>(std::max<std::int64_t>(0, time.count())));
  return ready > 0 && (entry.revents & (events | POLLHUP)) != 0;
}

bool HungUp(int fd) {
  char byte = 0;
  const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

// A socket with a read buffer and the limits of HttpOptions.
class Connection : public httplib::Stream {
 public:
  Connection(int fd, const HttpOptions& options) : fd_(fd), options_(options) {}

  void BeginRequest() {
    budget_ = 2 * options_.max_body_bytes + kMaxHeaderBytes;  // chunked bodies have frames
    deadline_ = Clock::now() + std::chrono::seconds(options_.read_timeout_s);
  }
  bool buffered() const { return begin_ < end_; }

  bool is_readable() const override { return buffered() || WaitFor(fd_, POLLIN, Left()); }
  bool is_writable() const override {
    return WaitFor(fd_, POLLOUT, std::chrono::seconds(options_.write_timeout_s));
  }
  ssize_t read(char* out, size_t size) override {
    if (!buffered() && !Fill()) return -1;
    const std::size_t n = std::min(size, end_ - begin_);
    std::copy_n(buffer_.data() + begin_, n, out);
    begin_ += n;
    budget_ -= static_cast<std::int64_t>(n);
    return budget_ < 0 ? -1 : static_cast<ssize_t>(n);
  }
  ssize_t write(const char* data, size_t size) override {
    if (!is_writable()) return -1;
    return send(fd_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address = {};
    socklen_t size = sizeof(address);
    if (getpeername(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
    char host[NI_MAXHOST], service[NI_MAXSERV];
    if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof(host), service,
                    sizeof(service), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return;
    ip = host;
    port = std::atoi(service);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return fd_; }

 private:
  milliseconds Left() const {
    return std::max(milliseconds(0),
                    std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
  }
  bool Fill() {
    if (!WaitFor(fd_, POLLIN, Left())) return false;
    const ssize_t n = recv(fd_, buffer_.data(), buffer_.size(), 0);
    begin_ = 0;
    end_ = n > 0 ? static_cast<std::size_t>(n) : 0;
    return n > 0;
  }

  const int fd_;
  const HttpOptions& options_;
  std::int64_t budget_ = 0;
  Clock::time_point deadline_;
  std::array<char, 16384> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

// Of the connection that this thread serves.
thread_local int this_socket = -1;
thread_local bool close_after = false;

// Threads come with the connections and wait for more, up to a number.
class Threads : public httplib::TaskQueue {
 public:
  explicit Threads(int most) : most_(static_cast<std::size_t>(most)) {}

  void enqueue(std::function<void()> task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_ && threads_.size() < most_)
      threads_.emplace_back([this] { Work(); });
    else
      wake_.notify_one();
  }
  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

void Put(const HttpResponse& from, httplib::Response& to) {
  to.status = from.status;
  for (const auto& [name, value] : from.headers) to.set_header(name, value);
  if (!from.stream) {
    to.set_content(from.body, from.content_type);
    return;
  }
  to.set_chunked_content_provider(from.content_type,
                                  [stream = from.stream](std::size_t, httplib::DataSink& sink) {
                                    std::string part;
                                    if (!stream->Next(part)) {
                                      sink.done();
                                      return true;
                                    }
                                    return sink.write(part.data(), part.size());
                                  });
}

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const HttpOptions& options, HttpServer::Handler handle, Refusal refuse)
      : options_(options), handle_(std::move(handle)), refuse_(std::move(refuse)) {
    new_task_queue = [this] { return new Threads(options_.max_connections); };
    set_payload_max_length(static_cast<std::size_t>(options_.max_body_bytes));
    set_tcp_nodelay(true);
    set_socket_options([](socket_t socket) {  // not SO_REUSEPORT: two servers on a port is an error
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    const auto bare = [this](const httplib::Request& from, httplib::Response& to) {
      close_after |= from.has_header("Content-Length") || from.has_header("Transfer-Encoding");
      Put(handle_(Convert(from)), to);
    };
    const auto with_body = [this](const httplib::Request& from, httplib::Response& to,
                                  const httplib::ContentReader& reader) { Post(from, to, reader); };
    Get(".*", bare).Options(".*", bare);
    Server::Post(".*", with_body);
    AddWithBody(with_body);
    // Refusals of the library's own; answers of the routes that have a body are left alone.
    set_error_handler(HandlerWithResponse([this](const httplib::Request&, httplib::Response& to) {
      if (!to.body.empty()) return HandlerResponse::Unhandled;
      close_after = true;
      Put(refuse_(to.status), to);
      return HandlerResponse::Handled;
    }));
    set_exception_handler([this](const httplib::Request&, httplib::Response& to,
                                 const std::exception_ptr&) { Put(refuse_(500), to); });
  }

  const HttpOptions& options() const { return options_; }
  // The library breaks streams off once it is stopped: what is under way must leave first.
  void StopListening() {
    stopping_ = true;
    const auto end = Clock::now() + std::chrono::seconds(options_.write_timeout_s);
    while (n_serving_ > 0 && Clock::now() < end) std::this_thread::sleep_for(kStopLook / 10);
    stop();
  }

 private:
  void AddWithBody(const httplib::Server::HandlerWithContentReader& handler) {
    Server::Put(".*", handler).Patch(".*", handler).Delete(".*", handler);
  }

  static HttpRequest Convert(const httplib::Request& from) {
    return {.method = from.method,
            .path = from.path,
            .body = {},
            .remote_address = from.remote_addr,
            .authorization = from.get_header_value("Authorization"),
            .client_gone = [socket = this_socket] { return HungUp(socket); }};
  }

  void Post(const httplib::Request& from, httplib::Response& to,
            const httplib::ContentReader& reader) {
    HttpRequest request = Convert(from);
    if (from.is_multipart_form_data()) {
      close_after = true;
      return Put(refuse_(415), to);
    }
    bool too_large = false;
    const bool whole = reader([&](const char* data, std::size_t size) {
      too_large = request.body.size() + size > static_cast<std::size_t>(options_.max_body_bytes);
      if (!too_large) request.body.append(data, size);
      return !too_large;
    });
    if (whole) return Put(handle_(request), to);
    close_after = true;
    Put(refuse_(too_large || to.status == 413 ? 413 : 400), to);
  }

  static void Put(const HttpResponse& from, httplib::Response& to) { server::Put(from, to); }

  // A request has begun to arrive; false: none will.
  bool AwaitRequest(const Connection& connection) const {
    const auto end = Clock::now() + std::chrono::seconds(options_.idle_timeout_s);
    while (!stopping_ && Clock::now() < end) {
      if (connection.buffered()) return true;
      if (WaitFor(connection.socket(), POLLIN, kStopLook)) return !HungUp(connection.socket());
    }
    return false;
  }

  bool process_and_close_socket(socket_t socket) override {
    this_socket = socket;
    close_after = false;
    bool served = true;
    {
      Connection connection(socket, options_);
      for (int i = 1; served && !close_after && AwaitRequest(connection); ++i) {
        connection.BeginRequest();
        bool closed = false;
        ++n_serving_;
        served =
            !stopping_ && process_request(connection, i == kRequestsPerConnection, closed, nullptr);
        --n_serving_;
        if (closed) break;
      }
    }
    ::shutdown(socket, SHUT_WR);
    if (close_after) Linger(socket);
    ::close(socket);
    this_socket = -1;
    return served;
  }

  // Unread bytes at the close would reset the connection, and the answer with it.
  static void Linger(int socket) {
    const auto end = Clock::now() + kLinger;
    std::array<char, 16384> dropped;
    while (Clock::now() < end && WaitFor(socket, POLLIN, kLinger))
      if (recv(socket, dropped.data(), dropped.size(), 0) <= 0) return;
  }

  const HttpOptions options_;
  const HttpServer::Handler handle_;
  const Refusal refuse_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> n_serving_ = 0;
};

HttpServer::HttpServer(const HttpOptions& options, Handler handle, Refusal refuse)
    : impl_(std::make_unique<Impl>(options, std::move(handle), std::move(refuse))) {}
HttpServer::~HttpServer() = default;

Result<int> HttpServer::Bind() {
  const HttpOptions& o = impl_->options();
  errno = 0;
  const int port = o.port == 0                           ? impl_->bind_to_any_port(o.host)
                   : impl_->bind_to_port(o.host, o.port) ? o.port
                                                         : -1;
  if (port > 0) return port;
  const std::string why =
      errno != 0 ? std::strerror(errno) : "it is not an address of this machine";
  return Fail(ErrorCode::kIo,
              fmt::format("listen on {} port {}: {}; choose another with --host and "
                          "--port (0 finds a free port)",
                          o.host, o.port, why));
}

void HttpServer::Listen() {
  impl_->listen_after_bind();
}

void HttpServer::Stop() {
  impl_->StopListening();
}

}  // namespace foretoken::server
