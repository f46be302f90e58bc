// SPDX-License-Identifier: Apache-2.0
#include "server/next_turn.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "server/api/object_text.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kMostWaiting = 16, kMostBytes = std::size_t{8} << 20;
constexpr int kMostInterruptions = 8;
// Between looks whether the engine has nothing to do.
constexpr std::chrono::milliseconds kPause{50};

// The answer as clients send it back. Thoughts are not sent.
ChatMessage MessageOf(const std::vector<calls::AnswerPart>& answer, const std::string& id) {
  using Kind = calls::AnswerPart::Kind;
  struct Call {
    std::string name, arguments;
  };
  std::string text;
  std::vector<Call> calls;
  for (const calls::AnswerPart& part : answer) {
    if (part.kind == Kind::kText) text += part.text;
    if (part.kind == Kind::kName) calls.push_back({.name = part.text, .arguments = {}});
    if (part.kind == Kind::kArguments && !calls.empty()) calls.back().arguments += part.text;
  }
  Json list = Json::array();
  for (const auto& [name, arguments] : calls)
    list.push_back(
        {{"id", id + std::to_string(list.size())},
         {"type", "function"},
         {"function", {{"name", name}, {"arguments", arguments.empty() ? "{}" : arguments}}}});
  const Json members = {
      {"role", "assistant"}, {"content", NullIfEmpty(text)}, {"tool_calls", std::move(list)}};
  return {.role = "assistant", .content = text, .members_json = members.written()};
}

ChatMessage ResultOf(const std::string& name, const std::string& id, const std::string& result) {
  const Json members = {
      {"role", "tool"}, {"tool_call_id", id + "0"}, {"name", name}, {"content", result}};
  return {.role = "tool", .content = result, .members_json = members.written()};
}

}  // namespace

std::size_t Conversation::bytes() const {
  std::size_t n = sizeof *this + format.tools_json.size() + format.template_kwargs_json.size();
  for (const ChatMessage& m : messages)
    n += sizeof m + m.role.size() + m.content.size() + m.members_json.size();
  return n;
}

NextTurns::NextTurns(AsyncEngine& requests, const ModelCalls& model)
    : requests_(requests), model_(model), thread_([this] { Run(); }) {}

void NextTurns::Add(std::shared_ptr<const Conversation> conversation,
                    std::vector<calls::AnswerPart> answer) {
  if (conversation->bytes() <= kMostBytes) Put({std::move(conversation), std::move(answer)}, false);
}

void NextTurns::Put(Answered answered, bool first) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  bytes_ += answered.conversation->bytes();
  if (first)
    waiting_.push_front(std::move(answered));
  else
    waiting_.push_back(std::move(answered));
  while (waiting_.size() > kMostWaiting || bytes_ > kMostBytes) {
    bytes_ -= waiting_.front().conversation->bytes();
    waiting_.pop_front();
  }
  changed_.notify_all();
}

void NextTurns::GiveWay() noexcept {
  const std::lock_guard lock(mutex_);
  if (reading_ != nullptr) reading_->Cancel();
}

void NextTurns::Stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (reading_ != nullptr) reading_->Cancel();
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::int64_t NextTurns::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

// Where there is no memory for a beginning, it is not read.
void NextTurns::Run() {
  while (auto answered = Next()) {
    try {
      if (!Read(*answered) && ++answered->n_interrupted < kMostInterruptions)
        Put(*std::move(answered), true);
    } catch (const std::bad_alloc&) {
    }
  }
}

// The newest one, once the engine has nothing else to do: its client comes back soonest, and those that
// wait for long have probably come back. Nothing: it was stopped.
std::optional<NextTurns::Answered> NextTurns::Next() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return std::nullopt;
    const AsyncLoad load = requests_.load();
    if (load.running + load.waiting == 0) break;
    changed_.wait_for(lock, kPause, [this] { return stopped_; });
  }
  Answered newest = std::move(waiting_.back());
  waiting_.pop_back();
  bytes_ -= newest.conversation->bytes();
  return newest;
}

bool NextTurns::Read(const Answered& answered) {
  Request request;
  request.prompt_tokens = Beginning(answered);
  const auto n = static_cast<std::int64_t>(request.prompt_tokens.size());
  if (n == 0 || n >= requests_.engine().summary().target.context_size) return true;
  request.max_new_tokens = 1;  // so that it is read
  request.speculative.enabled = false;
  request.cache_salt = answered.conversation->cache_salt;
  auto prepared = requests_.engine().Prepare(std::move(request));
  if (!prepared) return true;
  std::vector<AsyncChoice> choices;
  choices.push_back({.request = *std::move(prepared), .observed = false});
  std::unique_lock lock(mutex_);
  if (stopped_) return true;
  auto events = requests_.Submit(std::move(choices), {.rounds = false});
  if (!events) return true;
  reading_ = &*events;
  lock.unlock();
  bool whole = false, interrupted = false;
  while (const auto event = events->Next()) {
    if (!event->end) continue;
    const FinishReason reason = event->end->completion.finish_reason;
    interrupted = reason == FinishReason::kCancelled;
    whole = !interrupted && !event->end->completion.error;
  }
  lock.lock();
  reading_ = nullptr;
  if (whole) tokens_ += n;
  return !interrupted;
}

// What two next turns have in common whose results begin differently. Tokens at its end do not depend on
// what follows.
std::vector<std::int32_t> NextTurns::Beginning(const Answered& answered) const {
  std::vector<std::int32_t> one = Written(answered, "call_a", "0");
  const std::vector<std::int32_t> other = Written(answered, "call_b", "\n\n a");
  const auto parts = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  one.erase(parts.first, one.end());
  return one;
}

// Empty where the template refuses it.
std::vector<std::int32_t> NextTurns::Written(const Answered& answered, const std::string& id,
                                             const std::string& result) const {
  const Conversation& conversation = *answered.conversation;
  const auto name =
      std::find_if(answered.answer.begin(), answered.answer.end(),
                   [](const auto& part) { return part.kind == calls::AnswerPart::Kind::kName; });
  if (name == answered.answer.end()) return {};
  std::vector<ChatMessage> messages = conversation.messages;
  messages.push_back(MessageOf(answered.answer, id));
  messages.push_back(ResultOf(name->text, id, result));
  ChatOptions format = conversation.format;
  PutToolsInText(model_, messages, format.tools_json);
  auto tokens = requests_.engine().FormatChat(messages, format);
  return tokens ? *std::move(tokens) : std::vector<std::int32_t>();
}

}  // namespace foretoken::server
