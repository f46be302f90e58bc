// SPDX-License-Identifier: Apache-2.0
// Reads what run_recorder.cpp writes. Nothing is believed: a value out of its range, an unknown key
// and a round that does not follow from those before it are errors with the line's number.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/files/text_file.h"
#include "foretoken/drafts.h"
#include "foretoken/tools/replay.h"

namespace foretoken {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;
constexpr int kMaxTokens = 1 << 24, kMaxToken = std::numeric_limits<int>::max();
constexpr double kMostUs = 1e12;

// Takes the values of one object, each once. The first thing that is wrong sticks; after it all
// values are 0 or empty.
class Fields {
 public:
  explicit Fields(const Json& object) : object_(object) {}

  bool Has(const char* key) const { return object_.contains(key); }

  template <typename T>
  void Integer(const char* key, T low, T high, T& value) {
    const Json* json = Take(key);
    if (json == nullptr) return;
    if (json->is_number_unsigned()) {
      const auto x = json->get<std::uint64_t>();
      if (std::cmp_greater_equal(x, low) && std::cmp_less_equal(x, high)) {
        value = static_cast<T>(x);
        return;
      }
    } else if (json->is_number_integer()) {
      const auto x = json->get<std::int64_t>();
      if (std::cmp_greater_equal(x, low) && std::cmp_less_equal(x, high)) {
        value = static_cast<T>(x);
        return;
      }
    }
    Bad(fmt::format("'{}' is not a whole number in [{}, {}]", key, low, high));
  }
  void Number(const char* key, double low, double high, double& value) {
    const Json* json = Take(key);
    if (json == nullptr) return;
    const double x =
        json->is_number() ? json->get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (x >= low && x <= high)
      value = x;
    else
      Bad(fmt::format("'{}' is not a number in [{}, {}]", key, low, high));
  }
  void Text(const char* key, std::string& value) {
    const Json* json = Take(key);
    if (json == nullptr) return;
    if (json->is_string())
      value = json->get<std::string>();
    else
      Bad(fmt::format("'{}' is not a string", key));
  }
  void OneOf(const char* key, std::span<const char* const> names, std::string& value) {
    Text(key, value);
    if (why_.empty() && std::find(names.begin(), names.end(), value) == names.end())
      Bad(fmt::format("'{}' is not one of its values", key));
  }
  void Flag(const char* key, bool& value) {
    const Json* json = Take(key);
    if (json == nullptr) return;
    if (json->is_boolean())
      value = json->get<bool>();
    else
      Bad(fmt::format("'{}' is neither true nor false", key));
  }
  const Json* Array(const char* key, std::size_t most) {
    const Json* json = Take(key);
    if (json != nullptr && json->is_array() && json->size() <= most) return json;
    if (json != nullptr) Bad(fmt::format("'{}' is not a list of at most {}", key, most));
    return nullptr;
  }
  void Probabilities(const char* key, std::vector<float>& values) {
    const Json* list = Array(key, kMaxDraft);
    if (list == nullptr) return;
    for (const Json& json : *list) {
      const double x = json.is_number() ? json.get<double>() : -1;
      if (!(x >= 0 && x <= 1)) return Bad(fmt::format("'{}' holds no probability", key));
      values.push_back(static_cast<float>(x));
    }
  }
  void Tokens(const char* key, std::vector<std::int32_t>& values) {
    const Json* list = Array(key, kMaxDraft);
    if (list == nullptr) return;
    for (const Json& json : *list) {
      const bool whole = json.is_number_integer();
      if (!whole || json.get<double>() < 0 || json.get<double>() > kMaxToken)
        return Bad(fmt::format("'{}' holds no token id", key));
      values.push_back(json.get<std::int32_t>());
    }
  }
  void Bad(std::string why) {
    if (why_.empty()) why_ = std::move(why);
  }
  // What is wrong; "" if nothing is, unknown keys included.
  std::string Why() {
    if (why_.empty() && taken_ != object_.size()) why_ = "a key that no trace has";
    return why_;
  }

 private:
  const Json* Take(const char* key) {
    if (!why_.empty()) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      Bad(fmt::format("'{}' is missing", key));
      return nullptr;
    }
    ++taken_;
    return &*found;
  }

  const Json& object_;
  std::size_t taken_ = 0;
  std::string why_;
};

