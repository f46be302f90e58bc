// SPDX-License-Identifier: Apache-2.0
// foretoken/async_engine.h: an engine with a thread of its own. Any thread submits requests and
// reads their tokens as they come; requests that run together share the target's passes.
//
//   auto opened = foretoken::AsyncEngine::Open({.model = "target.gguf", .max_sequences = 4});
//   if (!opened) return Print(opened.error().message);
//   foretoken::AsyncEngine& engine = **opened;
//   foretoken::Request request;
//   request.prompt = "Once upon a time";
//   auto stream = engine.Submit(request);  // from any thread, as many as the queue holds
//   if (!stream) return Print(stream.error().message);
//   while (auto event = stream->Next()) {
//     if (event->kind == foretoken::StreamEvent::Kind::kRound) Print(event->round.text);
//     if (event->kind == foretoken::StreamEvent::Kind::kFailed) Print(event->error.message);
//   }
//
// A request gives the text that Engine::Generate gives, whatever runs beside it.
//
// A bounded queue holds the requests that wait for one of EngineOptions.max_sequences sequences;
// the oldest one is next. Requests are checked, tokenized and their grammars compiled before they
// queue, on the submitter's thread (Engine::Prepare).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "foretoken/engine.h"
#include "foretoken/event_stream.h"
#include "foretoken/options.h"
#include "foretoken/result.h"

namespace foretoken {

// What an AsyncEngine does, for a program's metrics. Its functions run on the engine's thread,
// between two steps, so they must be quick. They must not throw, except std::bad_alloc: the call is
// then lost, and no request is affected.
class AsyncObserver {
 public:
  virtual ~AsyncObserver() = default;
  // A pass gave a choice tokens. prefill: they are its first ones. gap_ms: since its last tokens,
  // or since its request arrived.
  virtual void OnRound(const RoundEvent& /*round*/, bool /*prefill*/, double /*gap_ms*/) {}
  // A step decoded: its time, summed over its choices, and an estimate of what plain decoding would
  // have taken for the same tokens.
  virtual void OnStep(double /*actual_ms*/, double /*plain_ms*/) {}
  // The cache's file cannot be written any more (Engine::CacheFileStatus). Called once.
  virtual void OnCacheFileError(const Error& /*error*/) {}
  // A choice that ran has ended, and its reader does not know yet.
  virtual void OnEnd(const ChoiceEnd& /*end*/) {}
};

struct AsyncOptions {
  int max_waiting = 64;  // choices that may wait besides those that run; >= 0
  // Decodes a few tokens without drafts before the first request, where the engine has not measured
  // that: at most about half a second. The estimates of plain decoding need it. It would be part of
  // a trace (EngineOptions.record).
  bool measure_plain = false;
  AsyncObserver* observer = nullptr;  // or null; must outlive the AsyncEngine
};

// One text that a request asks for. A request may have several: for several prompts, or several
// texts for one prompt, which differ in their Request::id (PreparedRequest::set_id).
struct AsyncChoice {
  PreparedRequest request;
  // False: it has the prompt of the choice before it. Returned in ChoiceEnd, so that a program can
  // count each prompt once.
  bool first_of_prompt = true;
  ByteHold held = {};    // counts the memory of `request`, until the choice has ended
  bool observed = true;  // false: AsyncObserver is not told of it
};

struct SubmitOptions {
  std::chrono::steady_clock::time_point arrived = std::chrono::steady_clock::now();
  // The request fails then (kDeadline) if it has not ended. At latest when the step that runs then
  // has ended, or earlier if its reader waits for it.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
  bool rounds = true;  // false: no events of kind kRound
  // It goes on with a request that was accepted before, one part of which has ended: neither a full
  // queue nor Drain refuses it.
  bool goes_on = false;
  std::shared_ptr<ByteCounter> counter = nullptr;  // counts the events that were not read; or null
};

// Choices that have not ended.
struct AsyncLoad {
  int running = 0, waiting = 0;
};

// The engine after its last step.
struct EngineSnapshot {
  EngineCounts counts;
  EngineLoad load;
  // The time of a plain token of a request that runs alone; 0: not known.
  double plain_ms_per_token = 0;
};

class AsyncEngine {
 public:
  // Opens an engine and starts its thread. Errors: as Engine::Open; kInvalidArgument (a negative
  // max_waiting), kNoMemory (also: no thread).
  [[nodiscard]] static Result<std::unique_ptr<AsyncEngine>> Open(EngineOptions options,
                                                                 const AsyncOptions& async = {});
  // Starts the thread of an engine that is open and has no request. Errors: kInvalidArgument,
  // kNoMemory; the engine is then closed.
  [[nodiscard]] static Result<std::unique_ptr<AsyncEngine>> Start(std::unique_ptr<Engine> engine,
                                                                  const AsyncOptions& async = {});
  // Stops the engine and waits for the step that runs. No thread may use the object any more.
  ~AsyncEngine();
  AsyncEngine(const AsyncEngine&) = delete;
  AsyncEngine& operator=(const AsyncEngine&) = delete;

  // Any thread may call all members from here to Stop, several at once.

  // Prepares a request and queues it. Errors: as Engine::Prepare; kBusy (the queue is full: submit
  // it again later), kStopped (Drain or Stop was called).
  [[nodiscard]] Result<EventStream> Submit(Request request, SubmitOptions options = {});
  // Queues prepared requests as the choices of one: all of them or none. Errors: kInvalidArgument
  // (no choice), kTooLarge (more than `capacity`), kBusy, kStopped, kNoMemory. A choice that another
  // engine prepared ends with an error.
  [[nodiscard]] Result<EventStream> Submit(std::vector<AsyncChoice> choices,
                                           SubmitOptions options = {});
  // The most choices that may run and wait together.
  int capacity() const;

  // The engine, for those of its members that any thread may call: Prepare, Tokenize, Detokenize,
  // TokenOf, FormatChat, UseFor, UseForAny, FileStatus, copy and, but for its notices, summary.
  const Engine& engine() const;

  AsyncLoad load() const;
  EngineSnapshot snapshot() const;
  // What a pass costs by its rows, as it was when the last choice ended.
  std::vector<RowCost> PassCosts() const;

  // Runs the call on the engine's thread, between two steps, and waits for its end. Requests wait
  // meanwhile. The call must not throw, but for std::bad_alloc, begin or end requests. Errors: kStopped,
  // kNoMemory.
  [[nodiscard]] Status Run(const std::function<void(Engine& engine)>& call);

  // From now on no request is accepted. Those that were accepted run to their ends.
  void Drain();
  bool draining() const;
  // Waits until no choice runs or waits, or until the time has passed. True: none does.
  bool AwaitIdle(std::chrono::milliseconds time);
  // Every request that has not ended fails (kStopped), and no request is accepted any more. Does
  // not wait for the step that runs.
  void Stop();

  // Stops, waits for the thread and gives the engine back, for RecordStatus for example. One
  // thread; no other may use the object during this call or after it.
  std::unique_ptr<Engine> Close();

 private:
  class Impl;
  explicit AsyncEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken
