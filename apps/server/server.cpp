// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>
#include <utility>

#include "foretoken/async_engine.h"
#include "foretoken/ranks.h"
#include "foretoken/result.h"
#include "server/engine_meter.h"
#include "server/input_end.h"
#include "server/net/client_address.h"
#include "server/net/http.h"
#include "server/response_store.h"
#include "server/router.h"
#include "server/service.h"

namespace foretoken::server {
namespace {

// Workers read requests and write long answers; the engine has threads of its own.
constexpr int kMinWorkers = 2, kMaxWorkers = 4;
constexpr rlim_t kMaxConnections = 4096;
constexpr rlim_t kOwnFiles = 64;     // descriptors that are no connections
constexpr rlim_t kFewestFiles = 32;  // about 16 are open when it listens
// The time for answers to leave; less after a second signal.
constexpr std::chrono::seconds kGrace{30}, kShortGrace{1};
// Between looks whether a rank is lost, or asks for the end.
constexpr std::chrono::milliseconds kRankPoll{50};

// Turns signals into bytes of a pipe while it lives. The third signal has its default effect. The
// end of the standard input, if it is watched, stands for the first signal.
class Signals {
 public:
  explicit Signals(InputEnd* input) : input_(input) {
    if (pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
    write_end = pipe_[1];
    if (input_ != nullptr) input_->SetTell([] { Write(kInput); });
    struct sigaction action = {};
    action.sa_handler = [](int) { Write(kSignal); };
    action.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &action, &before_[i]);
      if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN)  // nohup
        sigaction(SIGHUP, &before_[i], nullptr);
    }
  }
  ~Signals() {
    if (input_ != nullptr) input_->SetTell({});
    for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
    for (const int end : pipe_)
      if (end >= 0) close(end);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // Waits for the next one; -1 ms: without a limit.
  bool Await(int ms) {
    while (true) {
      pollfd awaited = {.fd = pipe_[0], .events = POLLIN, .revents = 0};  // poll() passes over -1
      const int ready = poll(&awaited, 1, ms);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return false;
      char byte = 0;
      if (read(pipe_[0], &byte, 1) != 1) continue;
      const bool first = !std::exchange(came_, true);
      if (first || byte == kSignal) return true;  // the end of the input is no second signal
    }
  }
  static void LetSystemHandle() {
    for (const int number : kSignals) signal(number, SIG_DFL);
  }

 private:
  static constexpr char kSignal = 's', kInput = 'i';

  static void Write(char byte) {
    const int saved = errno;
    [[maybe_unused]] const auto n = write(write_end, &byte, 1);
    errno = saved;
  }

  static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP};
  static inline volatile int write_end = -1;
  InputEnd* const input_;
  std::array<int, 2> pipe_ = {-1, -1};
  bool came_ = false;  // one of them
  std::array<struct sigaction, 3> before_ = {};
};

