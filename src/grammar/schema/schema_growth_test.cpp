// SPDX-License-Identifier: Apache-2.0
// The work for a client's schema, pattern or list of choices grows no faster than its size, and
// constructs that multiply are refused after little work.
#include <fmt/format.h>

#include <algorithm>

#include "base/growth_testing.h"
#include "foretoken/structured_output.h"

namespace foretoken {
namespace {

using TextOf = std::function<std::string(std::size_t)>;

// Characters of three bytes, two apart.
std::string Characters(std::size_t n) {
  std::string bytes;
  for (std::size_t c = 0x800; c < 0x800 + 2 * n; c += 2)
    for (const std::size_t byte : {0xE0 | c >> 12, 0x80 | (c >> 6 & 0x3F), 0x80 | (c & 0x3F)})
      bytes += static_cast<char>(byte);
  return bytes;
}

struct Case {
  const char* name;
  TextOf text_of;
  Sizes sizes = {200, 800};
};

template <typename Convert>
void ExpectLinearSchema(const std::vector<Case>& cases, const Convert& convert) {
  for (const Case& c : cases)
    foretoken::ExpectLinear(c.name, c.sizes, [&](std::size_t n) {
      return [&convert, text = c.text_of(n)] { (void)convert(text); };
    });
}

TEST(RegexGrowth, GrowsWithTheSizeAlone) {
  ExpectLinearSchema(
      {
          {"ranges of a class", [](std::size_t n) { return "[" + Characters(n) + "]"; }},
          {"ranges of a negated class", [](std::size_t n) { return "[^" + Characters(n) + "]"; }},
          {"classes", [](std::size_t n) { return Numbered(n, "[a-z\\d_]"); }},
          {"alternatives", [](std::size_t n) { return Numbered(n, "x@", "|"); }},
          {"groups", [](std::size_t n) { return Numbered(n, "(?:ab*|c)?"); }},
          {"groups without an end", [](std::size_t n) { return std::string(4 * n, '('); }},
          {"characters", [](std::size_t n) { return std::string(8 * n, 'x'); }},
      },
      [](const std::string& text) { return RegexGrammar(text); });
}

TEST(ChoiceGrowth, GrowsWithTheSizeAlone) {
  foretoken::ExpectLinear("choices", {250, 1000}, [](std::size_t n) {
    std::vector<std::string> choices;
    for (std::size_t i = 0; i < n; ++i) choices.push_back(fmt::format("choice {}", i));
    return [choices] { (void)ChoiceGrammar(choices); };
  });
}

// Members with commas between, in brackets: { or [.
std::string Object(std::size_t n, std::string_view member) {
  return "{" + Numbered(n, member, ",") + "}";
}
std::string List(std::size_t n, std::string_view value) {
  return "[" + Numbered(n, value, ",") + "]";
}
std::string Properties(std::size_t n, const std::string& schema, const std::string& more = "") {
  return R"({"type":"object","properties":)" + Object(n, "\"p@\":" + schema) + more + "}";
}

TEST(JsonSchemaGrowth, GrowsWithTheSizeAlone) {
  const std::string text = R"({"type":"string"})", others = ",\"additionalProperties\":true";
  ExpectLinearSchema(
      {
          {"properties", [&](std::size_t n) { return Properties(n, text); }, {1000, 4000}},
          {"required properties",
           [&](std::size_t n) {
             return Properties(n, text, ",\"required\":" + List(n, "\"p@\""));
           }},
          {"properties beside others", [&](std::size_t n) { return Properties(n, text, others); }},
          {"a long name beside others",
           [&](std::size_t n) {
             return "{\"properties\":{\"" + std::string(4 * n, 'x') + "\":{}}" + others + "}";
           }},
          {"values", [](std::size_t n) { return "{\"enum\":" + List(n, "\"v@\"") + "}"; }},
          {"alternatives",
           [](std::size_t n) { return "{\"anyOf\":" + List(n, R"({"const":@})") + "}"; }},
          {"references",
           [](std::size_t n) {
             return R"({"$defs":{"a":{"type":"null"}},"prefixItems":)" +
                    List(n, R"({"$ref":"#/$defs/a"})") + "}";
           }},
          {"references to references",
           [](std::size_t n) {
             return "{\"$defs\":{" + Numbered(n, R"("d@":{"items":{"$ref":"#/$defs/d@+"}},)") +
                    fmt::format(R"("d{}":{{"type":"null"}}}},"$ref":"#/$defs/d0"}})", n);
           }},
          {"bounds of numbers",
           [](std::size_t n) {
             return Properties(n, R"({"type":"integer","minimum":@,"maximum":7@})");
           },
           {60, 240}},
          {"patterns", [](std::size_t n) { return Properties(n, R"({"pattern":"^a@[b-z]+$"})"); }},
          {"ranges of a class in a pattern",
           [](std::size_t n) { return "{\"pattern\":\"^[" + Characters(n) + "]$\"}"; }},
          {"arrays of the whole schema",
           [&](std::size_t n) {
             return Properties(n, R"({"type":"array","items":{"$ref":"#"}})", others);
           }},
          {"values and alternatives",
           [](std::size_t n) {
             return "{\"enum\":" + List(n, "@") + ",\"anyOf\":" + List(n, R"({"const":@})") + "}";
           }},
          {"one large value",
           [](std::size_t n) { return "{\"const\":" + List(n, R"({"k":@})") + "}"; }},
          {"what is no JSON",
           [](std::size_t n) { return "{\"enum\":[" + std::string(20 * n, '1'); }},
      },
      [](const std::string& schema) { return JsonSchemaGrammar(schema); });
}

// Alternatives of several parts multiply: the result is refused after bounded work. The limits, in
// millions of instructions, are about three times what was measured.
TEST(JsonSchemaGrowth, ProductsAreRefusedSoon) {
  const auto values = [](std::size_t first) {
    std::string all = std::to_string(first);
    for (std::size_t i = 1; i < 4000; ++i) all += "," + std::to_string(first + i);
    return "{\"enum\":[" + all + "]}";
  };
  const std::string chain = "\"$defs\":{" + Numbered(190, R"("d@":{"$ref":"#/$defs/d@+"},)") +
                            R"("d190":{"type":"null"}})";
  const auto all_of = [](const std::string& first, const std::string& alternatives,
                         const std::string& last = "") {
    return "{\"allOf\":[" + first + "," + Numbered(13, "{\"anyOf\":" + alternatives + "}", ",") +
           last + "]}";
  };
  struct Product {
    const char* name;
    std::uint64_t most_millions;
    std::string schema;
  };
  const Product cases[] = {
      {"contradictory values", 70,
       all_of(values(0), R"([{"type":"integer"},{"type":"number"}])", "," + values(3999))},
      {"values that never meet", 70,
       all_of(values(0) + "," + values(5000),
              R"([{"title":"t","type":["integer","null"]},)"
              R"({"description":"@","type":["integer","string"]}])")},
      {"objects", 50,
       all_of(Properties(4000, "{}"), R"([{"required":["p@"]},{"required":["q@"]}])")},
      {"long chains of references", 375,
       "{" + chain + ",\"prefixItems\":" + List(1000, R"({"$ref":"#/$defs/d0"})") + "}"},
      {"long names", 3'000,
       "{\"properties\":{\"" + std::string(900'000, 'x') + "\":{}},\"additionalProperties\":true}"},
  };
  for (const auto& [name, most_millions, schema] : cases)
    EXPECT_LT(Instructions([&] { (void)JsonSchemaGrammar(schema); }),
              kBuildFactor * most_millions * 1'000'000)
        << name;
}

// A converter that compares each value with all before it, which must be detected.
TEST(JsonSchemaGrowth, TheMeterFindsQuadraticWork) {
  const double exponent = InstructionExponent({250, 1000}, [](std::size_t n) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(fmt::format("value {}", i));
    return [values] {
      std::vector<std::string> kept;
      for (const std::string& value : values)
        if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
    };
  });
  EXPECT_GT(exponent, 1.5);
}

}  // namespace
}  // namespace foretoken
