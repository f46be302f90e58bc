// SPDX-License-Identifier: Apache-2.0
#include "text/token_map.h"

#include <string>
#include <unordered_map>

#include "base/seeded_hash.h"

namespace foretoken::text {
namespace {

// What a token stands for: bytes of text, or the spelling of a control token. Empty: nothing.
std::string MeaningOf(const Tokenizer& tokenizer, Token token) {
  if (!tokenizer.IsControl(token)) {
    const std::string piece = tokenizer.Piece(token);
    return piece.empty() ? "" : "t" + piece;
  }
  const std::string& spelling = tokenizer.TokenText(token);
  return spelling.empty() ? "" : "c" + spelling;
}

// "<0x41>", which a text has only where no other token fits.
bool IsByteToken(const Tokenizer& tokenizer, Token token, const std::string& meaning) {
  return meaning.size() == 2 && tokenizer.TokenText(token).size() > 1 &&
         tokenizer.TokenText(token).starts_with("<0x");
}

// The token that texts have for each meaning: the first one that is no byte token, else the first.
class Meanings {
 public:
  explicit Meanings(const Tokenizer& tokenizer) {
    const int n = tokenizer.vocabulary_size();
    tokens_.reserve(static_cast<std::size_t>(n));
    std::vector<Token> bytes;
    for (Token token = 0; token < n; ++token) {
      const std::string meaning = MeaningOf(tokenizer, token);
      if (meaning.empty()) continue;
      if (IsByteToken(tokenizer, token, meaning))
        bytes.push_back(token);
      else
        tokens_.try_emplace(meaning, token);
    }
    for (const Token token : bytes) tokens_.try_emplace(MeaningOf(tokenizer, token), token);
  }

  Token Of(const std::string& meaning) const {
    const auto found = tokens_.find(meaning);
    return found == tokens_.end() ? kNoToken : found->second;
  }

 private:
  std::unordered_map<std::string, Token, SeededHasher> tokens_;
};

// The tokens that begin texts, and those that end them, are counterparts whatever their spelling, if
// neither has another.
void PairEnds(std::optional<Token> target, std::optional<Token> draft,
              std::vector<Token>& of_target, std::vector<char>& taken) {
  if (!target || !draft) return;
  const auto t = static_cast<std::size_t>(*target), d = static_cast<std::size_t>(*draft);
  if (t >= of_target.size() || d >= taken.size() || of_target[t] != kNoToken || taken[d] != 0)
    return;
  of_target[t] = *draft;
  taken[d] = 1;
}

// The draft's token of each pair, by the target's token; kNoToken: there is none.
std::vector<Token> Counterparts(const Tokenizer& target, const Tokenizer& draft,
                                const Meanings& of_draft) {
  const Meanings of_target(target);
  std::vector<Token> counterparts(static_cast<std::size_t>(target.vocabulary_size()), kNoToken);
  std::vector<char> taken(static_cast<std::size_t>(draft.vocabulary_size()), 0);
  for (Token token = 0; token < target.vocabulary_size(); ++token) {
    const std::string meaning = MeaningOf(target, token);
    if (meaning.empty() || of_target.Of(meaning) != token) continue;
    const Token other = of_draft.Of(meaning);
    if (other == kNoToken) continue;
    counterparts[static_cast<std::size_t>(token)] = other;
    taken[static_cast<std::size_t>(other)] = 1;
  }
  PairEnds(target.bos(), draft.bos(), counterparts, taken);
  PairEnds(target.eos(), draft.eos(), counterparts, taken);
  return counterparts;
}

}  // namespace

TokenMap MapTokens(const Tokenizer& target, const Tokenizer& draft) {
  TokenMap map{.target = target.vocabulary_size(),
               .draft = draft.vocabulary_size(),
               .pairs = {},
               .tokens = {},
               .begins = {0}};
  const Meanings of_draft(draft);
  const std::vector<Token> counterparts = Counterparts(target, draft, of_draft);
  map.begins.reserve(counterparts.size() + 1);
  for (Token token = 0; token < map.target; ++token) {
    const Token other = counterparts[static_cast<std::size_t>(token)];
    if (other != kNoToken) {
      map.pairs.push_back({token, other});
      map.tokens.push_back(other);
    } else if (const std::string piece = target.Piece(token); !piece.empty()) {
      const std::vector<Token> reading =
          draft.Encode(piece, {.add_special = false, .parse_special = false, .continues = true});
      map.tokens.insert(map.tokens.end(), reading.begin(), reading.end());
    }
    map.begins.push_back(map.tokens.size());
  }
  return map;
}

}  // namespace foretoken::text
