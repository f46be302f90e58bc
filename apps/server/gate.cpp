// SPDX-License-Identifier: Apache-2.0
#include "server/gate.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace foretoken::server {
namespace {

using std::chrono::milliseconds;

constexpr int kBacklog = 1024;          // connections that wait for a turn of the gate
constexpr milliseconds kLookEvery{50};  // at the clocks
constexpr milliseconds kLinger{500};    // for what a client still sends after its last answer
constexpr milliseconds kLastWord{200};  // for a request that was on its way when the server stopped
constexpr std::size_t kSmallInput = 64 << 10;
constexpr std::size_t kMaxHeldBytes = 256 << 20;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

// A connection.
struct Gate::Guest {
  enum class State { kIdle, kArriving, kServed, kLeaving };

  Guest(int socket, const Framing::Limits& limits) : fd(socket), framing(limits) {}

  const int fd;
  State state = State::kIdle;
  Clock::time_point until;  // it stays in this state; not where it is served
  std::string input;        // what came and was not answered
  Framing framing;          // of its first request
  bool continued = false;   // it was told to send the body
  int n_requests = 0;
};

Gate::Gate(const Options& options, Serve serve, Refusal refuse)
    : options_(options),
      serve_(std::move(serve)),
      refuse_(std::move(refuse)),
      workers_(std::make_unique<WorkerThreads>(options.max_workers)) {
  std::array<int, 2> ends = {-1, -1};
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) == 0) {
    wake_read_ = ends[0];
    wake_write_ = ends[1];
    Watch(wake_read_);
  }
}

Gate::~Gate() {
  workers_.reset();
  for (const auto& [fd, guest] : guests_) close(fd);
  for (const int fd : {listener_, wake_read_, wake_write_, epoll_})
    if (fd >= 0) close(fd);
}

void Gate::Work(int listener) {
  listener_ = listener;
  fcntl(listener_, F_SETFL, fcntl(listener_, F_GETFL) | O_NONBLOCK);
  listen(listener_, kBacklog);
  OpenDoor(true);
  while (!stop_begun_ || !guests_.empty()) {
    HandleEvents();
    TakeBack();
    if (stopping() && !stop_begun_) BeginStop();
    if (Clock::now() >= next_look_) LookAtClocks();
  }
}

void Gate::Stop(milliseconds grace) {
  {
    const std::lock_guard lock(mutex_);
    stop_end_ = Clock::now() + grace;
  }
  stopping_ = true;
  Wake();
}

void Gate::HandleEvents() {
  std::array<epoll_event, 64> events;
  const bool clocks_run = !guests_.empty() || !door_open_;
  const int pause = clocks_run ? static_cast<int>(kLookEvery.count()) : -1;
  const int n = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), pause);
  bool at_door = false;
  for (int i = 0; i < n; ++i) {
    const int fd = events[static_cast<std::size_t>(i)].data.fd;
    std::array<char, 256> dropped;
    if (fd == wake_read_)
      while (read(fd, dropped.data(), dropped.size()) > 0) continue;
    else if (fd == listener_)
      at_door = true;  // last: a new socket may have the number of one that is closed here
    else if (const auto found = guests_.find(fd); found != guests_.end())
      Receive(*found->second);
  }
  if (at_door) Admit();
}

void Gate::Admit() {
  while (true) {
    if (guests_.size() >= static_cast<std::size_t>(options_.max_connections) && !MakeRoom())
      return OpenDoor(false);
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) return OpenDoor(errno == EAGAIN || errno == EWOULDBLOCK);
    Guest& guest = *guests_.emplace(fd, std::make_unique<Guest>(fd, options_.limits)).first->second;
    Watch(fd);
    Await(guest);
  }
}

// Closed while there is no room, or while the system has none: else the thread would spin.
void Gate::OpenDoor(bool open) {
  if (open == door_open_) return;
  door_open_ = open;
  open ? Watch(listener_) : Unwatch(listener_);
}

bool Gate::MakeRoom() {
  Guest* oldest = nullptr;
  for (const auto& [fd, guest] : guests_)
    if (guest->state == Guest::State::kIdle && (oldest == nullptr || guest->until < oldest->until))
      oldest = guest.get();
  if (oldest != nullptr) Close(*oldest);
  return oldest != nullptr;
}

