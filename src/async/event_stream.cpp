// SPDX-License-Identifier: Apache-2.0
#include "foretoken/event_stream.h"

#include <algorithm>
#include <utility>

#include "async/mailbox.h"
#include "foretoken/result.h"

namespace foretoken {

EventStream::EventStream(std::shared_ptr<async::Mailbox> mailbox, int n_choices)
    : mailbox_(std::move(mailbox)), n_choices_(n_choices) {}

EventStream::EventStream(EventStream&& other) noexcept
    : mailbox_(std::move(other.mailbox_)),
      n_choices_(other.n_choices_),
      n_ended_(other.n_ended_),
      failed_(other.failed_) {}

EventStream& EventStream::operator=(EventStream&& other) noexcept {
  if (this == &other) return *this;
  Close();
  mailbox_ = std::move(other.mailbox_);
  n_choices_ = other.n_choices_;
  n_ended_ = other.n_ended_;
  failed_ = other.failed_;
  return *this;
}

EventStream::~EventStream() {
  Close();
}

void EventStream::Close() noexcept {
  if (!mailbox_) return;
  mailbox_->Watch(nullptr);
  if (!ended()) mailbox_->Cancel();
}

std::optional<StreamEvent> EventStream::Next() {
  return NextUntil(TimePoint::max());
}

std::optional<StreamEvent> EventStream::TryNext() {
  return NextUntil(TimePoint::min());
}

std::optional<StreamEvent> EventStream::NextUntil(TimePoint until) {
  while (!ended()) {
    if (auto event = mailbox_->Take()) {
      n_ended_ += event->kind == StreamEvent::Kind::kEnd;
      failed_ = event->kind == StreamEvent::Kind::kFailed;
      return event;
    }
    const TimePoint now = TimePoint::clock::now();
    if (now >= deadline()) {
      mailbox_->Fail(async::Failure::kDeadline);
    } else if (now >= until) {
      return std::nullopt;
    } else {
      mailbox_->Await(std::min(until, deadline()));
    }
  }
  return std::nullopt;
}

bool EventStream::ended() const {
  return failed_ || n_ended_ == n_choices_;
}

Result<std::vector<Completion>> EventStream::Collect() {
  return CatchNoMemory("request", [&]() -> Result<std::vector<Completion>> {
    std::vector<Completion> completions(static_cast<std::size_t>(n_choices_));
    while (auto event = Next()) {
      if (event->kind == StreamEvent::Kind::kFailed) return Fail(std::move(event->error));
      if (event->kind != StreamEvent::Kind::kEnd) continue;
      Completion& completion = event->end->completion;
      if (completion.error) {
        Cancel();
        return Fail(*std::move(completion.error));
      }
      completions[static_cast<std::size_t>(event->choice)] = std::move(completion);
    }
    return completions;
  });
}

void EventStream::Watch(std::function<void()> ready) {
  mailbox_->Watch(std::move(ready));
}

void EventStream::Cancel() noexcept {
  mailbox_->Cancel();
}

EventStream::TimePoint EventStream::deadline() const {
  return mailbox_->deadline();
}

}  // namespace foretoken
