// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/key_complement.h"

#include <map>
#include <vector>

#include "grammar/pattern/regex.h"

namespace foretoken::grammar {
namespace {

using Part = GbnfWriter::Part;

constexpr std::size_t kPartsPerNode = 4;  // at least
constexpr std::size_t kMaxTrieNodes = GbnfWriter::kMaxParts / kPartsPerNode;

struct TrieNode {
  std::map<char32_t, std::size_t> next;  // nodes
  bool ends = false;                     // a key ends here
};

// The characters of valid UTF-8.
std::vector<char32_t> CharactersOf(std::string_view text) {
  std::vector<char32_t> characters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80)
      characters.back() = characters.back() << 6 | (byte & 0x3Fu);
    else
      characters.push_back(byte < 0x80   ? byte
                           : byte < 0xE0 ? byte & 0x1Fu
                           : byte < 0xF0 ? byte & 0xFu
                                         : byte & 7u);
  }
  return characters;
}

// Incomplete if it has more nodes than a grammar can have parts.
std::vector<TrieNode> TrieOf(std::span<const std::string> keys) {
  std::vector<TrieNode> trie(1);
  for (const std::string& key : keys) {
    if (trie.size() > kMaxTrieNodes) break;
    std::size_t node = 0;
    bool plain = true;  // the writer cannot write another key
    for (const char32_t c : CharactersOf(key)) {
      plain = plain && PlainInStrings().Has(c);
      if (!plain || trie.size() > kMaxTrieNodes) break;
      const auto [at, added] = trie[node].next.try_emplace(c, trie.size());
      node = at->second;
      if (added) trie.emplace_back();
    }
    if (plain) trie[node].ends = true;
  }
  return trie;
}

}  // namespace

Part KeyComplement(std::span<const std::string> keys, const std::function<int()>& new_rule,
                   GbnfWriter& writer) {
  const std::vector<TrieNode> trie = TrieOf(keys);
  const Part quote = writer.Text("\"");
  const Part any = writer.OneOf(PlainInStrings());
  const int rest = new_rule();
  writer.Define(rest, writer.Sequence({writer.Repeat(any, 0, GbnfWriter::kNoEnd), quote}));
  std::vector<int> rules(trie.size());
  for (int& rule : rules) rule = new_rule();
  for (std::size_t n = 0; n < trie.size() && !writer.too_large(); ++n) {
    std::vector<CodePoints> known;
    std::vector<Part> ways;
    if (!trie[n].ends) ways.push_back(quote);
    for (const auto& [c, next] : trie[n].next) {
      known.push_back({c, c});
      ways.push_back(
          writer.Sequence({writer.OneOf(CharacterClass::Of(c)), writer.Call(rules[next])}));
    }
    const CharacterClass other = PlainInStrings().Without(CharacterClass(std::move(known)));
    ways.push_back(writer.Sequence({writer.OneOf(other), writer.Call(rest)}));
    writer.Define(rules[n], writer.AnyOf(ways));
  }
  return writer.Sequence({quote, writer.Call(rules[0])});
}

}  // namespace foretoken::grammar
