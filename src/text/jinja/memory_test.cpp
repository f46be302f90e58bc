// SPDX-License-Identifier: Apache-2.0
// The memory of a rendering is bounded: what the process really takes is counted here, by the
// operators new and delete of this test program.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "base/failure_testing.h"
#include "text/chat_template.h"
#include "text/jinja/template.h"
#include "text/jinja/values/json_text.h"

namespace {

std::atomic<std::int64_t> heap_bytes = 0, heap_peak = 0;

void* Allocate(std::size_t bytes) {
  void* const place = std::malloc(bytes);
  if (place == nullptr) throw std::bad_alloc();
  const std::int64_t now = heap_bytes += static_cast<std::int64_t>(malloc_usable_size(place)) + 8;
  std::int64_t peak = heap_peak;
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) continue;
  return place;
}

void Release(void* place) noexcept {
  if (place != nullptr) heap_bytes -= static_cast<std::int64_t>(malloc_usable_size(place)) + 8;
  std::free(place);
}

}  // namespace

// All of them, so that none of a sanitizer's own frees what another of these allocated.
void* operator new(std::size_t bytes) {
  return Allocate(bytes);
}
void* operator new[](std::size_t bytes) {
  return Allocate(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*nothrow*/) noexcept {
  try {
    return Allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](std::size_t bytes, const std::nothrow_t& nothrow) noexcept {
  return operator new(bytes, nothrow);
}
void operator delete(void* place) noexcept {
  Release(place);
}
void operator delete[](void* place) noexcept {
  Release(place);
}
void operator delete(void* place, const std::nothrow_t& /*nothrow*/) noexcept {
  Release(place);
}
void operator delete[](void* place, std::size_t /*bytes*/) noexcept {
  Release(place);
}
void operator delete(void* place, std::size_t /*bytes*/) noexcept {
  Release(place);
}

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kBound = std::size_t{8} << 20;
// Beside the values: sorts take a place for half of what they sort, errors have their texts.
constexpr std::int64_t kMostPeak = kBound + kBound / 4;

// The most memory that call() takes at a time.
template <typename Call>
std::int64_t PeakOf(const Call& call) {
  const std::int64_t before = heap_bytes;
  heap_peak = before;
  call();
  return heap_peak - before;
}

// A text that stands n times.
std::string Repeated(std::string_view part, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += part;
  return all;
}

// Renders a template that wants far more than it may have, with b: a text of 64 K characters.
void ExpectBounded(const std::string& source) {
  const auto parsed = Template::Parse("{% set b = 'a b\n' * 16384 %}" + source);
  ASSERT_TRUE(parsed.has_value()) << source << parsed.error().message;
  std::string message;
  const std::int64_t peak = PeakOf([&] {
    Budget budget({.memory_bytes = kBound});
    const auto text = parsed->Render(budget, {}, {});
    if (!text) message = text.error().message;
  });
  EXPECT_NE(message.find("more than 8 MiB of memory"), std::string::npos) << source << message;
  EXPECT_NE(message.find("line "), std::string::npos) << message;
  EXPECT_LE(peak, kMostPeak) << source.substr(0, 100);
}

TEST(TemplateMemory, OfCapturesInsideCapturesIsBounded) {
  ExpectBounded(Repeated("{% set x %}{{ b }}", 100) + Repeated("{% endset %}", 100));
  ExpectBounded(Repeated("{% filter upper %}{{ b }}", 100) + Repeated("{% endfilter %}", 100));
  ExpectBounded("{% macro f(n) %}{{ b }}{{ f(n + 1) if n < 99 }}{% endmacro %}{{ f(0) }}");
  ExpectBounded("{% for x in [1] recursive %}{{ b }}{{ loop([1]) }}{% endfor %}");
  ExpectBounded(
      "{% macro f(n) %}{{ b }}{% if n < 99 %}{% call f(n + 1) %}{% endcall %}{{ caller }}{% endif "
      "%}"
      "{% endmacro %}{{ f(0) }}");
}

TEST(TemplateMemory, OfConcatenationsIsBounded) {
  ExpectBounded("{{ b" + Repeated(" ~ b", 1000) + " }}");
  ExpectBounded("{{ b" + Repeated(" + b", 190) + " }}");
  ExpectBounded("{{ [b" + Repeated(", b", 1000) + "] | join }}");
  ExpectBounded("{{ ''.join([b" + Repeated(", b", 1000) + "]) }}");
  ExpectBounded(
      "{% set ns = namespace(x=b) %}{% for i in range(99) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}");
  ExpectBounded("{{ [b" + Repeated(", b", 1000) + "] | string }}");
  ExpectBounded("{{ [b" + Repeated(", b", 1000) + "] | tojson }}");
}

TEST(TemplateMemory, OfPartsIsBounded) {
  for (const char* const use :
       {"b.split()", "b.split('a')", "b.rsplit('b')", "b.splitlines()", "b | list",
        "b.replace('a', '\\n').splitlines()", "b | batch(1) | list", "b | map('upper') | list",
        "b.split() | sort"})
    ExpectBounded("{% set l = [" + Repeated(std::string(use) + ", ", 100) + "] %}");
  ExpectBounded("{{ (b * 16).replace('', b) }}");
  ExpectBounded("{{ (b * 16).replace('a', b) }}");
  ExpectBounded("{{ (b * 16) | indent(1000) }}{{ (b * 16) | e }}");
  ExpectBounded("{{ '%s%s' % (b * 16, b * 16) }}");
}

TEST(TemplateMemory, OfManySmallValuesIsBounded) {
  for (const char* const value :
       {"[i]", "(i, i)", "{i: i}", "{'a': 1, 'b': 2}", "i ~ ''", "i.missing", "i | upper",
        "namespace(a=i)", "range(3)", "'a'.upper", "[i] | map('upper')", "missing",
        "[i] | map('nothing')", "'a' * 9", "'a' * 99",
        "d(a=i, b=i, c=i, e=i, f=i, g=i, h=i, j=i, k=i)",
        "namespace(a=i, b=i, c=i, d=i, e=i, f=i, g=i, h=i, j=i)"})
    ExpectBounded(
        "{% set d = dict %}{% set ns = namespace(l=[]) %}{% for i in range(9999) %}"
        "{% set ns.l = ns.l + [" +
        Repeated(std::string(value) + ", ", 100) + "] %}{% endfor %}");
  ExpectBounded("{% for i in range(99999) %}{% set x = namespace(a=i) %}{% endfor %}");
  ExpectBounded("{% for i in range(99999) %}{% macro f(a) %}{% endmacro %}{% endfor %}");
  ExpectBounded(
      "{% for i in range(99999) %}{{ loop.changed(i, i, i, i) }}{% for j in [1] %}"
      "{{ loop.changed(i, i, i, i) }}{% endfor %}{% endfor %}");
}

// What is destroyed is given back: a long conversation of small steps needs little.
TEST(TemplateMemory, IsGivenBack) {
  const auto parsed = Template::Parse(
      "{% set ns = namespace(x='') %}{% for i in range(20000) %}"
      "{% set ns.x = [i, 'a' * 1000, {'k': i}] %}{% set x %}{{ ns.x[1] }}{% endset %}{% endfor %}");
  ASSERT_TRUE(parsed.has_value());
  Budget budget({.memory_bytes = kBound});
  const std::int64_t before = budget.bytes_held();
  EXPECT_TRUE(Works(parsed->Render(budget, {}, {})));
  EXPECT_EQ(budget.bytes_held(), before);
}

TEST(TemplateMemory, OfJsonIsBounded) {
  for (const std::string& json :
       {"[" + Repeated("[],", 400'000) + "0]", "[" + Repeated("{},", 400'000) + "0]",
        "[" + Repeated("{\"a\":0},", 200'000) + "0]", "[" + Repeated("0,", 900'000) + "0]",
        "\"" + std::string(4'000'000, 'a') + "\""}) {
    std::string message;
    const std::int64_t peak = PeakOf([&] {
      Budget budget({.memory_bytes = kBound});
      const auto value = FromJson(budget, json, true);
      if (!value) message = value.error().message;
    });
    EXPECT_NE(message.find("more than 8 MiB of memory"), std::string::npos) << message;
    // The library keeps the text of a string, in a buffer that doubles.
    EXPECT_LE(peak, kMostPeak + 3 * static_cast<std::int64_t>(json.size())) << json.substr(0, 9);
  }
}

TEST(TemplateMemory, OfAConversationIsWhatItMayTake) {
  const auto parsed = ChatTemplate::Parse("{{ messages[0].content | join('-') | list | length }}");
  ASSERT_TRUE(parsed.has_value());
  const std::vector<ChatMessage> messages = {{"user", std::string(100'000, 'a')}};
  for (const std::size_t mib : {1, 2, 4}) {
    const std::int64_t peak = PeakOf([&] {
      const auto written = parsed->Render(messages, {.max_memory_bytes = mib << 20}, "", "");
      ASSERT_FALSE(written.has_value());
      EXPECT_EQ(written.error().code, ErrorCode::kTooLarge);
    });
    EXPECT_LE(peak, static_cast<std::int64_t>(mib << 20) * 5 / 4);
  }
  EXPECT_TRUE(parsed->Render(messages, {}, "", "").has_value());
}

// Parts that alternate between the template's text and the conversation's count, too.
TEST(TemplateMemory, OfTheResultIsBounded) {
  const auto parsed = ChatTemplate::Parse(
      "{% for i in range(3) %}{{ messages[0].content | join('-') }}{% endfor %}");
  ASSERT_TRUE(parsed.has_value());
  const std::vector<ChatMessage> messages = {{"user", std::string(100'000, 'a')}};
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  const std::int64_t peak = PeakOf([&] {
    EXPECT_FALSE(parsed->Render(messages, {.max_memory_bytes = 20 * kMiB}, "", "").has_value());
  });
  EXPECT_LE(peak, static_cast<std::int64_t>(25 * kMiB));
  EXPECT_TRUE(parsed->Render(messages, {.max_memory_bytes = 40 * kMiB}, "", "").has_value());
}

}  // namespace
}  // namespace foretoken::text::jinja
