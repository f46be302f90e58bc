// SPDX-License-Identifier: Apache-2.0
#include "grammar/gbnf.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/seeded_hash.h"
#include "base/utf8.h"
#include "base/work_count.h"

namespace foretoken::grammar {
namespace {

constexpr std::size_t kMaxGbnfBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxGbnfNodes = std::size_t{1} << 19;  // characters, calls, sequences, ...
constexpr int kMaxDepth = 200;                               // of groups
constexpr int kMaxStacked = 8;        // of * + ? {} directly behind each other
constexpr int kMaxRepeats = 1 << 16;  // a number in {n,m}
constexpr char32_t kBeforeSurrogates = 0xD7FF, kAfterSurrogates = 0xE000;

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsScalar(char32_t c) {
  return c <= kLastCodePoint && (c < kSurrogates.first || c > kSurrogates.last);
}

// Sorted ranges without overlaps and surrogates.
std::vector<CodePoints> Normalised(std::vector<CodePoints> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](CodePoints a, CodePoints b) { return a.first < b.first; });
  std::vector<CodePoints> merged;
  for (const CodePoints& r : ranges) {
    if (!merged.empty() && r.first <= merged.back().last + 1)
      merged.back().last = std::max(merged.back().last, r.last);
    else
      merged.push_back(r);
  }
  std::vector<CodePoints> scalars;
  for (const CodePoints& r : merged) {
    if (r.first < kSurrogates.first)
      scalars.push_back({r.first, std::min(r.last, kBeforeSurrogates)});
    if (r.last > kSurrogates.last) scalars.push_back({std::max(r.first, kAfterSurrogates), r.last});
  }
  return scalars;
}

