// SPDX-License-Identifier: Apache-2.0
// The work for a client's schema, pattern or list of choices grows no faster than its size, and
// constructs that multiply are refused after little work.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "base/growth_testing.h"
#include "foretoken/structured_output.h"

namespace foretoken {
namespace {

using TextOf = std::function<std::string(std::size_t)>;

std::string PartTimes(std::size_t n, const TextOf& part, std::string_view between = "") {
  std::string all;
  for (std::size_t i = 0; i < n; ++i) (all += i > 0 ? between : "") += part(i);
  return all;
}

// Characters of three bytes, two apart.
std::string Character(std::size_t i) {
  const std::size_t c = 0x800 + 2 * i;
  std::string bytes(3, '\0');
  bytes[0] = static_cast<char>(0xE0 | c >> 12);
  bytes[1] = static_cast<char>(0x80 | (c >> 6 & 0x3F));
  bytes[2] = static_cast<char>(0x80 | (c & 0x3F));
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
          {"ranges of a class", [](std::size_t n) { return "[" + PartTimes(n, Character) + "]"; }},
          {"ranges of a negated class",
           [](std::size_t n) { return "[^" + PartTimes(n, Character) + "]"; }},
          {"classes",
           [](std::size_t n) { return PartTimes(n, [](std::size_t) { return "[a-z\\d_]"; }); }},
          {"alternatives",
           [](std::size_t n) {
             return PartTimes(
                 n, [](std::size_t i) { return fmt::format("x{}", i); }, "|");
           }},
          {"groups",
           [](std::size_t n) { return PartTimes(n, [](std::size_t) { return "(?:ab*|c)?"; }); }},
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

std::string Properties(std::size_t n, const TextOf& schema, std::string_view more = "") {
  return R"({"type":"object","properties":{)" +
         PartTimes(
             n, [&](std::size_t i) { return fmt::format("\"p{}\":{}", i, schema(i)); }, ",") +
         "}" + std::string(more) + "}";
}

TEST(JsonSchemaGrowth, GrowsWithTheSizeAlone) {
  const TextOf string = [](std::size_t) { return R"({"type":"string"})"; };
  ExpectLinearSchema(
      {
          {"properties", [&](std::size_t n) { return Properties(n, string); }, {1000, 4000}},
          {"required properties",
           [&](std::size_t n) {
             return Properties(
                 n, string,
                 ",\"required\":[" +
                     PartTimes(
                         n, [](std::size_t i) { return fmt::format("\"p{}\"", i); }, ",") +
                     "]");
           }},
          {"properties beside others",
           [&](std::size_t n) { return Properties(n, string, ",\"additionalProperties\":true"); }},
          {"a long name beside others",
           [&](std::size_t n) {
             return "{\"properties\":{\"" + std::string(4 * n, 'x') +
                    "\":{}},\"additionalProperties\":true}";
           }},
          {"values",
           [](std::size_t n) {
             return "{\"enum\":[" +
                    PartTimes(
                        n, [](std::size_t i) { return fmt::format("\"v{}\"", i); }, ",") +
                    "]}";
           }},
          {"alternatives",
           [](std::size_t n) {
             return "{\"anyOf\":[" +
                    PartTimes(
                        n, [](std::size_t i) { return fmt::format(R"({{"const":{}}})", i); }, ",") +
                    "]}";
           }},
          {"references",
           [](std::size_t n) {
             return R"({"$defs":{"a":{"type":"null"}},"prefixItems":[)" +
                    PartTimes(
                        n, [](std::size_t) { return R"({"$ref":"#/$defs/a"})"; }, ",") +
                    "]}";
           }},
          {"references to references",
           [](std::size_t n) {
             return "{\"$defs\":{" +
                    PartTimes(
                        n,
                        [](std::size_t i) {
                          return fmt::format(R"("d{}":{{"items":{{"$ref":"#/$defs/d{}"}}}})", i,
                                             i + 1);
                        },
                        ",") +
                    fmt::format(R"(,"d{}":{{"type":"null"}}}},"$ref":"#/$defs/d0"}})", n);
           }},
          {"bounds of numbers",
           [](std::size_t n) {
             return Properties(n, [](std::size_t i) {
               return fmt::format(R"({{"type":"integer","minimum":{},"maximum":{}}})", i,
                                  7 * i + 3);
             });
           },
           {60, 240}},
          {"patterns",
           [](std::size_t n) {
             return Properties(
                 n, [](std::size_t i) { return fmt::format(R"({{"pattern":"^a{}[b-z]+$"}})", i); });
           }},
          {"ranges of a class in a pattern",
           [](std::size_t n) { return "{\"pattern\":\"^[" + PartTimes(n, Character) + "]$\"}"; }},
          {"arrays of the whole schema",
           [](std::size_t n) {
             return Properties(
                 n, [](std::size_t) { return R"({"type":"array","items":{"$ref":"#"}})"; },
                 ",\"additionalProperties\":true");
           }},
          {"values and alternatives",
           [](std::size_t n) {
             return "{\"enum\":[" +
                    PartTimes(
                        n, [](std::size_t i) { return fmt::format("{}", i); }, ",") +
                    "],\"anyOf\":[" +
                    PartTimes(
                        n, [](std::size_t i) { return fmt::format(R"({{"const":{}}})", i); }, ",") +
                    "]}";
           }},
          {"one large value",
           [](std::size_t n) {
             return "{\"const\":[" +
                    PartTimes(
                        n, [](std::size_t i) { return fmt::format("{{\"k\":{}}}", i); }, ",") +
                    "]}";
           }},
          {"what is no JSON",
           [](std::size_t n) { return "{\"enum\":[" + std::string(20 * n, '1'); }},
      },
      [](const std::string& text) { return JsonSchemaGrammar(text); });
}

// Alternatives of several parts multiply: the result is refused after bounded work. The limits, in
// millions of instructions, are about three times what was measured.
TEST(JsonSchemaGrowth, ProductsAreRefusedSoon) {
  const auto values = [](std::size_t first) {
    return "{\"enum\":[" +
           PartTimes(
               4000, [&](std::size_t i) { return fmt::format("{}", first + i); }, ",") +
           "]}";
  };
  const std::string chain =
      "\"$defs\":{" +
      PartTimes(190,
                [](std::size_t i) {
                  return fmt::format(R"("d{}":{{"$ref":"#/$defs/d{}"}},)", i, i + 1);
                }) +
      R"("d190":{"type":"null"}})";
  struct Product {
    const char* name;
    std::uint64_t most_millions;
    std::string schema;
  };
  const Product cases[] = {
      {"contradictory values", 70,
       "{\"allOf\":[" + values(0) + "," +
           PartTimes(
               13,
               [&](std::size_t) {
                 return "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}";
               },
               ",") +
           "," + values(3999) + "]}"},
      {"values that never meet", 70,
       "{\"allOf\":[" + values(0) + "," + values(5000) + "," +
           PartTimes(
               13,
               [&](std::size_t i) {
                 return fmt::format(
                     R"({{"anyOf":[{{"title":"t","type":["integer","null"]}},{{"description":"{}","type":["integer","string"]}}]}})",
                     i);
               },
               ",") +
           "]}"},
      {"objects", 50,
       "{\"allOf\":[" + Properties(4000, [](std::size_t) { return "{}"; }) + "," +
           PartTimes(
               13,
               [](std::size_t i) {
                 return fmt::format(
                     R"({{"anyOf":[{{"required":["p{}"]}},{{"required":["q{}"]}}]}})", i, i);
               },
               ",") +
           "]}"},
      {"long chains of references", 375,
       "{" + chain + ",\"prefixItems\":[" +
           PartTimes(
               1000, [](std::size_t) { return R"({"$ref":"#/$defs/d0"})"; }, ",") +
           "]}"},
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
