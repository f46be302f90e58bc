// SPDX-License-Identifier: Apache-2.0
// The only file that includes yaml-cpp, which reads JSON too. It uses the parser's events, because
// the parser's tree of nodes would resolve aliases and keep the last of two equal keys.
#include "formats/settings_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/files/text_file.h"

namespace foretoken::formats {
namespace {

constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kMaxKeyBytes = 256;  // with its outer keys, which each setting repeats
constexpr const char* kValuesOnly = "a map in a list holds values only; write them flat";

class Collector final : public YAML::EventHandler {
 public:
  explicit Collector(std::string_view section) : section_(section) {}

  const std::optional<std::pair<int, std::string>>& failure() const { return failure_; }
  bool found() const { return found_ || section_.empty(); }
  // Keys at the top whose values are maps.
  const std::vector<std::string>& sections() const { return sections_; }
  std::vector<Setting> Take() { return std::move(settings_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Scalar(mark, "", anchor, "null");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Fail(mark, "an alias (*name) stands here; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Scalar(mark, tag, anchor, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (!Begin(mark, tag, anchor)) return;
    if (frames_.empty() || IsSection())
      return Fail(mark, "a list stands here; write keys and values");
    if (InMapOfList()) return Fail(mark, kValuesOnly);
    if (lists_ == 0) list_line_ = mark.line + 1;
    if (lists_++ > 0) Separate();
    list_ += '[';
    frames_.push_back({.is_map = false});
  }
  void OnSequenceEnd() override {
    if (failure_) return;
    frames_.pop_back();
    list_ += ']';
    if (--lists_ == 0) return Keep(list_line_, std::exchange(list_, ""));
    frames_.back().has_key = false;
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (!Begin(mark, tag, anchor)) return;
    if (InMapOfList()) return Fail(mark, kValuesOnly);
    if (IsSection()) found_ = true;
    if (frames_.size() == 1) sections_.push_back(Shown(frames_[0].key));
    if (lists_ > 0) Separate(), list_ += '{';
    frames_.push_back({.is_map = true});
  }
  void OnMapEnd() override {
    if (failure_) return;
    frames_.pop_back();
    if (lists_ > 0) list_ += '}';
    if (!frames_.empty()) frames_.back().has_key = false;
  }

 private:
  struct Frame {
    bool is_map = true;
    bool has_key = false;  // the key was read, its value is next
    std::string key = {};
    std::set<std::string> keys = {};
  };

  void Fail(const YAML::Mark& mark, std::string why) {
    if (!failure_) failure_.emplace(mark.line + 1, std::move(why));
  }

  // Checks that apply to all nodes. False: this node is refused, or an earlier one was.
  bool Allowed(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (failure_) return false;
    if (anchor != 0)
      Fail(mark, "an anchor (&name) stands here; write values out where they are used");
    if (tag.size() > 1)
      Fail(mark, fmt::format("the tag '{}' stands here; leave it out", Shown(tag)));
    return !failure_;
  }

  bool Begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (!Allowed(mark, tag, anchor)) return false;
    if (!frames_.empty() && frames_.back().is_map && !frames_.back().has_key)
      Fail(mark, "a key is not a string; write key: value");
    if (frames_.size() >= kMaxDepth)
      Fail(mark, fmt::format("nested more than {} deep; write flat keys", kMaxDepth));
    return !failure_;
  }

  void Scalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
              const std::string& value) {
    if (!Allowed(mark, tag, anchor)) return;
    if (frames_.empty()) {
      if (value != "null") Fail(mark, "a single value stands here; write keys and values");
      return;
    }
    Frame& frame = frames_.back();
    if (frame.is_map && !frame.has_key) return Key(mark, value);
    if (IsSection()) {
      if (value != "null")
        return Fail(mark, fmt::format("section '{}' has a value; it holds keys", section_));
      found_ = true;
    }
    if (lists_ == 0) return Keep(mark.line + 1, value);
    if (!frame.is_map) Separate();
    list_ += value;
    frame.has_key = false;
  }