std::vector<CodePoints> Complement(const std::vector<CodePoints>& ranges) {
  std::vector<CodePoints> rest;
  char32_t next = 0;
  for (const CodePoints& r : ranges) {
    if (r.first > next) rest.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return Normalised(std::move(rest));
}

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {}

  [[nodiscard]] Result<Gbnf> Parse() {
    if (text_.size() > kMaxGbnfBytes)
      return FailField(ErrorCode::kTooLarge, "grammar",
                       fmt::format("{} bytes are more than {}; give a shorter one", text_.size(),
                                   kMaxGbnfBytes));
    SkipSpace(true);
    while (!AtEnd()) FORETOKEN_CHECK_OK(ParseRule());
    for (std::size_t r = 0; r < gbnf_.rules.size(); ++r)
      if (gbnf_.rules[r].body < 0)
        return FailAt(mentioned_at_[r],
                      fmt::format("rule '{}' is not defined; define it or correct its name",
                                  gbnf_.rules[r].name));
    const auto root = rule_of_.find("root");
    if (root == rule_of_.end())
      return InvalidField("grammar", "there is no rule 'root'; begin with root ::= ...");
    gbnf_.root = root->second;
    return std::move(gbnf_);
  }

 private:
  bool AtEnd() const { return at_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }
  bool Accept(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  tl::unexpected<Error> FailAt(std::size_t at, std::string_view what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    return InvalidField("grammar", fmt::format("line {}: {}", line, what));
  }
  tl::unexpected<Error> FailHere(std::string_view what) const {
    return FailAt(std::min(at_, text_.size()), what);
  }
  // The text at this place, for a message.
  std::string Here() const {
    if (AtEnd()) return "the end";
    const auto c = static_cast<unsigned char>(Peek());
    if (c == '\n') return "the end of the line";
    return c > ' ' && c < 0x7F ? fmt::format("'{}'", Peek()) : fmt::format("byte 0x{:02x}", c);
  }

  void SkipSpace(bool newlines) {
    for (; !AtEnd(); ++at_) {
      const char c = Peek();
      if (c == '#') {
        at_ = std::min(text_.find_first_of("\r\n", at_), text_.size());
        if (AtEnd()) return;
        if (!newlines) return;
      } else if (!(c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r')))) {
        return;
      }
    }
  }

  int Add(GbnfNode node) {
    CountWork();
    gbnf_.nodes.push_back(std::move(node));
    return static_cast<int>(gbnf_.nodes.size()) - 1;
  }

  int RuleNamed(std::string_view name) {
    const auto [it, added] =
        rule_of_.try_emplace(std::string(name), static_cast<int>(gbnf_.rules.size()));
    if (added) {
      gbnf_.rules.push_back({.name = std::string(name)});
      mentioned_at_.push_back(at_);
    }
    return it->second;
  }

  std::string_view TakeWord() {
    const std::size_t begin = at_;
    while (!AtEnd() && IsWord(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  Status ParseRule() {
    const std::string_view name = TakeWord();
    if (name.empty())
      return FailHere(fmt::format("{} where a rule should begin; write name ::= ...", Here()));
    const int rule = RuleNamed(name);
    SkipSpace(false);
    if (!Accept("::="))
      return FailHere(fmt::format("{} after '{}'; write {} ::= ...", Here(), name, name));
    if (gbnf_.rules[static_cast<std::size_t>(rule)].body >= 0)
      return FailHere(fmt::format("rule '{}' is defined twice; keep one", name));
    SkipSpace(true);
    FORETOKEN_TRY(const int body, ParseAlternatives(0));
    gbnf_.rules[static_cast<std::size_t>(rule)].body = body;
    if (!AtEnd() && Peek() != '\n' && Peek() != '\r')
      return FailHere(
          fmt::format("{} in rule '{}'; end the rule or put text in quotes", Here(), name));
    SkipSpace(true);
    return {};
  }

  // Moves to a `|` on one of the next lines, if there is one.
  void SkipToBar() {
    const std::size_t before = at_;
    SkipSpace(true);
    if (Peek() != '|') at_ = before;
  }

  Result<int> ParseAlternatives(int depth) {
    if (depth > kMaxDepth)
      return FailHere(fmt::format("groups nest deeper than {}; use rules of their own", kMaxDepth));
    GbnfNode alternatives{.kind = GbnfNode::Kind::kAlternatives};
    for (;;) {
      FORETOKEN_TRY(const int sequence, ParseSequence(depth));
      alternatives.children.push_back(sequence);
      if (depth == 0) SkipToBar();
      if (!Accept("|")) break;
      SkipSpace(true);
    }
    if (alternatives.children.size() == 1) return alternatives.children.front();
    return Add(std::move(alternatives));
  }

  // Memory is bounded while the text is read, not only afterwards.
  Status CheckSize() const {
    if (gbnf_.nodes.size() <= kMaxGbnfNodes) return {};
    return FailField(ErrorCode::kTooLarge, "grammar",
                     fmt::format("it has more than {} parts; make it smaller", kMaxGbnfNodes));
  }

  Result<int> ParseSequence(int depth) {
    GbnfNode sequence;
    for (int n_stacked = 0;;) {
      FORETOKEN_CHECK_OK(CheckSize());
      const char c = Peek();
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        if (sequence.children.empty())
          return FailHere(fmt::format("'{}' has nothing before it to repeat; drop it", c));
        if (++n_stacked > kMaxStacked)
          return FailHere("repetitions of repetitions of repetitions; write one of them");
        FORETOKEN_TRY(GbnfNode repeat, ParseRepeat());
        repeat.children = {sequence.children.back()};
        sequence.children.back() = Add(std::move(repeat));
      } else if (c != '\0' &&
                 (c == '"' || c == '[' || c == '(' || c == '.' || c == '<' || IsWord(c))) {
        FORETOKEN_TRY(const int item, ParseItem(depth));
        sequence.children.push_back(item);
        n_stacked = 0;
      } else {
        return Add(std::move(sequence));
      }
      SkipSpace(depth > 0);
    }
  }

  Result<int> ParseItem(int depth) {
    if (Accept("\"")) return ParseLiteral();
    if (Accept("[")) return ParseClass();
    if (Accept("."))
      return Add({.kind = GbnfNode::Kind::kCharacter, .ranges = Normalised({{0, kLastCodePoint}})});
    if (Accept("<")) return ParseControl();
    if (Accept("(")) {
      SkipSpace(true);
      FORETOKEN_TRY(const int group, ParseAlternatives(depth + 1));
      if (!Accept(")")) return FailHere(fmt::format("{} in a group; close it with )", Here()));
      return group;
    }
    return Add({.kind = GbnfNode::Kind::kRule, .rule = RuleNamed(TakeWord())});
  }

  Result<int> ParseControl() {
    constexpr Token kMost = 1 << 24;  // tokens of a vocabulary
    if (!Accept("[") || !IsDigit(Peek()))
      return FailHere(
          fmt::format("{} after <; name a control token by its number, as in <[7]>", Here()));
    Token token = 0;
    for (; IsDigit(Peek()); ++at_) {
      token = token * 10 + (Peek() - '0');
      if (token > kMost) return FailHere("there is no control token of this number; correct it");
    }
    if (!Accept("]>"))
      return FailHere(fmt::format("{} in the number of a control token; close it with ]>", Here()));
    return Add({.kind = GbnfNode::Kind::kControl, .token = token});
  }

  Result<int> ParseLiteral() {
    GbnfNode literal;
    while (!Accept("\"")) {
      if (AtEnd()) return FailHere("a literal has no end; close it with \"");
      FORETOKEN_CHECK_OK(CheckSize());
      FORETOKEN_TRY(const char32_t c, ParseCharacter());
      literal.children.push_back(Add({.kind = GbnfNode::Kind::kCharacter, .ranges = {{c, c}}}));
    }
    return Add(std::move(literal));
  }

  Result<int> ParseClass() {
    const bool negated = Accept("^");
    std::vector<CodePoints> ranges;
    while (!Accept("]")) {
      if (AtEnd()) return FailHere("a class has no end; close it with ]");
      FORETOKEN_TRY(const char32_t first, ParseCharacter());
      char32_t last = first;
      if (Peek() == '-' && text_.substr(at_, 2) != "-]") {
        ++at_;
        FORETOKEN_TRY(last, ParseCharacter());
      }
      if (last < first) return FailHere("a range ends before it begins; turn it around");
      ranges.push_back({first, last});
    }
    ranges = Normalised(std::move(ranges));
    if (negated) ranges = Complement(ranges);
    if (ranges.empty()) return FailHere("a class has no characters; name some");
    return Add({.kind = GbnfNode::Kind::kCharacter, .ranges = std::move(ranges)});
  }

  Result<char32_t> ParseCharacter() {
    CountWork();
    if (Accept("\\")) return ParseEscape();
    return ParseUtf8();
  }

  Result<char32_t> ParseEscape() {
    constexpr std::pair<char, char32_t> kEscapes[] = {{'n', '\n'},  {'r', '\r'}, {'t', '\t'},
                                                      {'\\', '\\'}, {'"', '"'},  {'[', '['},
                                                      {']', ']'},   {'-', '-'},  {'^', '^'}};
    for (const auto& [name, value] : kEscapes)
      if (!AtEnd() && Peek() == name) return ++at_, value;
    const int n_digits = Accept("x") ? 2 : Accept("u") ? 4 : Accept("U") ? 8 : 0;
    if (n_digits == 0)
      return FailHere(fmt::format("{} after \\; write \\\\ for a backslash", Here()));
    char32_t value = 0;
    for (int i = 0; i < n_digits; ++i, ++at_) {
      const int digit = HexValue(Peek());
      if (digit < 0)
        return FailHere(
            fmt::format("{} in an escape of {} hex digits; complete it", Here(), n_digits));
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (!IsScalar(value))
      return FailHere(fmt::format("U+{:04X} is not a character; give one of Unicode",
                                  static_cast<std::uint32_t>(value)));
    return value;
  }

  Result<char32_t> ParseUtf8() {
    const Utf8Character c = ReadUtf8(text_.substr(at_));
    if (!c.valid())
      return FailHere(fmt::format("byte 0x{:02x} is not UTF-8; write the grammar in UTF-8",
                                  static_cast<unsigned char>(Peek())));
    at_ += c.size;
    return c.code;
  }

  Result<int> ParseCount() {
    if (!IsDigit(Peek())) return FailHere(fmt::format("{} in a repetition; write {{n,m}}", Here()));
    int n = 0;
    for (; IsDigit(Peek()); ++at_) {
      n = n * 10 + (Peek() - '0');
      if (n > kMaxRepeats)
        return FailHere(fmt::format("a repetition of more than {}; lower it", kMaxRepeats));
    }
    SkipSpace(false);
    return n;
  }

  Result<GbnfNode> ParseRepeat() {
    GbnfNode repeat{.kind = GbnfNode::Kind::kRepeat};
    if (Accept("*")) return repeat;
    if (Accept("+")) return repeat.least = 1, repeat;
    if (Accept("?")) return repeat.most = 1, repeat;
    ++at_;
    SkipSpace(false);
    FORETOKEN_TRY(repeat.least, ParseCount());
    repeat.most = repeat.least;
    if (Accept(",")) {
      SkipSpace(false);
      repeat.most = -1;
      if (Peek() != '}') {
        FORETOKEN_TRY(repeat.most, ParseCount());
        if (repeat.most < repeat.least)
          return FailHere(
              fmt::format("a repetition of {} to {}; turn it around", repeat.least, repeat.most));
      }
    }
    if (!Accept("}")) return FailHere(fmt::format("{} in a repetition; close it with }}", Here()));
    return repeat;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Gbnf gbnf_;
  std::vector<std::size_t> mentioned_at_;  // [rules]: the place of the first mention
  std::unordered_map<std::string, int, SeededHasher> rule_of_;
};

// Computes "can be empty" or, with characters = true, "can end", for all nodes. It is true for a
// sequence if it is true for all parts, and for alternatives if it is true for one. Linear in the
// grammar's size.
std::vector<bool> Holds(const Gbnf& gbnf, bool characters) {
  const std::size_t n = gbnf.nodes.size();
  std::vector<bool> holds(n);
  std::vector<int> missing(n, 1), parent(n, -1), work;
  std::vector<std::vector<int>> references(gbnf.rules.size());
  std::vector<int> rule_of_body(n, -1);
  for (std::size_t r = 0; r < gbnf.rules.size(); ++r)
    rule_of_body[static_cast<std::size_t>(gbnf.rules[r].body)] = static_cast<int>(r);
  const auto settle = [&](int node) {
    if (holds[static_cast<std::size_t>(node)]) return;
    holds[static_cast<std::size_t>(node)] = true;
    work.push_back(node);
  };
  for (std::size_t i = 0; i < n; ++i) {
    CountWork();
    const GbnfNode& node = gbnf.nodes[i];
    for (const int child : node.children)
      parent[static_cast<std::size_t>(child)] = static_cast<int>(i);
    if (node.kind == GbnfNode::Kind::kRule)
      references[static_cast<std::size_t>(node.rule)].push_back(static_cast<int>(i));
    if (node.kind == GbnfNode::Kind::kSequence) missing[i] = static_cast<int>(node.children.size());
    const bool at_once =
        missing[i] == 0 || (node.kind == GbnfNode::Kind::kRepeat && node.least == 0) ||
        ((node.kind == GbnfNode::Kind::kCharacter || node.kind == GbnfNode::Kind::kControl) &&
         characters);
    if (at_once) settle(static_cast<int>(i));
  }
  while (!work.empty()) {
    const auto node = static_cast<std::size_t>(work.back());
    work.pop_back();
    if (parent[node] >= 0 && --missing[static_cast<std::size_t>(parent[node])] <= 0)
      settle(parent[node]);
    if (rule_of_body[node] >= 0)
      for (const int reference : references[static_cast<std::size_t>(rule_of_body[node])])
        settle(reference);
  }
  return holds;
}

// The rules that may begin where the node begins.
void FindLeftmost(const Gbnf& gbnf, int index, std::vector<int>& rules) {
  CountWork();
  const GbnfNode& node = gbnf.nodes[static_cast<std::size_t>(index)];
  if (node.kind == GbnfNode::Kind::kRule) rules.push_back(node.rule);
  for (const int child : node.children) {
    FindLeftmost(gbnf, child, rules);
    if (node.kind == GbnfNode::Kind::kSequence && !gbnf.nullable[static_cast<std::size_t>(child)])
      return;
  }
}

// A rule that leads to itself before any character, or -1. Removes rules without such calls one by
// one; what is left is recursive.
int FindLeftRecursion(const Gbnf& gbnf) {
  const std::size_t n = gbnf.rules.size();
  std::vector<std::vector<int>> callers(n);
  std::vector<std::size_t> n_calls(n);
  std::vector<int> calls, work;
  for (std::size_t r = 0; r < n; ++r) {
    calls.clear();
    FindLeftmost(gbnf, gbnf.rules[r].body, calls);
    n_calls[r] = calls.size();
    for (const int callee : calls)
      callers[static_cast<std::size_t>(callee)].push_back(static_cast<int>(r));
    if (calls.empty()) work.push_back(static_cast<int>(r));
  }
  std::size_t n_gone = 0;
  for (; !work.empty(); ++n_gone) {
    const auto rule = static_cast<std::size_t>(work.back());
    work.pop_back();
    for (const int caller : callers[rule])
      if (--n_calls[static_cast<std::size_t>(caller)] == 0) work.push_back(caller);
  }
  if (n_gone == n) return -1;
  // From any remaining rule, calls to remaining rules lead into the cycle.
  std::vector<bool> seen(n);
  auto rule = static_cast<std::size_t>(
      std::find_if(n_calls.begin(), n_calls.end(), [](std::size_t c) { return c > 0; }) -
      n_calls.begin());
  while (!seen[rule]) {
    seen[rule] = true;
    calls.clear();
    FindLeftmost(gbnf, gbnf.rules[rule].body, calls);
    rule = static_cast<std::size_t>(*std::find_if(calls.begin(), calls.end(), [&](int callee) {
      return n_calls[static_cast<std::size_t>(callee)] > 0;
    }));
  }
  return static_cast<int>(rule);
}

}  // namespace

Result<Gbnf> ParseGbnf(std::string_view text) {
  FORETOKEN_TRY(Gbnf gbnf, GbnfParser(text).Parse());
  const auto fail = [](const GbnfRule& rule, std::string_view why) {
    return InvalidField("grammar", fmt::format("rule '{}' {}", rule.name, why));
  };
  const std::vector<bool> can_end = Holds(gbnf, true);
  for (const GbnfRule& rule : gbnf.rules)
    if (!can_end[static_cast<std::size_t>(rule.body)])
      return fail(rule, "never ends, it always needs itself; give it an alternative without");
  gbnf.nullable = Holds(gbnf, false);
  if (const int rule = FindLeftRecursion(gbnf); rule >= 0)
    return fail(gbnf.rules[static_cast<std::size_t>(rule)],
                "is left-recursive, it begins with itself; write it with * or let it end with "
                "itself");
  return gbnf;
}

}  // namespace foretoken::grammar
