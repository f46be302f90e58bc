// SPDX-License-Identifier: Apache-2.0
// model/ranks/fields.h: a record as words of a message, described once. A record has a function
//
//   template <class Record, class Field>
//   void VisitFields(Record& record, Field&& field);
//
// that calls `field` for each of its members in order: numbers, kinds, texts and lists of numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "model/ranks/message.h"
#include "model/ranks/words.h"

namespace foretoken::model {

template <class T>
concept OneWord = std::is_enum_v<T> ||(std::integral<T> && sizeof(T) <= sizeof(std::int32_t));

// Writes each field behind what the message has.
class AddFields {
 public:
  explicit AddFields(Message& to) : to_(to) {}
  void operator()(OneWord auto value) const { to_.Add(static_cast<std::int32_t>(value)); }
  void operator()(const std::string& text) const { to_.AddText(text); }
  void operator()(std::span<const std::int32_t> list) const { to_.AddList(list); }

 private:
  Message& to_;
};

// Reads each field; whether all were there, the words say. Spans are views of the message.
class TakeFields {
 public:
  explicit TakeFields(Words& from) : from_(from) {}
  template <OneWord T>
  void operator()(T& value) const {
    value = static_cast<T>(from_.Take());
  }
  void operator()(std::string& text) const { text = from_.TakeText(); }
  void operator()(std::span<const std::int32_t>& list) const { list = from_.TakeList(); }
  void operator()(std::vector<std::int32_t>& list) const {
    const auto words = from_.TakeList();
    list.assign(words.begin(), words.end());
  }

 private:
  Words& from_;
};

}  // namespace foretoken::model
