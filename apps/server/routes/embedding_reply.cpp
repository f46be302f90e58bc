// SPDX-License-Identifier: Apache-2.0
#include "server/routes/embedding_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "foretoken/cancellation.h"
#include "server/router.h"
#include "server/routes/answer.h"

namespace foretoken::server {
namespace {

using InputTokens = std::vector<std::vector<std::int32_t>>;

constexpr std::int64_t kMostEmbeddingBytes = std::int64_t{64} << 20;  // numbers of one reply

// The engine's error about an input, in the words of the request.
ApiError OfInput(const Error& error, const std::string& name) {
  ApiError api = OfEngine(error, false);
  if (api.param == "prompt") api = BadField(name, error.why(), std::move(api.code));
  return api;
}

Parsed<std::vector<std::int32_t>> TokensOfInput(const Engine& engine, const EmbeddingJob& job,
                                                std::size_t i) {
  const Prompt& input = job.inputs[i];
  const int context = engine.summary().target.context_size;
  const auto* const text = std::get_if<std::string>(&input);
  // As llama.cpp: models are trained with control tokens behind a text, which clients may write.
  auto tokens = text != nullptr ? engine.Tokenize(job.written ? job.written(*text) : *text,
                                                  job.add_special, true)
                                : std::get<std::vector<std::int32_t>>(input);
  const auto most = static_cast<std::size_t>(context);
  if (tokens.empty() && !CancellationScope::AnyIsCancelled())
    return Refuse(BadField(job.name(i), "it has no tokens; give some text"));
  if (tokens.size() > most && job.truncate) tokens.resize(most);
  if (tokens.size() > most)
    return Refuse(BadField(
        job.name(i),
        fmt::format("{} tokens do not fit a context of {}; shorten it", tokens.size(), context),
        "context_length_exceeded"));
  return tokens;
}

// Prepares all inputs, before any of them runs.
Parsed<InputTokens> TokensOfInputs(const Service& service, const EmbeddingJob& job) {
  InputTokens inputs;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < job.inputs.size(); ++i) {
    if (service.overload.full()) return Refuse(NoMemory());
    auto tokens = TokensOfInput(service.engine, job, i);
    if (!tokens) return Refuse(std::move(tokens).error());
    rows += job.pooling == Pooling::kNone ? std::ssize(*tokens) : 1;
    inputs.push_back(*std::move(tokens));
  }
  const int size = service.limits.embedding_size;
  if (rows * size > kMostEmbeddingBytes / static_cast<std::int64_t>(sizeof(float)))
    return Refuse(BadField(job.name(0).substr(0, job.name(0).find('[')),
                           fmt::format("{} rows of {} numbers are more than {} MiB; send several "
                                       "requests",
                                       rows, size, kMostEmbeddingBytes >> 20)));
  return inputs;
}

// Runs a few inputs at a time, so that a long list does not fill the queue, and sends everything at
// its end.
class EmbeddingReply final : public LaterReply {
 public:
  EmbeddingReply(Service& service, const HttpRequest& request, EmbeddingJob job, InputTokens inputs,
                 LogLine line)
      : service_(service),
        job_(std::move(job)),
        inputs_(std::move(inputs)),
        line_(std::move(line)),
        counter_(request.charges->bytes),
        begun_(std::chrono::steady_clock::now()) {
    const std::chrono::seconds limit(service.options.request_timeout_s);
    if (limit.count() > 0) deadline_ = begun_ + limit;
    std::size_t bytes = job_.bytes;
    for (const auto& tokens : inputs_) bytes += tokens.capacity() * sizeof(std::int32_t);
    held_.emplace_back(counter_, bytes);
    result_.model = service.limits.name;
    result_.size = service.limits.embedding_size;
    result_.inputs.resize(inputs_.size());
    ChooseWidth(*request.charges);
  }
  ~EmbeddingReply() override {
    line_.Add("inputs", std::ssize(inputs_)).Add("prompt_tokens", n_tokens_);
    if (failure_) {
      line_.Add("error", NameOf(*failure_));
      if (!failure_->param.empty()) line_.Add("param", failure_->param);
    } else if (n_ended_ < inputs_.size() || !text_.ended()) {
      line_.Add("error", NameOf(ClientGone()));
    }
    if (status_ == 0) service_.metrics.AddResponse(status_ = ClientGone().status);
    service_.log.Write(line_.Add("status", status_));
  }
  EmbeddingReply(const EmbeddingReply&) = delete;
  EmbeddingReply& operator=(const EmbeddingReply&) = delete;

  void Begin() {
    while (!failure_ && Submits()) Submit();
  }

  void Watch(std::function<void()> ready) override {
    ready_ = std::move(ready);
    for (Running& one : running_) one.events.Watch(ready_);
  }
  std::chrono::steady_clock::time_point deadline() const override { return deadline_; }
  bool Drop() override {
    if (status_ != 0) return false;
    Fail(NoMemory());
    return true;
  }

  Delivery Take() override {
    if (!failure_ && status_ == 0) Advance();
    if (failure_ && status_ == 0) return Refusal();
    if (n_ended_ < inputs_.size()) return {};
    Delivery delivery;
    if (status_ == 0) {
      delivery.head = Head({});
      result_.n_tokens = n_tokens_;
      result_.time = std::chrono::steady_clock::now() - begun_;
      text_ = job_.write(std::move(result_));
    }
    text_.Write(kAtOnce, delivery.bytes);
    delivery.ended = text_.ended();
    delivery.more = !delivery.ended;
    return delivery;
  }

