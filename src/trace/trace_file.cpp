// SPDX-License-Identifier: Apache-2.0
// Reads what run_recorder.cpp writes. Nothing is believed: a value out of its range, an unknown key
// and a round that does not follow from those before it are errors with the line's number.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "base/files/text_file.h"
#include "base/json/json_reader.h"
#include "base/json/json_record.h"
#include "foretoken/drafts.h"
#include "foretoken/tools/replay.h"
#include "trace/trace_fields.h"

namespace foretoken {
namespace {

using trace::kMostText, trace::kMostToken;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr double kMostUs = 1e12;

constexpr auto kCostFields = [](auto& fields, auto& cost) {
  fields.Integer("rows", 1, 1 << 20, cost.rows);
  fields.Integer("context", 0, kMaxTextTokens, cost.context);
  fields.Number("us", 0, kMostUs, cost.us);
};

// One of these texts.
void OneOf(RecordReader& fields, const char* name, std::span<const char* const> texts,
           std::string& out) {
  fields.Text(name, kMostText, out);
  if (std::find(texts.begin(), texts.end(), out) == texts.end())
    fields.Bad(name, "is not one of its values");
}

// Puts the trace together line by line and follows each request's text.
class TraceReader {
 public:
  // What is wrong with the line; "" if nothing is.
  std::string Take(const Json& object) {
    std::optional<RecordError> error;
    RecordReader fields(object, "", error);
    std::string why;
    const bool is_end = fields.Has("lines");
    if (first_)
      Header(fields);
    else if (is_end)
      fields.Integer("lines", n_lines_, n_lines_, n_lines_);
    else if (fields.Has("request"))
      Request(fields);
    else if (fields.Has("costs"))
      fields.List("costs", 1 << 16, trace_.costs, kCostFields);
    else
      why = Round(fields);
    fields.End();
    whole_ = !says_its_end_ || is_end;
    first_ = false;
    ++n_lines_;
    if (!error) return why;
    return error->where.empty() ? "it " + error->why
                                : fmt::format("'{}' {}", error->where, error->why);
  }
  // Nothing is missing behind the last line.
  bool whole() const { return whole_; }
  RunTrace Finish() && { return std::move(trace_); }

 private:
  struct Progress {  // of a request
    int generated = 0;
    bool ended = false;
    std::int64_t last_pass = -1;
  };

  void Header(RecordReader& fields) {
    int version = 0;
    fields.Integer("foretoken_trace", 1, trace::kTraceVersion, version);
    says_its_end_ = version == trace::kTraceVersion;
    trace::kHeaderFields(fields, trace_.header);
  }

  void Request(RecordReader& fields) {
    int number = static_cast<int>(trace_.requests.size());
    fields.Integer("request", number, number, number);
    trace::kRequestFields(fields, trace_.requests.emplace_back());
    progress_.emplace_back();
  }

  // Why it does not follow from the lines before it; "" if it does.
  std::string Round(RecordReader& f) {
    TracedRound& r = trace_.rounds.emplace_back();
    constexpr std::int64_t kMostPasses = std::int64_t{1} << 48;
    f.Integer("pass", std::max<std::int64_t>(pass_, 0), kMostPasses, r.pass);
    f.Integer("of", 0, static_cast<int>(trace_.requests.size()) - 1, r.request);
    f.Flag("prefill", r.prefill);
    f.Integer("fed", 0, kMaxTextTokens, r.fed);
    f.Integer("position", 1, kMaxTextTokens, r.position);
    f.Integer("context", 0, kMaxTextTokens, r.context);
    f.Integer("others", 0, 1024, r.others);
    f.Integer("rows", 1, 1 << 20, r.rows);
    f.Integer("asked", 0, kMaxDraft, r.asked);
    if (f.Has("drafts")) Drafts(f, r);
    if (f.Has("next")) Verdict(f, r);
    f.Number("draft_us", 0, kMostUs, r.draft_us);
    f.Number("verify_us", 0, kMostUs, r.verify_us);
    f.Number("rest_us", 0, kMostUs, r.rest_us);
    constexpr std::array kEnds = {"stop", "length", "cancelled"};
    if (f.Has("end")) OneOf(f, "end", kEnds, r.end);
    return f.good() ? Follow(r) : "";
  }