// As many as this process may have open; raises that limit as far as possible. Error: too few to
// answer anybody.
Result<int> MaxConnections() {
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return 256;
  const rlim_t wanted = std::min(files.rlim_max, kMaxConnections + kOwnFiles);
  if (files.rlim_cur < wanted) {
    const rlimit raised = {.rlim_cur = wanted, .rlim_max = files.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  if (files.rlim_cur < kFewestFiles)
    return Fail(ErrorCode::kIo, fmt::format("server: this process may have {} files open, and it "
                                            "needs {}; raise the limit (ulimit -n)",
                                            files.rlim_cur, kFewestFiles));
  const rlim_t all = std::min(files.rlim_cur, kMaxConnections + kOwnFiles);
  return static_cast<int>(all > 2 * kOwnFiles ? all - kOwnFiles : all / 2);
}

// Behind a proxy that names the client, all connections are the proxy's.
int ConnectionsPerAddress(const ClientLimits& limits, int connections) {
  const bool of_proxy = !limits.client_address_header.empty();
  return limits.connections_per_address.value_or(of_proxy ? 0 : connections / 2);
}

// The names that requests may use for the model; replies use the first one.
std::vector<std::string> NamesOf(const ServerOptions& options, const EngineSummary& engine) {
  std::vector<std::string> names = options.model_names;
  const std::string& path = engine.target.path;
  const std::string file = std::filesystem::path(path).filename().string();
  names.push_back(file.ends_with(".gguf") ? file.substr(0, file.size() - 5) : file);
  names.push_back(file);
  std::vector<std::string> unique;
  for (std::string& name : names)
    if (std::find(unique.begin(), unique.end(), name) == unique.end())
      unique.push_back(std::move(name));
  return unique;
}

ModelLimits LimitsOf(const ServerOptions& options, const AsyncEngine& requests) {
  const EngineSummary& engine = requests.engine().summary();
  const std::vector<std::string> names = NamesOf(options, engine);
  return {.name = names.front(),
          .aliases = {names.begin() + 1, names.end()},
          .vocabulary_size = engine.target.vocabulary_size,
          .method = engine.method,
          .max_choices = requests.capacity(),
          .slots = engine.max_sequences,
          .embedding_size = engine.target.embedding_size,
          .pooling = engine.pooling,
          .scores_pairs = engine.scores_pairs,
          .pair_template = engine.pair_template,
          .rules = options.request_rules};
}

// Whether there is a template for chats. Error: there is one, and it fails with the variables that
// the options give it.
Result<bool> Chats(const Engine& engine, const ChatOptions& chat_format) {
  const ChatMessage hello{.role = "user", .content = "Hello"};
  const auto formats = [&](const ChatOptions& format) {
    return engine.FormatChat({&hello, 1}, format);
  };
  auto written = formats(chat_format);
  if (written || chat_format.template_kwargs_json.empty()) return written.has_value();
  ChatOptions without = chat_format;
  without.template_kwargs_json.clear();
  if (!formats(without)) return false;
  return Fail(std::move(written).error().In("--chat-template-kwargs"));
}

int Workers() {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores, kMinWorkers, kMaxWorkers);
}

// With no more memory for a conversation than the plan has.
ChatOptions ChatFormat(const ServerOptions& options, const MemoryPlan& plan) {
  ChatOptions format = options.chat_format;
  format.max_memory_bytes =
      std::min(format.max_memory_bytes, static_cast<std::size_t>(plan.conversation));
  return format;
}

HttpOptions HttpOptionsOf(const ServerOptions& options, int connections) {
  return {.host = options.host,
          .port = options.port,
          .max_body_bytes = options.max_body_bytes,
          .max_workers = Workers(),
          .max_connections = connections,
          .max_connections_per_address = ConnectionsPerAddress(options.limits, connections),
          .limits_this_machine = options.limits.connections_per_address.has_value()};
}

// Until a signal comes or the input ends, or one of the ranks is lost. Returns why it is, then; ""
// otherwise.
std::string AwaitEnd(Signals& signals, RankGroup* ranks) {
  if (ranks == nullptr) {
    signals.Await(-1);
    return "";
  }
  while (!signals.Await(static_cast<int>(kRankPoll.count())) && !ranks->end_asked())
    if (std::string lost = ranks->lost(); !lost.empty()) return lost;
  ranks->ExpectEnd();
  return "";
}

// Returns when everything that was accepted has been computed, or after a second signal.
ServeOutcome Drain(Signals& signals, AsyncEngine& requests) {
  requests.Drain();
  while (!requests.AwaitIdle(std::chrono::milliseconds(20)))
    if (signals.Await(0)) return ServeOutcome::kStopped;
  return ServeOutcome::kDrained;
}

Result<ServeOutcome> Listen(Service& service, RankGroup* ranks, ByteLedger& bytes, InputEnd* input,
                            const std::function<void(int port)>& on_listening) {
  FORETOKEN_TRY(const int connections, MaxConnections());
  Router router(service);
  HttpServer http(HttpOptionsOf(service.options, connections), router, bytes, service.overload);
  Signals signals(input);
  FORETOKEN_TRY(const int port, http.Bind());
  std::thread listener([&http] { http.Listen(); });
  const Status told = CatchNoMemory("server", [&]() -> Status {
    on_listening(port);
    return {};
  });
  if (!told) {  // nobody knows of it
    http.Stop(kShortGrace);
    listener.join();
    return Fail(told.error());
  }
  const std::string lost = AwaitEnd(signals, ranks);
  const ServeOutcome outcome = Drain(signals, service.requests);
  if (outcome == ServeOutcome::kStopped) {
    service.requests.Stop();
    Signals::LetSystemHandle();
  }
  http.Stop(outcome == ServeOutcome::kStopped || !lost.empty() ? kShortGrace : kGrace);
  listener.join();
  if (!lost.empty()) return Fail(ErrorCode::kRankLost, lost);
  return outcome;
}

}  // namespace

