// SPDX-License-Identifier: Apache-2.0
// The only file that knows cpp-httplib. The library parses requests that have come whole and writes
// responses; connections, their limits and their threads are the gate's.
#include "server/http.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "server/gate.h"

namespace foretoken::server {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRequestsPerConnection = 10'000;
constexpr std::chrono::microseconds kTimePerByte{1'000'000 / 1024};  // the slowest pace
// The system asks silent clients whether they are there: first after, then every, so often.
// Seconds.
constexpr int kAskAfter = 10, kAskEvery = 5, kAskTimes = 3;

// A request that has come whole, and the socket that its answer leaves by.
class Connection : public httplib::Stream {
 public:
  Connection(const Visit& visit, int write_timeout_s)
      : fd_(visit.socket),
        input_(visit.request),
        full_patience_(std::chrono::seconds(write_timeout_s)),
        patience_(full_patience_) {}

  bool is_readable() const override { return !input_.empty(); }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* out, size_t size) override {
    const std::size_t n = std::min(size, input_.size());
    std::copy_n(input_.data(), n, out);
    input_.remove_prefix(n);
    return n > 0 ? static_cast<ssize_t>(n) : -1;
  }
  // All of it.
  ssize_t write(const char* data, size_t size) override {
    answered_ = true;
    for (std::size_t sent = 0; sent < size && !broken_;) {
      const ssize_t n = send(fd_, data + sent, size - sent, MSG_NOSIGNAL);
      if (n >= 0) {
        sent += static_cast<std::size_t>(n);
        patience_ = std::min(full_patience_, patience_ + n * kTimePerByte);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        AwaitRoom();
      } else if (errno != EINTR) {
        broken_ = true;
      }
    }
    return broken_ ? -1 : static_cast<ssize_t>(size);
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

  // A client's end of sending looks the same whether it waits for its answer or has closed. So an
  // interim response is sent, which HTTP/1.1 lets a server do unasked: a closed socket resets it.
  // HTTP/1.0 has none: there the system's own question is reset, once the client's has forgotten
  // the connection.
  bool ClientGone() {
    pollfd entry = {.fd = fd_, .events = POLLRDHUP, .revents = 0};
    if (broken_ || poll(&entry, 1, 0) <= 0) return broken_;
    if ((entry.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) return true;
    if (!answered_ && !asked_ && interim_allowed_) {
      asked_ = true;
      constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
      return send(fd_, kInterim.data(), kInterim.size(), MSG_NOSIGNAL) < 0 && errno == EPIPE;
    }
    return false;
  }
  void AllowInterim(bool allowed) { interim_allowed_ = allowed; }

  bool too_slow() const { return too_slow_; }

 private:
  void AwaitRoom() {
    pollfd entry = {.fd = fd_, .events = POLLOUT, .revents = 0};
    const auto begin = Clock::now();
    const auto ms = std::chrono::duration_cast<milliseconds>(patience_).count();
    too_slow_ = ms <= 0 || poll(&entry, 1, static_cast<int>(ms)) == 0;
    patience_ -= std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
    broken_ = too_slow_;
  }

  const int fd_;
  std::string_view input_;
  const std::chrono::microseconds full_patience_;
  std::chrono::microseconds patience_;  // grows with what the client takes
  bool answered_ = false, asked_ = false, interim_allowed_ = false;
  bool broken_ = false, too_slow_ = false;
};

// What this thread serves.
thread_local Connection* this_connection = nullptr;
thread_local bool close_after = false;

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

// A refusal as bytes: what it answers has not reached the library.
std::string Bytes(int status, const HttpResponse& response) {
  const char* const reason = status == 400   ? "Bad Request"
                             : status == 408 ? "Request Timeout"
                             : status == 413 ? "Payload Too Large"
                             : status == 431 ? "Request Header Fields Too Large"
                                             : "Service Unavailable";
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nConnection: close\r\n", status, reason);
  for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
  return text + fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                            response.content_type, response.body.size(), response.body);
}

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const HttpOptions& options, HttpServer::Handler handle, Refusal refuse, Cut cut)
      : options_(options),
        handle_(std::move(handle)),
        refuse_(std::move(refuse)),
        cut_(std::move(cut)),
        gate_(
            {.max_workers = options.max_answers,
             .max_connections = options.max_connections,
             .idle_timeout = std::chrono::seconds(options.idle_timeout_s),
             .read_timeout = std::chrono::seconds(options.read_timeout_s),
             .limits = {.body_bytes = static_cast<std::size_t>(options.max_body_bytes)}},
            [this](const Visit& visit) { return Answer(visit); },
            [this](int status) { return Bytes(status, refuse_(status)); }) {
    set_payload_max_length(static_cast<std::size_t>(options_.max_body_bytes));
    set_socket_options([](socket_t socket) {  // not SO_REUSEPORT: two servers on a port is an error
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
      // Connections inherit these.
      setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
      for (const auto& [option, value] : {std::pair(TCP_KEEPIDLE, kAskAfter),
                                          {TCP_KEEPINTVL, kAskEvery},
                                          {TCP_KEEPCNT, kAskTimes}})
        setsockopt(socket, IPPROTO_TCP, option, &value, sizeof(value));
    });
    const auto bare = [this](const httplib::Request& from, httplib::Response& to) {
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
  void Work() { gate_.Work(svr_sock_); }
  void StopWork(milliseconds grace) { gate_.Stop(grace); }

 private:
  void AddWithBody(const httplib::Server::HandlerWithContentReader& handler) {
    Server::Put(".*", handler).Patch(".*", handler).Delete(".*", handler);
  }

  static HttpRequest Convert(const httplib::Request& from) {
    this_connection->AllowInterim(from.version == "HTTP/1.1");
    return {.method = from.method,
            .path = from.path,
            .body = {},
            .remote_address = from.remote_addr,
            .authorization = from.get_header_value("Authorization"),
            .client_gone = [connection = this_connection] { return connection->ClientGone(); }};
  }

  void Post(const httplib::Request& from, httplib::Response& to,
            const httplib::ContentReader& reader) {
    HttpRequest request = Convert(from);
    if (from.is_multipart_form_data()) return Put(refuse_(415), to);
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

  // In one of the gate's threads.
  bool Answer(const Visit& visit) {
    Connection connection(visit, options_.write_timeout_s);
    this_connection = &connection;
    close_after = false;
    const bool last = gate_.stopping() || visit.number == kRequestsPerConnection;
    bool closed = false;
    const bool served = process_request(connection, last, closed, nullptr);
    this_connection = nullptr;
    if (connection.too_slow()) {
      std::string address;
      int port = 0;
      connection.get_remote_ip_and_port(address, port);
      cut_(address);
    }
    return served && !closed && !close_after && !last;
  }

  const HttpOptions options_;
  const HttpServer::Handler handle_;
  const Refusal refuse_;
  const Cut cut_;
  Gate gate_;  // the last member: its threads use the others
};

HttpServer::HttpServer(const HttpOptions& options, Handler handle, Refusal refuse, Cut cut)
    : impl_(std::make_unique<Impl>(options, std::move(handle), std::move(refuse), std::move(cut))) {
}
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
  impl_->Work();
}

void HttpServer::Stop(milliseconds grace) {
  impl_->StopWork(grace);
}

}  // namespace foretoken::server
