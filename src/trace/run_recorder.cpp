// SPDX-License-Identifier: Apache-2.0
// The lines of a trace, each an object:
//   {"foretoken_trace":2, ...}                 once, the first: TraceHeader
//   {"request":N, ...}                         TracedRequest, numbered from 0
//   {"pass":N,"of":REQUEST, ...}               TracedRound
//   {"costs":[{"rows":R,"context":C,"us":T}]}  TracedCost
//   {"lines":N}                              the trace is whole up to here, with N lines before; the
//                                            last line of a file that was not cut
#include "trace/run_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/files/input_file.h"
#include "base/json/json.h"
#include "foretoken/result.h"
#include "text/tokenizer/utf8_stream.h"
#include "trace/trace_fields.h"

namespace foretoken::trace {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20, kLongestLine = 1 << 14;
constexpr std::string_view kFirstKey = "{\"foretoken_trace\":";

// As JSON writes it, quotes included; bytes that are no UTF-8 become U+FFFD.
std::string Quoted(std::string_view bytes) {
  text::Utf8Stream stream;
  std::string valid = stream.Push(std::string(bytes));
  valid += stream.Finish();
  return QuotedJson(valid);
}

// Rounding may leave a probability beside its range, which readers refuse.
float Probability(float p) noexcept {
  return p >= 0 ? std::min(p, 1.0f) : 0.0f;
}

const char* Name(round::NextKind kind) {
  constexpr std::array<const char*, 3> kNames = {"plain", "recovered", "bonus"};
  return kNames[static_cast<std::size_t>(kind)];
}

// Replacing an old trace is meant; anything else is a slip.
Status CheckReplaceable(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  FORETOKEN_TRY(const InputFile file, InputFile::Open(path, {.wanted = "a file of its own"}));
  std::string begin(kFirstKey.size(), '\0');
  const ssize_t n = pread(file.descriptor(), begin.data(), begin.size(), 0);
  if (n == 0 || begin.starts_with(kFirstKey)) return {};
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: the file exists and is not a trace; name another one", path));
}

// Writes the fields of a line behind its first one. Numbers have as many digits as a probability needs.
class LineWriter {
 public:
  explicit LineWriter(std::string& line) : line_(line) {}

  template <typename T>
  void Integer(const char* name, std::type_identity_t<T> /*low*/, std::type_identity_t<T> /*high*/,
               const T& value) {
    fmt::format_to(std::back_inserter(line_), ",\"{}\":{}", name, value);
  }
  void Number(const char* name, double /*low*/, double /*high*/, double value) {
    fmt::format_to(std::back_inserter(line_), ",\"{}\":{:.6g}", name, value);
  }
  void Text(const char* name, std::size_t /*most*/, const std::string& text) {
    fmt::format_to(std::back_inserter(line_), ",\"{}\":{}", name, Quoted(text));
  }

 private:
  std::string& line_;
};

}  // namespace

Result<std::unique_ptr<RunRecorder>> RunRecorder::Create(const std::string& path,
                                                         const TraceHeader& header) {
  FORETOKEN_CHECK_OK(CheckReplaceable(path));
  FORETOKEN_TRY(OutputFile file, OutputFile::Create(path, {.devices = true}));
  std::unique_ptr<RunRecorder> recorder(new RunRecorder(std::move(file)));
  recorder->lines_.reserve(kBufferBytes + kLongestLine);
  recorder->rounds_.reserve(static_cast<std::size_t>(header.max_sequences));
  fmt::format_to(std::back_inserter(recorder->lines_), "{}{}", kFirstKey, kTraceVersion);
  LineWriter fields(recorder->lines_);
  kHeaderFields(fields, header);
  recorder->lines_ += "}\n";
  return recorder;
}

RunRecorder::~RunRecorder() {
  if (requests_ > 0) static_cast<void>(Publish());
}

RunRecorder::Slot& RunRecorder::SlotOf(SeqId seq) {
  const auto at = static_cast<std::size_t>(seq);
  FORETOKEN_CHECK(at < slots_.size() && slots_[at] != nullptr);
  return *slots_[at];
}

// Where memory is refused, the lines end before what was being written, and nothing follows.
template <typename Call>
void RunRecorder::Try(Call&& write) noexcept {
  if (!status_) return;
  const std::size_t whole = lines_.size();
  Status done = CatchNoMemory("trace", [&]() -> Status {
    write();
    return {};
  });
  if (done) return;
  if (lines_.size() > whole) lines_.resize(whole);
  rounds_.clear();
  status_ = std::move(done);
}

void RunRecorder::Begin(SeqId seq, const TracedRequest& r) noexcept {
  Try([&] { WriteRequest(seq, r); });
}

void RunRecorder::WriteRequest(SeqId seq, const TracedRequest& r) {
  const auto at = static_cast<std::size_t>(seq);
  if (slots_.size() <= at) slots_.resize(at + 1);
  if (slots_[at] == nullptr) slots_[at] = std::make_unique<Slot>();
  slots_[at]->request = requests_;
  fmt::format_to(std::back_inserter(lines_), "{{\"request\":{}", requests_++);
  LineWriter fields(lines_);
  kRequestFields(fields, r);
  lines_ += "}\n";
  Flush();
}