bool IsOpenToAll(const ServerOptions& options) {
  return options.api_keys.empty() && !IsThisMachineOnly(options.host);
}

Result<ServeOutcome> Serve(std::unique_ptr<Engine> engine, const EngineOptions& engine_options,
                           const ServerOptions& options, InputEnd* input,
                           const std::function<void(int port)>& on_listening) {
  ReturnLargeBuffers();
  ByteLedger bytes;  // before all objects that hold bytes
  Metrics metrics(NamesOf(options, engine->summary()).front());
  Totals totals;
  RequestLog log(options.log_requests);
  EngineMeter meter(metrics, totals, log);
  FORETOKEN_TRY(
      const auto requests,
      AsyncEngine::Start(std::move(engine), {.max_waiting = options.max_queue,
                                             .measure_plain = engine_options.record.empty(),
                                             .observer = &meter}));
  metrics.BeginAt(requests->snapshot());
  FORETOKEN_TRY(const MemoryPlan plan, PlanMemory(requests->engine().summary(), options.max_memory,
                                                  options.max_body_bytes, Workers() + 1));
  requests->engine().LimitGrammars(static_cast<std::size_t>(plan.grammars));
  const ChatOptions chat_format = ChatFormat(options, plan);
  FORETOKEN_TRY(const bool chats, Chats(requests->engine(), chat_format));
  Overload overload(plan, bytes);
  const ModelCalls model_calls = FindModelCalls(requests->engine(), chat_format);
  NextTurns next_turns(*requests, model_calls);
  ToldFields told;
  std::atomic<bool> slot_in_work = false;
  ResponseStore responses(static_cast<std::size_t>(plan.responses));
  Service service{.requests = *requests,
                  .engine = requests->engine(),
                  .options = options,
                  .limits = LimitsOf(options, *requests),
                  .chats = chats,
                  .started = static_cast<std::int64_t>(std::time(nullptr)),
                  .metrics = metrics,
                  .totals = totals,
                  .log = log,
                  .overload = overload,
                  .responses = responses,
                  .chat_format = chat_format,
                  .model_calls = model_calls,
                  .next_turns = next_turns,
                  .told = told,
                  .slot_folder = engine_options.slot_folder,
                  .slot_in_work = slot_in_work};
  FORETOKEN_TRY(const ServeOutcome outcome,
                Listen(service, engine_options.ranks.get(), bytes, input, on_listening));
  next_turns.Stop();
  const std::unique_ptr<Engine> closed = requests->Close();
  if (const Status kept = closed->KeepCache(); !kept && !meter.told_cache_file())
    log.Write(LogLine().Add("event", "cache_file").Add("error", kept.error().message));
  FORETOKEN_CHECK_OK(closed->RecordStatus());
  return outcome;
}

}  // namespace foretoken::server