  static void Drafts(RecordReader& f, TracedRound& r) {
    f.Text("drafter", kMostText, r.drafter);
    f.Flag("instant", r.instant);
    if (f.Has("at_once")) f.Flag("at_once", r.at_once);  // older traces lack it
    f.Integer("evidence", 0, 3, r.evidence);
    f.Values("drafts", kMaxDraft, 0, kMostToken, r.drafts);
    f.Values("q", kMaxDraft, 0, 1, r.q);
    f.Values("p", kMaxDraft, 0, 1, r.p);
    const std::size_t n = r.drafts.size();
    if (n == 0 || r.q.size() != n || r.p.size() != n)
      f.Bad("drafts", "has not as many entries as 'q' and 'p', or none");
  }

  static void Verdict(RecordReader& f, TracedRound& r) {
    const int drafted = static_cast<int>(r.drafts.size());
    f.Integer("accepted", 0, drafted, r.accepted);
    f.Integer("committed", 1, r.accepted + 1, r.committed);
    f.Integer("next", 0, kMostToken, r.next);
    constexpr std::array kKinds = {"plain", "recovered", "bonus"};
    OneOf(f, "kind", kKinds, r.kind);
    const char* kind = drafted == 0 ? "plain" : r.accepted < drafted ? "recovered" : "bonus";
    if (r.kind != kind) f.Bad("kind", "does not follow from the verdict");
  }

  // The round within its pass and behind the request's last one.
  std::string Follow(const TracedRound& r) {
    const TracedRequest& request = trace_.requests[static_cast<std::size_t>(r.request)];
    Progress& progress = progress_[static_cast<std::size_t>(r.request)];
    const auto drafted = static_cast<int>(r.drafts.size());
    if (r.pass == pass_ && r.rows != rows_)
      return "its pass has another number of rows on an earlier line";
    pass_ = r.pass, rows_ = r.rows;
    if (progress.ended) return "its request has ended on an earlier line";
    if (progress.last_pass == r.pass) return "its request is twice in one pass";
    progress.last_pass = r.pass;
    if (r.prefill != (progress.generated == 0)) return "'prefill' does not fit the request's text";
    if (r.position != request.prompt_tokens + progress.generated)
      return "'position' does not fit the request's text";
    if (r.fed + drafted > r.rows) return "'rows' are fewer than the request's own";
    if (r.asked < drafted) return "more drafts than were asked for";
    if (r.prefill && r.asked > 0) return "drafts while the prompt is read";
    if (!r.prefill && r.committed == 0) return "'next' is missing";
    progress.generated += r.committed;
    if (progress.generated > request.max_new_tokens) return "more tokens than the request asks for";
    if (r.asked > 0 && progress.generated - r.committed + r.asked + 1 > request.max_new_tokens)
      return "'asked' is more than the request has room for";
    progress.ended = !r.end.empty();
    return "";
  }

  RunTrace trace_;
  std::vector<Progress> progress_;
  bool first_ = true, says_its_end_ = false, whole_ = false;
  std::int64_t n_lines_ = 0;  // before this one
  std::int64_t pass_ = -1;
  int rows_ = 0;
};

}  // namespace

Result<RunTrace> ParseTrace(std::string_view text, const std::string& name) {
  const auto bad = [&name](std::size_t line, std::string_view why) {
    return Fail(ErrorCode::kInvalidFile,
                fmt::format("{}: line {}: {}; record the run anew with EngineOptions::record", name,
                            line, why));
  };
  TraceReader reader;
  std::size_t line = 0;
  for (; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return bad(line + 1, "the file is cut off here");
    const auto object = ReadJson(text.substr(0, end));
    if (!object || !object->is_object()) return bad(line + 1, "this is not a JSON object");
    if (const std::string why = reader.Take(*object); !why.empty()) return bad(line + 1, why);
    text.remove_prefix(end + 1);
  }
  if (line == 0) return bad(1, "the file is empty");
  if (!reader.whole()) return bad(line, "the file is cut off behind it");
  return std::move(reader).Finish();
}

Result<RunTrace> LoadTrace(const std::string& path) {
  FORETOKEN_TRY(const std::string text, ReadTextFile(path, {.most_bytes = kMostBytes}));
  return ParseTrace(text, path);
}

}  // namespace foretoken