void RunRecorder::ReadDistributions(SeqId seq, const round::Proposal& proposal,
                                    verify::LogitsView logits, sampling::Sampler& sampler,
                                    float* scratch) noexcept {
  if (!status_) return;
  Distributions& distributions = SlotOf(seq).distributions;
  const int n = std::min(proposal.length(), kMaxDraft);
  for (int i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Token draft = proposal.tokens[at];
    const bool known = sampler.Knows(draft);
    distributions.q[at] = proposal.Distribution(i) == nullptr ? 1.0f
                          : known ? Probability(proposal.Distribution(i)[draft])
                                  : 0.0f;
    if (sampler.greedy()) {
      distributions.p[at] = sampler.Argmax(logits.Row(i)) == draft ? 1.0f : 0.0f;
    } else {
      sampler.Distribution(logits.Row(i), scratch);
      distributions.p[at] = known ? Probability(scratch[draft]) : 0.0f;
    }
    sampler.Push(draft);
  }
  sampler.Pop(n);
}

void RunRecorder::Add(const RecordedRound& round) noexcept {
  if (!status_) return;
  FORETOKEN_DCHECK(rounds_.size() < rounds_.capacity());
  rounds_.push_back(round);
}

void RunRecorder::EndPass(const RecordedPass& pass) noexcept {
  Try([&] { WritePass(pass); });
}

void RunRecorder::WritePass(const RecordedPass& pass) {
  const auto decodes = [](const RecordedRound& r) { return !r.prefill; };
  const auto decoding = static_cast<int>(std::count_if(rounds_.begin(), rounds_.end(), decodes));
  for (const RecordedRound& round : rounds_) Write(pass, round, decoding - (round.prefill ? 0 : 1));
  rounds_.clear();
  ++passes_;
  Flush();
}

void RunRecorder::Write(const RecordedPass& pass, const RecordedRound& round, int others) {
  const Slot& slot = SlotOf(round.seq);
  const std::size_t n = std::min<std::size_t>(round.drafts.size(), kMaxDraft);
  auto out = std::back_inserter(lines_);
  fmt::format_to(out,
                 "{{\"pass\":{},\"of\":{},\"prefill\":{},\"fed\":{},\"position\":{},\"context\":{},"
                 "\"others\":{},\"rows\":{},\"asked\":{}",
                 passes_, slot.request, round.prefill, round.fed, round.position, round.context,
                 others, pass.rows, round.asked);
  if (n > 0)
    fmt::format_to(
        out,
        ",\"drafter\":\"{}\",\"instant\":{},\"at_once\":{},\"evidence\":{},\"drafts\":[{}],"
        "\"q\":[{:.6g}],\"p\":[{:.6g}]",
        round.drafter, round.instant, round.at_once, round.evidence,
        fmt::join(round.drafts.first(n), ","),
        fmt::join(std::span(slot.distributions.q).first(n), ","),
        fmt::join(std::span(slot.distributions.p).first(n), ","));
  if (round.verdict != nullptr)
    fmt::format_to(out, ",\"accepted\":{},\"committed\":{},\"next\":{},\"kind\":\"{}\"",
                   round.verdict->accepted, round.committed, round.verdict->next,
                   Name(round.verdict->kind));
  fmt::format_to(out, ",\"draft_us\":{:.1f},\"verify_us\":{:.1f},\"rest_us\":{:.1f}", pass.draft_us,
                 pass.verify_us, round.rest_us);
  if (round.end[0] != '\0') fmt::format_to(out, ",\"end\":\"{}\"", round.end);
  lines_ += "}\n";
  if (lines_.size() >= kBufferBytes) Flush();
}

void RunRecorder::AddCosts(std::span<const PassCost> costs) {
  if (costs.empty()) return;
  lines_ += "{\"costs\":[";
  for (const PassCost& cost : costs)
    fmt::format_to(std::back_inserter(lines_), "{}{{\"rows\":{},\"context\":{},\"us\":{:.1f}}}",
                   &cost == costs.data() ? "" : ",", cost.rows, cost.context, cost.us.median);
  lines_ += "]}\n";
}

void RunRecorder::Flush() {
  if (lines_.size() < kBufferBytes) return;
  n_lines_ += std::count(lines_.begin(), lines_.end(), '\n');
  if (status_) status_ = file_.Append(lines_);
  lines_.clear();
}

const Status& RunRecorder::Publish() noexcept {
  Try([&] {
    if (!lines_.empty()) {
      n_lines_ += std::count(lines_.begin(), lines_.end(), '\n');
      fmt::format_to(std::back_inserter(lines_), "{{\"lines\":{}}}\n", n_lines_++);
    }
    status_ = file_.Append(lines_);
    lines_.clear();
    if (status_) status_ = file_.Publish();
  });
  return status_;
}

}  // namespace foretoken::trace
