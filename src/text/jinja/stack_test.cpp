// SPDX-License-Identifier: Apache-2.0
// Threads of library users have stacks of any size. A template that is deep ends with an error
// where the stack does, and never with the process.
#include <gtest/gtest.h>
#include <pthread.h>

#include <functional>

#include "base/machine/stack.h"
#include "text/jinja/template.h"

namespace foretoken::text::jinja {
namespace {

constexpr std::size_t kKiB = 1024;
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
constexpr std::size_t kFrames = 8;  // each function takes as many times as much of the stack
#else
constexpr std::size_t kFrames = 1;
#endif

// Runs the function in a thread with such a stack.
void InThread(std::size_t stack_bytes, std::function<void()> run) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
  pthread_t thread;
  const auto call = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, call, &run), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

std::string Again(std::string_view part, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += part;
  return all;
}

// The error of a template that is read and rendered with such a stack; "" if there is none.
std::string ErrorOf(const std::string& source, std::size_t stack_bytes) {
  std::string message;
  InThread(stack_bytes, [&] {
    const auto parsed = Template::Parse(source);
    if (!parsed) {
      message = parsed.error().message;
      return;
    }
    Budget budget({});
    const auto text = parsed->Render(budget, {}, {});
    if (!text) message = text.error().message;
  });
  return message;
}

// What is left below so many functions that keep 4 KiB each.
[[gnu::noinline]] std::size_t LeftBelow(int n) {
  [[maybe_unused]] volatile char room[4 * kKiB];
  room[0] = 0;
  const std::size_t left = n == 0 ? StackLeft() : LeftBelow(n - 1);
  room[1] = 0;
  return left;
}

TEST(StackLeft, ShrinksAsFunctionsGoDeeper) {
  for (const std::size_t bytes : {256 * kKiB, 2048 * kKiB})
    InThread(bytes, [bytes] {
      EXPECT_LE(StackLeft(), bytes);
      EXPECT_GT(StackLeft(), bytes - 64 * kKiB);
      EXPECT_LE(LeftBelow(10) + 40 * kKiB, StackLeft());
      EXPECT_GT(LeftBelow(10) + (40 + 40 * kFrames) * kKiB, StackLeft());
    });
  EXPECT_GT(StackLeft(), 64 * kKiB);  // of the main thread
}

// 800 levels of the deepest kinds.
const std::string kDeep[] = {
    "{% macro f(n) %}{{ f(n + 1) if n < 795 / 3 else 'end' }}{% endmacro %}{{ f(0) }}",
    "{% macro f(n) %}{% for i in [1] %}{% if n < 150 %}{{ [[f(n + 1) | upper] | first] | join }}"
    "{% endif %}{% endfor %}{% endmacro %}{{ f(0) }}",
    "{% macro f(n) %}{% if n < 190 %}{% call f(n + 1) %}{{ caller }}{% endcall %}{% endif %}"
    "{% endmacro %}{{ f(0) }}",
    "{% macro f(n) %}{% if n < 190 %}{% filter upper %}{{ f(n + 1) }}{% endfilter %}{% endif %}"
    "{% endmacro %}{{ f(0) }}",
    "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% macro f() %}{{ {'a': [{'b': (f() ~ '',)}]}['a'][0].b[0] | upper }}{% endmacro %}{{ f() }}",
    "{{ " + Again("(", 190) + "1" + Again(")", 190) + " }}",
    "{{ " + Again("[", 190) + "1" + Again("]", 190) + " | length }}",
    "{{ " + Again("f(x=", 190) + "1" + Again(")", 190) + " }}",
    "{{ " + Again("'a' if a else ", 190) + "1 }}",
    Again("{% if true %}", 190) + "{{ " + Again("(1 + ", 190) + "1" + Again(")", 190) + " }}" +
        Again("{% endif %}", 190),
    Again("{% for x in [1] %}", 190) + Again("{% endfor %}", 190),
    Again("{% set x %}", 190) + Again("{% endset %}", 190)};

TEST(TemplateStack, OfSmallThreadsIsNeverLeft) {
  for (const std::string& source : kDeep)
    for (const std::size_t kib : {160, 256, 512, 1024, 2048}) {
      const std::string error = ErrorOf(source, kib * kKiB);
      if (error.empty()) continue;
      EXPECT_TRUE(error.find("inside each other") != std::string::npos ||
                  error.find("is undefined") != std::string::npos)
          << kib << ": " << source.substr(0, 80) << error;
    }
}

// What ordinary templates have (a few macros, 20 levels) fits a small thread.
TEST(TemplateStack, OfASmallThreadIsEnoughForOrdinaryTemplates) {
  for (const std::string& source :
       {std::string(
            "{% macro f(n) %}{% for i in [1] %}{% if n < 4 %}{{ f(n + 1) | upper }}{% endif %}"
            "{% endfor %}{% endmacro %}{{ f(0) }}"),
        "{{ " + Again("(", 12) + "1" + Again(")", 12) + " }}",
        Again("{% if true %}", 12) + "a" + Again("{% endif %}", 12)})
    EXPECT_EQ(ErrorOf(source, kFrames * 256 * kKiB), "") << source;
}

TEST(TemplateStack, OfALargeThreadIsEnoughForTheBoundOfDepth) {
  const std::string endless = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
  EXPECT_NE(ErrorOf(endless, kFrames * 16384 * kKiB).find("more than 800 inside each other"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken::text::jinja
