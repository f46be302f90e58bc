// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_reader.h"

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json/json_members.h"
#include "base/utf8.h"

namespace foretoken {
namespace {

// About the memory of what has a small text: "{}," takes 24 times its size.
constexpr std::size_t kValueBytes = 24;   // a place in an array, some of which are free
constexpr std::size_t kListBytes = 40;    // an array or an object beside its place
constexpr std::size_t kMemberBytes = 96;  // a member beside its name and its value
constexpr std::size_t kTextBytes = 32;    // a text beside its characters

constexpr std::string_view kSpace = " \t\n\r", kByteOrderMark = "\xEF\xBB\xBF";

// The first byte that belongs to no character; the size where there is none.
std::size_t FirstInvalid(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Utf8Character character = ReadUtf8(text.substr(at));
    if (!character.valid()) break;
    at += character.size;
  }
  return at;
}

}  // namespace

// Makes a value of RapidJSON's events. An event that gives false ends the reading.
class JsonReader {
 public:
  JsonReader(std::string_view text, const JsonLimits& limits)
      : text_(text), limits_(limits), stream_(text.data(), text.size()) {}

  tl::expected<Json, JsonError> Read() {
    // RapidJSON counts the bytes of a string in 32 bits.
    if (text_.size() > std::numeric_limits<std::uint32_t>::max())
      return tl::unexpected(JsonError{JsonError::Kind::kMemory});
    if (text_.starts_with(kByteOrderMark)) stream_.src_ += kByteOrderMark.size();
    end_ = stream_.Tell();
    rapidjson::Reader reader;
    reader.Parse<rapidjson::kParseIterativeFlag>(stream_, *this);
    // A byte of value 0 ends RapidJSON's text.
    if (!reader.HasParseError() && stream_.Tell() == text_.size()) return std::move(root_);
    if (reader.GetParseErrorCode() != rapidjson::kParseErrorTermination) BadAt(stream_.Tell());
    return tl::unexpected(std::move(error_));
  }

  bool Null() { return Put(Json()); }
  bool Bool(bool value) { return Put(value); }
  bool Int(int value) { return Put(value); }
  bool Uint(unsigned value) { return Put(value); }
  bool Int64(std::int64_t value) { return Put(value); }
  bool Uint64(std::uint64_t value) { return Put(value); }
  // about: RapidJSON's number, whose last digits may be others.
  bool Double(double about) {
    double value = 0;
    const std::size_t begin = Begin();
    const auto read = std::from_chars(text_.data() + begin, text_.data() + stream_.Tell(), value);
    if (read.ec == std::errc()) return Put(value);
    return std::fabs(about) < 1 ? Put(0.0) : BadAt(stream_.Tell());
  }
  bool RawNumber(const char*, unsigned, bool) { return false; }  // for another form of reading
  bool String(const char* text, unsigned size, bool) {
    return Charge(kTextBytes + size) && IsText({text, size}) && Put(std::string(text, size));
  }
  bool Key(const char* text, unsigned size, bool) {
    if (!Charge(kMemberBytes + kTextBytes + size) || !IsText({text, size})) return false;
    Json& outer = *open_.back();
    end_ = stream_.Tell();
    member_ = outer.data_.members->Find({text, size});
    const bool distinct =
        limits_.distinct == JsonLimits::Distinct::kAll ||
        (limits_.distinct == JsonLimits::Distinct::kOutermost && open_.size() == 1);
    if (member_ != nullptr && distinct && IsBefore(':')) return Twice({text, size});
    if (member_ == nullptr) member_ = &outer.data_.members->Add({text, size});
    return true;
  }
  bool StartObject() { return Open(Json::Kind::kObject); }
  bool StartArray() { return Open(Json::Kind::kArray); }
  bool EndObject(unsigned) { return Close(); }
  bool EndArray(unsigned) { return Close(); }

 private:
  bool Fail(JsonError error) { return error_ = std::move(error), false; }
  bool BadAt(std::size_t at) { return Fail({JsonError::Kind::kSyntax, at + 1}); }
  bool Charge(std::size_t bytes) {
    charged_ += bytes;
    return charged_ <= limits_.most_memory || Fail({JsonError::Kind::kMemory});
  }

  bool IsBefore(char c) const {
    const std::size_t next = text_.find_first_not_of(kSpace, end_);
    return next != text_.npos && text_[next] == c;
  }

  // Where the event at hand begins in the text.
  std::size_t Begin() const { return text_.find_first_not_of(" \t\n\r,:", end_); }

  // Where the next value goes.
  Json& Place() {
    if (open_.empty()) return root_;
    Json& outer = *open_.back();
    return outer.is_array() ? outer.data_.elements->emplace_back() : *member_;
  }

  bool Put(Json value) {
    if (!Charge(kValueBytes)) return false;
    if (limits_.keeps_text) {
      value.source_ = text_.data() + Begin();
      SetSourceEnd(value, stream_.Tell());
    }
    end_ = stream_.Tell();
    Place().swap(value);
    return true;
  }

  // RapidJSON takes a bracket after its event.
  bool Open(Json::Kind kind) {
    if (open_.size() == limits_.most_depth) return Fail({JsonError::Kind::kDepth});
    Json value(kind);
    if (limits_.keeps_text) value.source_ = text_.data() + stream_.Tell();
    end_ = stream_.Tell() + 1;
    Json& place = Place();
    place.swap(value);
    open_.push_back(&place);
    return Charge(kValueBytes + kListBytes);
  }

  bool Close() {
    end_ = stream_.Tell() + 1;
    if (limits_.keeps_text) SetSourceEnd(*open_.back(), end_);
    open_.pop_back();
    return true;
  }

  void SetSourceEnd(Json& value, std::size_t end) {
    value.source_size_ = static_cast<std::uint32_t>(text_.data() + end - value.source_);
  }

  bool Twice(std::string name) {
    std::vector<std::string> path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i)
      path.push_back(open_[i]->is_array() ? std::to_string(open_[i]->size() - 1)
                                          : open_[i]->members().back().name);
    return Fail({JsonError::Kind::kTwice, 0, std::move(name), std::move(path)});
  }

  // text: of the event at hand. Escapes may stand for half a pair of surrogates, which is no character.
  bool IsText(std::string_view text) {
    if (FirstInvalid(text) == text.size()) return true;
    const std::size_t begin = Begin();
    return BadAt(begin + FirstInvalid(text_.substr(begin, stream_.Tell() - begin)));
  }

  const std::string_view text_;
  const JsonLimits& limits_;
  rapidjson::MemoryStream stream_;
  std::size_t end_ = 0, charged_ = 0;  // end_: of the event before
  Json root_;
  std::vector<Json*> open_;  // the arrays and objects around the next value
  Json* member_ = nullptr;   // the place of the next value, in an object
  JsonError error_{};
};

tl::expected<Json, JsonError> ReadJson(std::string_view text, const JsonLimits& limits) {
  return JsonReader(text, limits).Read();
}

Json JsonOrNull(std::string_view text) {
  return ReadJson(text).value_or(Json());
}

}  // namespace foretoken