  void Key(const YAML::Mark& mark, const std::string& key) {
    Frame& frame = frames_.back();
    if (!frame.keys.insert(key).second)
      return Fail(mark, fmt::format("key '{}' stands twice; keep one", Shown(key)));
    frame.key = key;
    frame.has_key = true;
    if (lists_ == 0) return;
    Separate();
    list_ += key + ':';
  }

  // A map that is open stands in a list.
  bool InMapOfList() const { return lists_ > 0 && frames_.back().is_map; }

  // The next node is the value of the section's own key.
  bool IsSection() const {
    return !section_.empty() && frames_.size() == 1 && frames_[0].key == section_;
  }
  bool InSection() const {
    return section_.empty() || (frames_.size() > 1 && frames_[0].key == section_);
  }

  void Separate() {
    if (list_.back() != '[' && list_.back() != '{') list_ += ',';
  }

  // A value, possibly a whole list, belongs to the keys that lead to it.
  void Keep(int line, std::string text) {
    if (InSection()) {
      std::string key;
      for (std::size_t i = section_.empty() ? 0 : 1; i < frames_.size(); ++i)
        key += (key.empty() ? "" : ".") + frames_[i].key;
      if (key.size() > kMaxKeyBytes && !failure_)
        failure_.emplace(line, fmt::format("key '{}' has more than {} bytes; write a shorter one",
                                           Shown(key), kMaxKeyBytes));
      if (failure_) return;
      settings_.push_back({std::move(key), std::move(text), line});
    }
    frames_.back().has_key = false;
  }

  std::string_view section_;
  bool found_ = false;
  std::vector<std::string> sections_;
  std::vector<Frame> frames_;
  std::string list_;  // of the outermost list that is open
  int lists_ = 0, list_line_ = 0;
  std::vector<Setting> settings_;
  std::optional<std::pair<int, std::string>> failure_;
};

tl::unexpected<Error> Invalid(std::string_view name, int line, std::string_view why) {
  return Fail(ErrorCode::kInvalidFile, fmt::format("{}: line {}: {}", name, line, why));
}

// Errors of yaml-cpp itself, on one line.
tl::unexpected<Error> Malformed(std::string_view name, int line, const char* what) {
  return Invalid(name, line, fmt::format("{}; write YAML (key: value) or JSON", Shown(what)));
}

}  // namespace

Result<std::vector<Setting>> ParseSettings(const std::string& text, std::string_view name,
                                           std::string_view section) {
  if (text.size() > kMaxSettingsBytes)
    return Fail(ErrorCode::kTooLarge,
                fmt::format("{}: it has more than {} bytes; settings are a few lines", name,
                            kMaxSettingsBytes));
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
    return Malformed(name, static_cast<int>(line), "a zero byte, so this is not text");
  }
  Collector collector(section);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    const bool any = parser.HandleNextDocument(collector);
    if (const auto& failure = collector.failure())
      return Invalid(name, failure->first, failure->second);
    Collector second("");
    if (any && parser.HandleNextDocument(second))
      return Fail(ErrorCode::kInvalidFile,
                  fmt::format("{}: it holds several documents; keep one", name));
  } catch (const YAML::Exception& error) {
    if (const auto& failure = collector.failure())  // the parser continued, and failed later
      return Invalid(name, failure->first, failure->second);
    return Malformed(name, std::max(0, error.mark.line) + 1, error.msg.c_str());
  } catch (const std::exception& error) {
    return Malformed(name, 1, error.what());
  }
  if (!collector.found())
    return Fail(
        ErrorCode::kNotFound,
        collector.sections().empty()
            ? fmt::format("{}: it has no section '{}'; write '{}:' in a line of its own, and the "
                          "settings below it, indented",
                          name, section, section)
            : fmt::format("{}: it has no section '{}'; choose one of {}", name, section,
                          fmt::join(collector.sections(), ", ")));
  return collector.Take();
}

Result<std::vector<Setting>> ReadSettings(const std::string& path, std::string_view section) {
  if (path.ends_with(".toml") || path.ends_with(".TOML"))
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("{}: TOML is not read; write the settings as YAML (key: value) or JSON", path));
  FORETOKEN_TRY(const std::string text,
                ReadTextFile(path, {.most_bytes = kMaxSettingsBytes, .pipes = true}));
  return ParseSettings(text, path, section);
}

}  // namespace foretoken::formats