void Gate::Receive(Guest& guest) {
  thread_local std::array<char, 64 << 10> buffer;
  const ssize_t n = recv(guest.fd, buffer.data(), buffer.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (guest.state == Guest::State::kLeaving) return n > 0 ? void() : Close(guest);
  if (n < 0 || (n == 0 && guest.input.empty())) return Close(guest);
  if (n == 0) return Refuse(guest, 400);  // it ended in a request
  guest.input.append(buffer.data(), static_cast<std::size_t>(n));
  held_bytes_ += static_cast<std::size_t>(n);
  Look(guest);
}

// At what has come.
void Gate::Look(Guest& guest) {
  if (guest.state == Guest::State::kIdle) {
    const std::size_t begin = std::min(guest.input.find_first_not_of("\r\n"), guest.input.size());
    guest.input.erase(0, begin);  // some clients send empty lines between requests
    held_bytes_ -= begin;
    if (guest.input.empty()) return;
    guest.state = Guest::State::kArriving;
    guest.until = After(options_.read_timeout);
  }
  switch (guest.framing.See(guest.input)) {
    case Framing::State::kWhole:
      return HandOver(guest);
    case Framing::State::kMalformed:
      return Refuse(guest, 400);
    case Framing::State::kHeaderTooLarge:
      return Refuse(guest, 431);
    case Framing::State::kBodyTooLarge:
      return Refuse(guest, 413);
    case Framing::State::kIncomplete:
      break;
  }
  if (held_bytes_ > std::max(kMaxHeldBytes, 4 * options_.limits.body_bytes))
    return Refuse(guest, 503);
  if (!guest.framing.expects_continue() || std::exchange(guest.continued, true)) return;
  if (send(guest.fd, kContinue.data(), kContinue.size(), MSG_NOSIGNAL) < 0) Close(guest);
}

void Gate::HandOver(Guest& guest) {
  guest.state = Guest::State::kServed;
  held_bytes_ -= guest.input.size();
  Unwatch(guest.fd);
  workers_->Add([this, &guest] {
    const Visit visit{.socket = guest.fd,
                      .request = std::string_view(guest.input).substr(0, guest.framing.size()),
                      .number = guest.n_requests + 1};
    const bool stays = serve_(visit);
    {
      const std::lock_guard lock(mutex_);
      returned_.emplace_back(&guest, stays);
    }
    Wake();
  });
}

void Gate::TakeBack() {
  std::vector<std::pair<Guest*, bool>> returned;
  {
    const std::lock_guard lock(mutex_);
    returned.swap(returned_);
  }
  for (const auto& [guest, stays] : returned) TakeBack(*guest, stays);
}

void Gate::TakeBack(Guest& guest, bool stays) {
  guest.input.erase(0, guest.framing.size());
  if (guest.input.capacity() > kSmallInput) guest.input.shrink_to_fit();
  held_bytes_ += guest.input.size();
  guest.framing.Restart();
  guest.continued = false;
  ++guest.n_requests;
  Watch(guest.fd);
  if (!stays) return Leave(guest);
  Await(guest);
  if (!guest.input.empty()) Look(guest);
}

// Its next request.
void Gate::Await(Guest& guest) {
  guest.state = Guest::State::kIdle;
  guest.until = After(options_.idle_timeout);
}

Gate::Clock::time_point Gate::After(milliseconds time) const {
  return Clock::now() + (stop_begun_ ? std::min(time, kLastWord) : time);
}

void Gate::Refuse(Guest& guest, int status) {
  const std::string text = refuse_(status);
  [[maybe_unused]] const auto n = send(guest.fd, text.data(), text.size(), MSG_NOSIGNAL);
  Leave(guest);
}

// Unread bytes at the close would reset the connection, and the answer with it: so what the client
// still sends is read, for a while.
void Gate::Leave(Guest& guest) {
  shutdown(guest.fd, SHUT_WR);
  held_bytes_ -= guest.input.size();
  guest.input = std::string();
  guest.state = Guest::State::kLeaving;
  guest.until = Clock::now() + kLinger;
}

void Gate::Close(Guest& guest) {
  held_bytes_ -= guest.input.size();
  const int fd = guest.fd;
  guests_.erase(fd);  // and the guest
  close(fd);          // which leaves the epoll, too
}

void Gate::LookAtClocks() {
  const auto now = Clock::now();
  next_look_ = now + kLookEvery;
  Clock::time_point stop_end = Clock::time_point::max();
  if (stop_begun_) {
    const std::lock_guard lock(mutex_);
    stop_end = stop_end_;
  }
  std::vector<Guest*> late;
  for (const auto& [fd, guest] : guests_)
    if (guest->state == Guest::State::kServed ? now >= stop_end : now >= guest->until)
      late.push_back(guest.get());
  for (Guest* const guest : late) {
    if (guest->state == Guest::State::kServed)
      shutdown(guest->fd, SHUT_RDWR);  // its worker is told by the socket
    else if (guest->state == Guest::State::kArriving)
      Refuse(*guest, 408);
    else
      Close(*guest);
  }
  if (!stop_begun_ && guests_.size() < static_cast<std::size_t>(options_.max_connections))
    OpenDoor(true);
}

void Gate::BeginStop() {
  Admit();  // who came before the end is told of it
  OpenDoor(false);
  close(std::exchange(listener_, -1));
  stop_begun_ = true;
  const auto last = Clock::now() + kLastWord;
  for (const auto& [fd, guest] : guests_)
    if (guest->state != Guest::State::kServed) guest->until = std::min(guest->until, last);
}

void Gate::Watch(int fd) {
  epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void Gate::Unwatch(int fd) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
}

void Gate::Wake() {
  [[maybe_unused]] const auto n = write(wake_write_, "w", 1);
}

}  // namespace foretoken::server
