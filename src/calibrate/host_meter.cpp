// SPDX-License-Identifier: Apache-2.0
#include "calibrate/host_meter.h"

#include "base/stopwatch.h"

namespace foretoken::calibrate {
namespace {

// So many are timed together, because a single one is near the clock's resolution.
constexpr int kMeetings = 200;

}  // namespace

double DispatchMicroseconds(ThreadPool& pool) noexcept {
  const double us = foretoken::Microseconds([&] {
    for (int i = 0; i < kMeetings; ++i) pool.Run([](int) {});
  });
  return us / kMeetings;
}

double BarrierMicroseconds(ThreadPool& pool) noexcept {
  const double us = foretoken::Microseconds([&] {
    pool.Run([&](int) {
      for (int i = 0; i < kMeetings; ++i) pool.Barrier();
    });
  });
  return us / kMeetings;
}

VerifyMeter::VerifyMeter(const verify::Verifier& verifier, sampling::Sampler sampler,
                         verify::LogitsView logits, int n_drafts)
    : verifier_(verifier),
      sampler_(std::move(sampler)),
      logits_(logits),
      scratch_(2 * static_cast<std::size_t>(sampler_.vocabulary())) {
  const auto vocabulary = static_cast<std::size_t>(sampler_.vocabulary());
  if (!sampler_.greedy())
    distributions_ = AlignedBuffer<float>(static_cast<std::size_t>(n_drafts) * vocabulary);
  // Drafts are the target's own tokens with its own distributions, so no strategy rejects them.
  for (int i = 0; i < n_drafts; ++i) {
    drafts_.push_back(sampler_.Sample(logits.Row(i), scratch_.data()));
    if (!sampler_.greedy())
      sampler_.Distribution(logits.Row(i),
                            distributions_.data() + static_cast<std::size_t>(i) * vocabulary);
    sampler_.Push(drafts_.back());
  }
  sampler_.Pop(n_drafts);
  proposal_ = {.tokens = drafts_,
               .q = sampler_.greedy() ? nullptr : distributions_.data(),
               .q_stride = static_cast<std::int64_t>(vocabulary)};
}

double VerifyMeter::VerifyMicroseconds() noexcept {
  return foretoken::Microseconds([this] { Verify(); });
}

double VerifyMeter::DrawMicroseconds() noexcept {
  return foretoken::Microseconds([this] { sampler_.Sample(logits_.Row(0), scratch_.data()); });
}

}  // namespace foretoken::calibrate
