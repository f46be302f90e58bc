// SPDX-License-Identifier: Apache-2.0
#include "settings/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace foretoken::settings {
namespace {

constexpr std::size_t kNarrow = 72;  // below: the help stands under the flag, not beside it
constexpr std::size_t kHelpColumn = 30, kNarrowHelpColumn = 6;

std::size_t HelpColumn(std::size_t width) {
  return width < kNarrow ? kNarrowHelpColumn : kHelpColumn;
}

void AppendRow(std::string& out, const std::string& left, const std::string& help,
               std::size_t width) {
  const std::size_t column = HelpColumn(width);
  out += "  ";
  if (left.size() + 4 <= column) {
    out += left + std::string(column - left.size() - 2, ' ');
  } else {
    out += Wrapped(left, width, 2, 2) + std::string(column, ' ');
  }
  out += Wrapped(help, width, column, column);
}

// A command that is longer than a line continues after a backslash, so that it can still be pasted.
// Text in quotes is one word.
void AppendCommand(std::string& out, std::string command, std::size_t width) {
  constexpr char kSpace = '\1';
  char quote = 0;
  for (char& c : command) {
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (quote != 0 && c == ' ') {
      c = kSpace;
    }
  }
  std::string lines = Wrapped(command, width - 2, 6, 2);
  std::replace(lines.begin(), lines.end(), kSpace, ' ');
  for (std::size_t at = 0; (at = lines.find('\n', at)) + 1 < lines.size(); at += 3)
    lines.insert(at, " \\");
  out += "  " + lines;
}

// In the short help: one short and one long name.
std::string NamesOf(const Flag& flag, bool all) {
  if (all) return fmt::format("{}", fmt::join(flag.names, ", "));
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto first = std::find_if(flag.names.begin(), flag.names.end(), is_long);
  const std::string& name = flag.names.front();
  return is_long(name) || first == flag.names.end() ? name : name + ", " + *first;
}

std::size_t CountOf(const FlagSet& flags, bool all) {
  std::size_t n = 0;
  for (const FlagGroup& group : flags.groups())
    for (const Flag& flag : group.flags) n += all || flags.IsEssential(flag) ? 1 : 0;
  return n;
}

void AppendGroup(std::string& out, const FlagSet& flags, const FlagGroup& group,
                 const HelpForm& form) {
  std::string rows;
  const bool brief = !form.all && CountOf(flags, false) < CountOf(flags, true);
  for (const Flag& flag : group.flags) {
    if (!form.all && !flags.IsEssential(flag)) continue;
    std::string left = NamesOf(flag, form.all);
    if (!flag.value.empty()) left += ' ' + flag.value;
    AppendRow(rows, left, brief && !flag.brief.empty() ? flag.brief : flag.help, form.width);
  }
  if (!rows.empty()) out += '\n' + Wrapped(group.title + ":", form.width, 2) + rows;
}

}  // namespace

std::string Wrapped(const std::string& text, std::size_t width, std::size_t indent,
                    std::size_t used) {
  std::string out;
  std::size_t column = used;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (!first && column + 1 + (end - at) > width) {
      out += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out.append(text, at, end - at);
    column += end - at;
    first = false;
    at = end + 1;
  }
  return out + '\n';
}

std::string HelpText(const FlagSet& flags, const HelpForm& form) {
  const char* const program = flags.synopsis().starts_with('-') ? "foretoken" : "foretoken ";
  std::string out =
      Wrapped(fmt::format("usage: {}{}", program, flags.synopsis()), form.width, 7) + '\n';
  out += Wrapped(flags.description(), form.width, 0);
  for (const FlagGroup& group : flags.groups()) AppendGroup(out, flags, group, form);
  out += '\n';
  const std::size_t n_all = CountOf(flags, true);
  if (CountOf(flags, false) == n_all) {
    AppendRow(out, "-h, --help", "this text", form.width);
  } else {
    AppendRow(out, "-h, --help", form.all ? "the most used flags" : "this text", form.width);
    AppendRow(out, "--help-all", form.all ? "this text" : fmt::format("all {} flags", n_all),
              form.width);
  }
  if (!flags.examples().empty())
    out += flags.examples().size() == 1 ? "\nExample:\n" : "\nExamples:\n";
  for (const std::string& command : flags.examples()) AppendCommand(out, command, form.width);
  if (!flags.environment().empty())
    out += '\n' + Wrapped("Environment: " + flags.environment(), form.width, 2);
  return out;
}

}  // namespace foretoken::settings
