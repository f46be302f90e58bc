// SPDX-License-Identifier: Apache-2.0
#include "grammar/pattern/gbnf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/work_count.h"

namespace foretoken::grammar {
namespace {

constexpr std::size_t kMaxWrittenBytes = std::size_t{1} << 20;  // the most that ParseGbnf accepts

std::string ClassCharacter(char32_t c) {
  const auto value = static_cast<std::uint32_t>(c);
  if (c == '[' || c == ']' || c == '\\' || c == '^' || c == '-')
    return {'\\', static_cast<char>(c)};
  if (c >= 0x20 && c < 0x7F) return {static_cast<char>(c)};
  if (c < 0x100) return fmt::format("\\x{:02X}", value);
  return c < 0x10000 ? fmt::format("\\u{:04X}", value) : fmt::format("\\U{:08X}", value);
}

std::string Literal(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      quoted += {'\\', c};
    else if (byte < 0x20 || byte == 0x7F)
      quoted += fmt::format("\\x{:02X}", byte);
    else
      quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

GbnfWriter::Part GbnfWriter::Add(Piece piece) {
  CountWork(1 + piece.text.size() + piece.children.size());
  n_text_bytes_ += piece.text.size();
  too_large_ = too_large_ || pieces_.size() >= kMaxParts || n_text_bytes_ > kMaxTextBytes;
  if (too_large_) return 0;
  pieces_.push_back(std::move(piece));
  return static_cast<Part>(pieces_.size()) - 1;
}

GbnfWriter::Part GbnfWriter::Text(std::string_view text) {
  return Add({.kind = Kind::kText, .text = std::string(text)});
}

GbnfWriter::Part GbnfWriter::OneOf(const CharacterClass& characters) {
  if (characters.empty()) return AnyOf({});
  std::string text = "[";
  for (const CodePoints& r : characters.ranges()) {
    text += ClassCharacter(r.first);
    if (r.last > r.first) text += "-" + ClassCharacter(r.last);
  }
  return Add({.kind = Kind::kClass, .text = text + "]"});
}

GbnfWriter::Part GbnfWriter::Sequence(const std::vector<Part>& parts) {
  Piece sequence{.kind = Kind::kSequence};
  std::string text;  // texts joined together
  const auto end_text = [&] {
    if (!text.empty()) sequence.children.push_back(Text(std::exchange(text, {})));
  };
  for (const Part part : parts) {
    if (At(part).kind == Kind::kText) {
      text += At(part).text;
      continue;
    }
    end_text();
    sequence.children.push_back(part);
  }
  end_text();
  if (sequence.children.size() == 1) return sequence.children.front();
  return Add(std::move(sequence));
}

GbnfWriter::Part GbnfWriter::AnyOf(const std::vector<Part>& parts) {
  if (parts.size() == 1) return parts.front();
  return Add({.kind = Kind::kAnyOf, .children = parts});
}

GbnfWriter::Part GbnfWriter::Repeat(Part part, int least, int most) {
  if (most == 0) return Text("");
  if (least == 1 && most == 1) return part;
  return Add({.kind = Kind::kRepeat, .children = {part}, .least = least, .most = most});
}

int GbnfWriter::AddRule(std::string name) {
  rules_.push_back({std::move(name)});
  return static_cast<int>(rules_.size()) - 1;
}

GbnfWriter::Part GbnfWriter::Call(int rule) {
  return Add({.kind = Kind::kCall, .rule = rule});
}

void GbnfWriter::Define(int rule, Part body) {
  rules_[static_cast<std::size_t>(rule)].body = body;
}

// From the leaves upwards, each part once.
void GbnfWriter::FindFitting() {
  const std::size_t n = pieces_.size();
  std::vector<std::vector<Part>> users(n), calls(rules_.size());
  std::vector<std::vector<int>> rules_of(n);
  std::vector<std::size_t> missing(n);
  std::vector<Part> work;
  fits_.assign(n, false);
  const auto settle = [&](Part part) {
    if (fits_[static_cast<std::size_t>(part)]) return;
    fits_[static_cast<std::size_t>(part)] = true;
    work.push_back(part);
  };
  for (std::size_t i = 0; i < n; ++i) {
    const Piece& piece = pieces_[i];
    CountWork(1 + piece.children.size());
    for (const Part child : piece.children)
      users[static_cast<std::size_t>(child)].push_back(static_cast<Part>(i));
    if (piece.kind == Kind::kCall)
      calls[static_cast<std::size_t>(piece.rule)].push_back(static_cast<Part>(i));
    missing[i] = piece.kind == Kind::kSequence ? piece.children.size() : 1;
    if (piece.kind == Kind::kText || piece.kind == Kind::kClass || missing[i] == 0 ||
        (piece.kind == Kind::kRepeat && piece.least == 0))
      settle(static_cast<Part>(i));
  }
  for (std::size_t r = 0; r < rules_.size(); ++r)
    if (rules_[r].body >= 0)
      rules_of[static_cast<std::size_t>(rules_[r].body)].push_back(static_cast<int>(r));
  while (!work.empty()) {
    const auto part = static_cast<std::size_t>(work.back());
    work.pop_back();
    for (const Part user : users[part]) {
      std::size_t& left = missing[static_cast<std::size_t>(user)];
      if (left > 0 && --left == 0) settle(user);
    }
    for (const int rule : rules_of[part])
      for (const Part call : calls[static_cast<std::size_t>(rule)]) settle(call);
  }
}

Result<std::string> GbnfWriter::Write(int root) {
  const auto too_large = [] {
    return Fail(ErrorCode::kTooLarge, "it makes too large a grammar; make it smaller");
  };
  if (too_large_) return too_large();
  FindFitting();
  if (!fits_[static_cast<std::size_t>(rules_[static_cast<std::size_t>(root)].body)])
    return std::string();
  reached_.assign(rules_.size(), false);
  std::string text = "root ::= ";
  PrintCall(root, text);
  text += '\n';
  while (!to_print_.empty()) {
    const Rule& rule = rules_[static_cast<std::size_t>(to_print_.back())];
    to_print_.pop_back();
    text += rule.name + " ::= ";
    Print(rule.body, false, text);
    text += '\n';
    if (text.size() > kMaxWrittenBytes) return too_large();
  }
  return text;
}

void GbnfWriter::PrintCall(int rule, std::string& out) {
  out += rules_[static_cast<std::size_t>(rule)].name;
  if (reached_[static_cast<std::size_t>(rule)]) return;
  reached_[static_cast<std::size_t>(rule)] = true;
  to_print_.push_back(rule);
}

// group: the part needs parentheses because others stand beside it.
void GbnfWriter::Print(Part part, bool group, std::string& out) {
  const Piece& piece = At(part);
  CountWork(1 + piece.text.size());
  if (out.size() > kMaxWrittenBytes) return;
  switch (piece.kind) {
    case Kind::kText:
      out += Literal(piece.text);
      return;
    case Kind::kClass:
      out += piece.text;
      return;
    case Kind::kCall:
      return PrintCall(piece.rule, out);
    case Kind::kAnyOf:
      return PrintAnyOf(piece, group, out);
    case Kind::kRepeat:
      return PrintRepeat(piece, out);
    case Kind::kSequence:
      if (piece.children.empty()) out += "\"\"";
      for (std::size_t i = 0; i < piece.children.size(); ++i) {
        if (i > 0) out += ' ';
        Print(piece.children[i], true, out);
      }
      return;
  }
}

void GbnfWriter::PrintAnyOf(const Piece& piece, bool group, std::string& out) {
  std::vector<Part> ways;
  for (const Part child : piece.children)
    if (fits_[static_cast<std::size_t>(child)]) ways.push_back(child);
  if (ways.size() == 1) return Print(ways.front(), group, out);
  if (group) out += '(';
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (i > 0) out += " | ";
    Print(ways[i], false, out);
  }
  if (group) out += ')';
}

void GbnfWriter::PrintRepeat(const Piece& piece, std::string& out) {
  const Part child = piece.children.front();
  if (!fits_[static_cast<std::size_t>(child)]) {
    out += "\"\"";
    return;
  }
  const Kind kind = At(child).kind;
  const bool bare = kind == Kind::kText || kind == Kind::kClass || kind == Kind::kCall;
  if (!bare) out += '(';
  Print(child, false, out);
  if (!bare) out += ')';
  if (piece.least == 0 && piece.most == kNoEnd)
    out += '*';
  else if (piece.least == 1 && piece.most == kNoEnd)
    out += '+';
  else if (piece.least == 0 && piece.most == 1)
    out += '?';
  else if (piece.most == kNoEnd)
    out += fmt::format("{{{},}}", piece.least);
  else if (piece.least == piece.most)
    out += fmt::format("{{{}}}", piece.least);
  else
    out += fmt::format("{{{},{}}}", piece.least, piece.most);
}

}  // namespace foretoken::grammar
