// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_tree.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace foretoken::server {
namespace {

constexpr std::size_t kMaxDepth = 72;  // a JSON Schema's own 64, and the fields around it
// About the memory of the values. A short text can have many: "{}," takes 24 times its size.
constexpr std::size_t kMaxTreeBytes = 32 << 20;
constexpr std::size_t kValueBytes = 24;   // a place in a list, some of which are free
constexpr std::size_t kListBytes = 40;    // a list or an object beside its place
constexpr std::size_t kMemberBytes = 96;  // a node of an object and its name

ApiError Bad(const std::string& why) {
  return {.message = "body: " + why, .code = "invalid_json"};
}

ApiError TooMuch() {
  return {.status = 413,
          .message = fmt::format("body: its values take more than {} MiB of memory; send fewer",
                                 kMaxTreeBytes >> 20),
          .code = "request_too_large"};
}

// Builds the values as the library's parser finds them. The library's own builder, when asked to
// report names, searches a list's earlier values after each list or object in it.
class Builder {
 public:
  bool null() { return Put(nullptr); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(std::int64_t value) { return Put(value); }
  bool number_unsigned(std::uint64_t value) { return Put(value); }
  bool number_float(double value, const std::string&) { return Put(value); }
  bool string(std::string& value) { return Charge(TextBytes(value)) && Put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }  // not in texts

  bool start_object(std::size_t) { return Open(Json::object()); }
  bool start_array(std::size_t) { return Open(Json::array()); }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool key(std::string& name) {
    if (!Charge(kMemberBytes + TextBytes(name))) return false;
    auto& object = open_.back()->get_ref<Json::object_t&>();
    const auto [place, is_new] = object.try_emplace(name);
    member_ = &place->second;
    return is_new ||
           Fail(Bad(fmt::format("{} is given twice; keep one", JsonFields::Shown(Json(name)))));
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) {
    return Fail(Bad("it is not valid JSON in UTF-8; send a JSON object"));
  }

  Parsed<Json> Take() {
    if (error_) return Refuse(*std::move(error_));
    return std::move(root_);
  }

 private:
  static std::size_t TextBytes(const std::string& text) { return 32 + text.size(); }

  bool Fail(ApiError error) {
    if (!error_) error_ = std::move(error);
    return false;
  }
  bool Charge(std::size_t bytes) {
    bytes_ += bytes;
    return bytes_ <= kMaxTreeBytes || Fail(TooMuch());
  }
  // Where the next value goes. Places in lists move when a list grows, but not while a value in it
  // is open.
  Json* Place(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    return &(*member_ = std::move(value));
  }
  bool Put(Json value) {
    Place(std::move(value));
    return Charge(kValueBytes);
  }
  bool Open(Json value) {
    if (open_.size() == kMaxDepth) return Fail(Bad("it is nested too deeply; flatten it"));
    open_.push_back(Place(std::move(value)));
    return Charge(kValueBytes + kListBytes);
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  Json* member_ = nullptr;   // the member whose value comes next
  std::vector<Json*> open_;  // the lists and objects around the next value
  std::size_t bytes_ = 0;
  std::optional<ApiError> error_;
};

}  // namespace

Parsed<Json> ReadJsonObject(std::string_view text) {
  if (text.empty()) return Refuse(Bad("it is empty; send a JSON object"));
  // The library would take a zero byte for the end.
  if (text.find('\0') != text.npos)
    return Refuse(Bad("there is a NUL byte in it; send a JSON object"));
  Builder builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  Parsed<Json> json = builder.Take();
  if (json && !json->is_object()) return Refuse(Bad("it is not an object; send one: {...}"));
  return json;
}

}  // namespace foretoken::server
