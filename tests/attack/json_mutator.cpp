// SPDX-License-Identifier: Apache-2.0
#include "attack/json_mutator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "attack/colliding_names.h"

namespace foretoken::attack {
namespace {

const std::vector<std::string> kValues =
    Words(R"(0;-1;1;2;31;64;1000000;2147483648;9223372036854775807;18446744073709551615;)"
          R"(99999999999999999999999;0.5;-0.0;1e-300;1e308;1e999;NaN;null;true;false;[];{};[[]];)"
          R"([1, -1];[0, 18446744073709551615];{"a": 1, "a": 2};"";"F16";"F8_E4M3";"I64";"llama";)"
          R"("gemma3_text";"qwen3_moe";"yarn";"llama3";"BPE";"Unigram";"ByteLevel";"<s>";"\u0000";)"
          R"("\ud800";"(a+)+$";"{{ 1";"../../etc/passwd";)"
          "\"\xff\"",
          ';');

struct Part {
  std::size_t begin = 0, end = 0;
};

// Names, texts, numbers and words.
std::vector<Part> Scalars(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,:[]{}";
  std::vector<Part> parts;
  for (std::size_t at = 0; at < text.size();) {
    if (kBetween.find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (text[at] == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
    } else {
      end = std::min(text.find_first_of(",:[]{} \n\"", at + 1), text.size());
    }
    parts.push_back({at, end});
    at = end;
  }
  return parts;
}

// Objects or lists without anything, or names, by the thousand.
std::string ManyMembers(Random& random) {
  const auto n = static_cast<std::size_t>(random.Below(random.OneIn(4) ? 20'000 : 200));
  const auto kind = random.Below(3);
  std::string members;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0) members += ',';
    if (kind == 0) members += i % 2 == 0 ? "{}" : "[]";
    if (kind == 1) members += fmt::format("\"name {}\":0", i);
    if (kind == 2) members += fmt::format("\"{}{}\":0", CollidingName(i), i / kCollidingNames);
  }
  return kind == 0 ? "[" + members + "]" : "{" + members + "}";
}

std::string HostileValue(Random& random) {
  switch (random.Below(16)) {
    case 3:
      return ManyMembers(random);
    case 0:
      return std::string(static_cast<std::size_t>(random.Below(40'000)), '[');
    case 1:
      return "\"" + std::string(static_cast<std::size_t>(random.Below(70'000)), 'a') + "\"";
    case 2:
      return fmt::format("{}", random.Next() >> random.Below(64));
    default:
      return std::string(random.Pick(kValues));
  }
}

std::string ChangeScalar(Random& random, std::string& text) {
  const std::vector<Part> parts = Scalars(text);
  if (parts.empty()) return "no values";
  const Part part = random.Pick(parts);
  const std::string was = text.substr(part.begin, std::min<std::size_t>(part.end - part.begin, 40));
  const Part other = random.Pick(parts);
  switch (random.Below(6)) {
    case 0:
      text.erase(part.begin, part.end - part.begin);
      return was + " taken out";
    case 1: {  // up to another value: a part of the structure is gone, or comes twice
      const auto [first, last] = std::minmax(part.begin, other.begin);
      const bool twice = random.OneIn(2);
      if (twice)
        text.insert(last, text.substr(first, last - first));
      else
        text.erase(first, last - first);
      return fmt::format("{} bytes {} at {}", last - first, twice ? "twice" : "taken out", was);
    }
    case 2:
      text.replace(part.begin, part.end - part.begin,
                   text.substr(other.begin, other.end - other.begin));
      return was + " replaced by another value";
    default: {
      const std::string value = HostileValue(random);
      text.replace(part.begin, part.end - part.begin, value);
      return fmt::format("{} is now {}", was, value.substr(0, 40));
    }
  }
}

std::string ChangeByte(Random& random, std::string& text) {
  if (text.empty()) return "empty";
  const auto at = static_cast<std::size_t>(random.Below(text.size()));
  switch (random.Below(3)) {
    case 0:
      text.resize(at);
      return fmt::format("cut to {} bytes", at);
    case 1:
      text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
      return fmt::format("a flipped bit at byte {}", at);
    default:
      text.insert(at, 1 + static_cast<std::size_t>(random.Below(9)),
                  static_cast<char>(random.Next()));
      return fmt::format("more bytes at byte {}", at);
  }
}

// Tensors without data in front of the others.
std::string AddTensors(Random& random, std::string& header) {
  const auto n = static_cast<std::size_t>(random.Below(random.OneIn(4) ? 20'000 : 200));
  const bool collide = random.OneIn(2);
  const std::string_view shape = random.OneIn(2) ? "[0]" : "[]";
  std::string tensors;
  for (std::size_t i = 0; i < n; ++i)
    tensors += fmt::format("\"{}{}\":{{\"dtype\":\"F32\",\"shape\":{},\"data_offsets\":[0,0]}},",
                           collide ? CollidingName(i) : "t", i, shape);
  header.insert(std::min(header.find('{') + 1, header.size()), tensors);
  return fmt::format("{} more tensors", n);
}

// A safetensors file: the header's length in 8 bytes, the header, the tensors' data.
std::string ChangeSafetensors(Random& random, std::string& file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) return ChangeByte(random, file);
  std::memcpy(&length, file.data(), sizeof length);
  if (length > file.size() - sizeof length || random.OneIn(4)) return ChangeByte(random, file);
  if (random.OneIn(8)) {
    length = random.OneIn(2) ? random.Next() >> random.Below(64) : length + random.Below(5) - 2;
    std::memcpy(file.data(), &length, sizeof length);
    return fmt::format("a header of {} bytes", length);
  }
  std::string header = file.substr(sizeof length, static_cast<std::size_t>(length));
  const std::string what =
      random.OneIn(10) ? AddTensors(random, header) : ChangeJson(random, header);
  file.replace(sizeof length, static_cast<std::size_t>(length), header);
  length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  return what;
}

}  // namespace

std::string ChangeJson(Random& random, std::string& text) {
  return random.OneIn(5) ? ChangeByte(random, text) : ChangeScalar(random, text);
}

std::string ChangeFolder(Random& random, std::map<std::string, std::string>& files) {
  auto at = files.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random.Below(files.size())));
  auto& [name, text] = *at;
  if (random.OneIn(24)) {
    const std::string what = name + " missing";
    files.erase(at);
    return what;
  }
  const bool is_json = name.ends_with(".json");
  return name + ": " + (is_json ? ChangeJson(random, text) : ChangeSafetensors(random, text));
}

}  // namespace foretoken::attack
