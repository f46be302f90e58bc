// SPDX-License-Identifier: Apache-2.0
#include "server/api/json_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/json/json_reader.h"
#include "config/nearest_name.h"
#include "server/api/idle_fields.h"

namespace foretoken::server {
namespace {

constexpr std::size_t kShownBytes = 40, kShownNameBytes = 64;
constexpr std::size_t kNamesLookedAt = 32;  // unknown fields; each is compared with all known ones

const char* Wanted(Json::Kind kind) {
  return kind == Json::Kind::kBoolean  ? "is neither true nor false; give one of them"
         : kind == Json::Kind::kString ? "is not a text; give one in quotes"
                                       : "is not an object; give one";
}

thread_local FieldNotes* notes_of_thread = nullptr;

constexpr std::size_t kMaxDepth = 72;  // a JSON Schema's own 64, and the fields around it
constexpr std::size_t kMaxTreeBytes = 32 << 20;

ApiError BadBody(const std::string& why) {
  return {.message = "body: " + why, .code = "invalid_json"};
}

ApiError BadBody(const JsonError& error) {
  switch (error.kind) {
    case JsonError::Kind::kDepth:
      return BadBody("it is nested too deeply; flatten it");
    case JsonError::Kind::kMemory:
      return {.status = 413,
              .message = fmt::format("body: its values take more than {} MiB of memory; send fewer",
                                     kMaxTreeBytes >> 20),
              .code = "request_too_large"};
    case JsonError::Kind::kTwice:
      return BadBody(
          fmt::format("{} is given twice; keep one", JsonFields::Shown(Json(error.name))));
    default:
      return BadBody("it is not valid JSON in UTF-8; send a JSON object");
  }
}

}  // namespace

Parsed<Json> ReadJsonObject(std::string_view text) {
  if (text.empty()) return Refuse(BadBody("it is empty; send a JSON object"));
  if (text.find('\0') != text.npos)
    return Refuse(BadBody("there is a NUL byte in it; send a JSON object"));
  auto json = ReadJson(text, {.most_depth = kMaxDepth,
                              .most_memory = kMaxTreeBytes,
                              .distinct = JsonLimits::Distinct::kAll,
                              .keeps_text = true});
  if (!json) return Refuse(BadBody(json.error()));
  if (!json->is_object()) return Refuse(BadBody("it is not an object; send one: {...}"));
  return *std::move(json);
}

FieldNotes::FieldNotes() : outer_(std::exchange(notes_of_thread, this)) {}

FieldNotes::~FieldNotes() {
  notes_of_thread = outer_;
}

FieldNotes* FieldNotes::OfThread() {
  return notes_of_thread;
}

FieldNote* FieldNotes::Find(std::string_view prefix, std::string_view name) {
  const auto known = std::find_if(notes_.begin(), notes_.end(), [&](const FieldNote& note) {
    return note.name == name && note.prefix == prefix;
  });
  return known == notes_.end() ? nullptr : &*known;
}

// A name that was only looked for may have a kind later.
void FieldNotes::Add(FieldNote note) {
  FieldNote* const known = Find(note.prefix, note.name);
  if (known == nullptr)
    notes_.push_back(std::move(note));
  else if (known->kind == Json::Kind::kNull && note.kind != Json::Kind::kNull)
    *known = std::move(note);
  else if (known->words.empty())
    known->words = std::move(note.words);
}

void FieldNotes::Require(const std::string& prefix, std::string_view name) {
  FieldNote* const note = Find(prefix, name);
  if (note != nullptr && note->kind != Json::Kind::kObject) note->required = true;
}

bool FieldNotes::IsClosed(std::string_view prefix) const {
  return std::find(closed_.begin(), closed_.end(), prefix) != closed_.end();
}

void JsonFields::Note(const Names& names, const FieldNote& note) const {
  FieldNotes* const notes = FieldNotes::OfThread();
  if (notes == nullptr) return;
  const std::string first(*names.begin());
  for (const std::string_view name : names) {
    FieldNote own = note;
    own.prefix = prefix_, own.name = name;
    if (name != first) own.same_as = first;
    notes->Add(std::move(own));
  }
}

std::string JsonFields::JsonText(float value) {
  return fmt::format("{}", value);
}

void JsonFields::Refuse(ApiError error) {
  if (!failed()) error_ = std::move(error);
}

void JsonFields::Bad(std::string_view name, std::string_view why, std::string code) {
  FieldNotes* const notes = FieldNotes::OfThread();
  if (notes != nullptr && !object_.contains(name)) notes->Require(prefix_, name);
  Refuse(BadField(prefix_ + std::string(name), why, std::move(code)));
}

void JsonFields::Missing(const Names& names, std::string_view why) {
  if (FieldNotes* const notes = FieldNotes::OfThread())
    notes->AddChoice(std::vector<std::string>(names.begin(), names.end()));
  Refuse(BadField(prefix_ + std::string(*names.begin()), why));
}

const Json* JsonFields::Find(std::string_view name) {
  known_.push_back(name);
  Note(name, {});
  if (failed()) return nullptr;
  const Json* const found = object_.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

// Null, "", [] and {} ask for nothing.
void JsonFields::NoteIdle(std::string_view name, const Json* value) const {
  IdleFields* const idle = IdleFields::OfThread();
  if (idle == nullptr || value == nullptr || failed()) return;
  const bool empty =
      value->is_string() ? value->text().empty() : value->is_structured() && value->empty();
  if (!empty) idle->Add(prefix_ + std::string(name));
}

std::optional<std::int64_t> JsonFields::ReadInteger(std::string_view name, std::int64_t least,
                                                    std::int64_t most) {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto n = WholeNumber(*value);
  if (!n)
    Bad(name, Shown(*value) + " is not a whole number; give one");
  else if (*n < least || *n > most)
    Bad(name, fmt::format("{} is not in [{}, {}]; give a value in that range", *n, least, most));
  return failed() ? std::nullopt : n;
}

std::optional<double> JsonFields::ReadNumber(std::string_view name, double least, double most) {
  const Json* const value = Find(name);
  if (value == nullptr) return std::nullopt;
  const double x = value->is_number() ? value->number() : 0;
  if (!value->is_number())
    Bad(name, Shown(*value) + " is not a number; give one");
  else if (!(x >= least && x <= most))
    Bad(name, fmt::format("{} is not in [{}, {}]; give a value in that range", Shown(*value), least,
                          most));
  return failed() ? std::nullopt : std::optional(x);
}

const Json* JsonFields::ReadKind(std::string_view name, Json::Kind kind) {
  static const Json empty = Json::object();
  Note(name, {.kind = kind});
  const Json* const value = Find(name);
  if (value == nullptr && kind == Json::Kind::kObject && FieldNotes::OfThread() != nullptr)
    return &empty;
  if (value == nullptr || value->kind() == kind) return value;
  Bad(name, fmt::format("{} {}", Shown(*value), Wanted(kind)));
  return nullptr;
}

bool JsonFields::OneOf(std::string_view name, std::string_view noun,
                       std::span<const std::string_view> words, std::string& out) {
  Note(name, {.kind = Json::Kind::kString, .words = {words.begin(), words.end()}});
  std::string text;
  if (!Text(name, text)) return false;
  if (std::find(words.begin(), words.end(), text) == words.end())
    Bad(name, fmt::format("'{}' is not {}; use {}", foretoken::Shown(text, 32), noun,
                          fmt::join(words, ", ")));
  else
    out = std::move(text);
  return !failed();
}

const Json* JsonFields::FindForeign(std::string_view name, std::string_view about,
                                    std::string_view only) {
  Note(name, {.foreign = true, .about = std::string(about), .only = std::string(only)});
  const Json* const value = Find(name);
  known_.pop_back();
  foreign_.push_back(name);
  return value;
}

void JsonFields::Differ(std::string_view name, std::string_view other) {
  Bad(name, fmt::format("{} is given too, with another value; keep one of them", other));
}

std::string_view JsonFields::Nearest(const std::string& name) const {
  return name.size() <= kShownNameBytes ? NearestName(name, known_) : std::string_view();
}

std::vector<std::string> JsonFields::Unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.members()) {
    const auto in = [&name](const std::vector<std::string_view>& known) {
      return std::find(known.begin(), known.end(), name) != known.end();
    };
    if (!value.is_null() && !in(known_) && !in(foreign_)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.resize(std::min(names.size(), kNamesLookedAt));
  return names;
}

void JsonFields::BadName(const std::string& name) {
  const std::string_view nearest = Nearest(name);
  Bad(ShownName(name),
      nearest.empty() ? "no such field; leave it out"
                      : fmt::format("no such field; the nearest one is {}", nearest),
      "unknown_field");
}

std::vector<std::string> JsonFields::Others() {
  std::vector<std::string> others;
  for (const std::string& name : Unknown()) {
    const std::string_view nearest = Nearest(name);
    if (!nearest.empty() && !object_.contains(nearest)) BadName(name);
    others.push_back(ShownName(name));
  }
  return others;
}

void JsonFields::Finish() {
  if (FieldNotes* const notes = FieldNotes::OfThread()) notes->Close(prefix_);
  const std::vector<std::string> unknown = Unknown();
  const auto mistyped = std::find_if(unknown.begin(), unknown.end(),
                                     [this](const auto& name) { return !Nearest(name).empty(); });
  if (!unknown.empty()) BadName(mistyped != unknown.end() ? *mistyped : unknown.front());
}

std::string JsonFields::ShownName(const std::string& name) {
  const std::string shown = Shown(Json(name));
  return shown.substr(1, shown.size() - 2);
}

std::optional<std::int64_t> JsonFields::WholeNumber(const Json& value) {
  if (value.is_integer()) return value.integer();
  if (!value.is_number()) return std::nullopt;
  const double x = value.number();
  if (!(std::fabs(x) < 9e15) || x != std::floor(x)) return std::nullopt;
  return static_cast<std::int64_t>(x);
}

std::string JsonFields::Shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump({.ascii = true});
  if (text.size() > kShownBytes) text = text.substr(0, kShownBytes - 3) + "...";
  return text;
}

}  // namespace foretoken::server