// Puts the trace together line by line and follows each request's text.
class TraceReader {
 public:
  // What is wrong with the line; "" if nothing is.
  std::string Take(const Json& object) {
    Fields fields(object);
    if (first_)
      Header(fields);
    else if (fields.Has("lines"))
      Lines(fields);
    else if (fields.Has("request"))
      Request(fields);
    else if (fields.Has("costs"))
      Costs(fields);
    else
      Round(fields);
    whole_ = !says_its_end_ || fields.Has("lines");
    first_ = false;
    ++n_lines_;
    return fields.Why();
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

  void Header(Fields& f) {
    TraceHeader& h = trace_.header;
    int version = 0;
    f.Integer("foretoken_trace", 1, 2, version);
    says_its_end_ = version == 2;
    f.Text("version", h.version);
    f.Text("cpu", h.cpu);
    f.Text("isa", h.isa);
    f.Integer("threads", 0, 1 << 16, h.threads);
    f.Text("model", h.model);
    f.Text("model_type", h.model_type);
    f.Text("draft_model", h.draft_model);
    f.Text("draft_type", h.draft_type);
    f.Text("method", h.method);
    f.Text("strategy", h.strategy);
    f.Text("lookahead", h.controller);
    f.Integer("num_speculative_tokens", 0, kMaxDraft, h.num_speculative_tokens);
    f.Integer("context_size", 1, kMaxTokens, h.context_size);
    f.Integer("max_sequences", 1, 1024, h.max_sequences);
  }

  void Lines(Fields& f) {
    std::int64_t written = 0;
    f.Integer("lines", n_lines_, n_lines_, written);
  }

  void Request(Fields& f) {
    TracedRequest& r = trace_.requests.emplace_back();
    const int number = static_cast<int>(trace_.requests.size()) - 1;
    int written = 0;
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    f.Integer("request", number, number, written);
    f.Integer("id", std::uint64_t{0}, kMost, r.id);
    f.Integer("seed", std::uint64_t{0}, kMost, r.seed);
    f.Text("method", r.method);
    f.Text("strategy", r.strategy);
    f.Text("lookahead", r.controller);
    f.Integer("num_speculative_tokens", 0, kMaxDraft, r.num_speculative_tokens);
    f.Number("temperature", 0, 2, r.temperature);
    f.Integer("top_k", -1, kMaxToken, r.top_k);
    f.Number("top_p", 0, 1, r.top_p);
    f.Number("min_p", 0, 1, r.min_p);
    f.Integer("prompt_tokens", 1, kMaxTokens, r.prompt_tokens);
    f.Integer("max_new_tokens", 0, kMaxTokens, r.max_new_tokens);
    progress_.emplace_back();
  }

  void Costs(Fields& f) {
    const Json* list = f.Array("costs", 1 << 16);
    if (list == nullptr) return;
    for (const Json& json : *list) {
      TracedCost& cost = trace_.costs.emplace_back();
      if (!json.is_object()) return f.Bad("'costs' holds something else than objects");
      Fields point(json);
      point.Integer("rows", 1, 1 << 20, cost.rows);
      point.Integer("context", 0, kMaxTokens, cost.context);
      point.Number("us", 0, kMostUs, cost.us);
      f.Bad(point.Why());
    }
  }

  void Round(Fields& f) {
    TracedRound& r = trace_.rounds.emplace_back();
    constexpr std::int64_t kMostPasses = std::int64_t{1} << 48;
    f.Integer("pass", std::max<std::int64_t>(pass_, 0), kMostPasses, r.pass);
    f.Integer("of", 0, static_cast<int>(trace_.requests.size()) - 1, r.request);
    f.Flag("prefill", r.prefill);
    f.Integer("fed", 0, kMaxTokens, r.fed);
    f.Integer("position", 1, kMaxTokens, r.position);
    f.Integer("context", 0, kMaxTokens, r.context);
    f.Integer("others", 0, 1024, r.others);
    f.Integer("rows", 1, 1 << 20, r.rows);
    f.Integer("asked", 0, kMaxDraft, r.asked);
    if (f.Has("drafts")) Drafts(f, r);
    if (f.Has("next")) Verdict(f, r);
    f.Number("draft_us", 0, kMostUs, r.draft_us);
    f.Number("verify_us", 0, kMostUs, r.verify_us);
    f.Number("rest_us", 0, kMostUs, r.rest_us);
    constexpr std::array kEnds = {"stop", "length", "cancelled"};
    if (f.Has("end")) f.OneOf("end", kEnds, r.end);
    if (f.Why().empty()) f.Bad(Follow(r));
  }

  static void Drafts(Fields& f, TracedRound& r) {
    f.Text("drafter", r.drafter);
    f.Flag("instant", r.instant);
    if (f.Has("at_once")) f.Flag("at_once", r.at_once);  // older traces lack it
    f.Integer("evidence", 0, 3, r.evidence);
    f.Tokens("drafts", r.drafts);
    f.Probabilities("q", r.q);
    f.Probabilities("p", r.p);
    const std::size_t n = r.drafts.size();
    if (n == 0 || r.q.size() != n || r.p.size() != n)
      f.Bad("'drafts', 'q' and 'p' are not of one length");
  }

  static void Verdict(Fields& f, TracedRound& r) {
    const int drafted = static_cast<int>(r.drafts.size());
    f.Integer("accepted", 0, drafted, r.accepted);
    f.Integer("committed", 1, r.accepted + 1, r.committed);
    f.Integer("next", 0, kMaxToken, r.next);
    constexpr std::array kKinds = {"plain", "recovered", "bonus"};
    f.OneOf("kind", kKinds, r.kind);
    const char* kind = drafted == 0 ? "plain" : r.accepted < drafted ? "recovered" : "bonus";
    if (r.kind != kind) f.Bad("'kind' does not follow from the verdict");
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
    const Json object = Json::parse(text.substr(0, end), nullptr, false);
    if (!object.is_object()) return bad(line + 1, "this is not a JSON object");
    if (const std::string why = reader.Take(object); !why.empty()) return bad(line + 1, why);
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