 private:
  struct Running {
    std::size_t input;
    EventStream events;
  };

  // As many as run together, and one that waits. Where the client may not have so many requests, it
  // has one at a time.
  void ChooseWidth(Charges& charges) {
    width_ = std::min(inputs_.size(),
                      static_cast<std::size_t>(service_.engine.summary().max_sequences) + 1);
    width_ = std::min(width_, static_cast<std::size_t>(service_.requests.capacity()));
    for (Quota::Share& share : charges.shares)
      if (!share.Grow(static_cast<int>(width_) - 1)) width_ = 1;
  }
  bool Submits() const { return running_.size() < width_ && n_begun_ < inputs_.size(); }

  void Submit() {
    const std::size_t i = n_begun_;
    Request request;
    request.prompt_tokens = inputs_[i];
    request.max_new_tokens = 0;
    request.embedding = job_.pooling;
    request.reuse_prefix = false;  // texts that are embedded seldom come again
    auto prepared = service_.engine.Prepare(std::move(request));
    if (!prepared) return Fail(OfInput(prepared.error(), job_.name(i)));
    const std::size_t bytes = prepared->prompt_tokens().size_bytes() + sizeof(AsyncChoice);
    std::vector<AsyncChoice> choices;
    choices.push_back({.request = *std::move(prepared), .held = ByteHold(counter_, bytes)});
    auto events = service_.requests.Submit(std::move(choices), {.arrived = begun_,
                                                                .deadline = deadline_,
                                                                .rounds = false,
                                                                .goes_on = n_ended_ > 0,
                                                                .counter = counter_});
    if (!events && events.error().code == ErrorCode::kBusy && !running_.empty())
      return static_cast<void>(width_ = running_.size());  // the queue has no room for more at once
    if (!events) return Fail(NotTaken(events.error()));
    running_.push_back({i, *std::move(events)});
    if (ready_) running_.back().events.Watch(ready_);
    ++n_begun_;
  }

  // An input that begins may end before it is watched, so what has come is read once more.
  void Advance() {
    for (bool more = true; more && !failure_;) {
      for (Running& one : running_) Read(one);
      std::erase_if(running_, [](const Running& one) { return one.events.ended(); });
      more = Submits();
      while (!failure_ && Submits()) Submit();
    }
  }

  void Read(Running& one) {
    while (auto event = one.events.TryNext()) {
      if (event->kind == StreamEvent::Kind::kFailed)
        return Fail(OfRequest(service_, event->error, false));
      if (event->kind != StreamEvent::Kind::kEnd) continue;
      Completion& completion = event->end->completion;
      if (completion.error) return Fail(OfEngine(*completion.error, false));
      n_tokens_ += std::ssize(completion.prompt_token_ids);
      std::vector<float>& numbers = result_.inputs[one.input] = std::move(completion.embedding);
      if (job_.shape) job_.shape(numbers);
      held_.emplace_back(counter_, numbers.capacity() * sizeof(float));
      ++n_ended_;
    }
  }

  void Fail(ApiError error) {
    if (!failure_) failure_ = std::move(error);
  }

  HttpResponse Head(HttpResponse head) {
    status_ = head.status;
    service_.metrics.AddResponse(status_);
    return head;
  }
  Delivery Refusal() {
    running_.clear();  // which cancels them
    HttpResponse response = ErrorResponse(*failure_);
    response.body.clear();
    return {.head = Head(std::move(response)), .bytes = job_.refusal(*failure_), .ended = true};
  }

  Service& service_;
  const EmbeddingJob job_;
  InputTokens inputs_;
  LogLine line_;
  const std::shared_ptr<ByteCounter> counter_;
  const std::chrono::steady_clock::time_point begun_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::function<void()> ready_;
  std::list<Running> running_;
  std::vector<ByteHold> held_;
  std::size_t width_ = 1, n_begun_ = 0, n_ended_ = 0;
  std::int64_t n_tokens_ = 0;
  Embeddings result_;
  LongText text_;
  std::optional<ApiError> failure_;
  int status_ = 0;
};

}  // namespace

HttpResponse RefusedEmbedding(const ApiError& error, std::string (*refusal)(const ApiError& error),
                              LogLine& line) {
  line.Add("error", NameOf(error));
  if (!error.param.empty()) line.Add("param", error.param);
  HttpResponse response = ErrorResponse(error);
  response.body = refusal(error);
  return response;
}

HttpResponse Embed(Service& service, const HttpRequest& request, EmbeddingJob job, LogLine& line) {
  if (service.options.log_prompts)
    for (const Prompt& input : job.inputs)
      if (const auto* const text = std::get_if<std::string>(&input)) line.Add("input", *text);
  auto inputs = TokensOfInputs(service, job);
  if (!inputs) return RefusedEmbedding(inputs.error(), job.refusal, line);
  job.inputs = {};
  auto reply =
      std::make_shared<EmbeddingReply>(service, request, std::move(job), *std::move(inputs), line);
  reply->Begin();
  return {.later = std::move(reply)};
}

}  // namespace foretoken::server
