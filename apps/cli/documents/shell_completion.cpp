// SPDX-License-Identifier: Apache-2.0
#include "cli/documents/shell_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/verb.h"

namespace foretoken::cli {
namespace {

using settings::Flag;
using settings::FlagSet;

enum class ValueKind { kNone, kFile, kFolder, kChoice, kOther };

bool IsFile(const std::string& value) {
  return value == "PATH" || value == "FILE" || value == "MODEL" || value == "IN OUT TYPE";
}

// "on|off" -> on, off
std::vector<std::string> Alternatives(const std::string& value) {
  std::vector<std::string> out;
  if (value.find('|') == std::string::npos) return out;
  for (std::size_t at = 0; at <= value.size();) {
    const std::size_t end = std::min(value.find('|', at), value.size());
    out.push_back(value.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::vector<std::string> ChoicesOf(const Flag& flag) {
  return flag.choices.empty() ? Alternatives(flag.value) : flag.choices;
}

ValueKind KindOf(const Flag& flag) {
  if (flag.value.empty()) return ValueKind::kNone;
  if (!ChoicesOf(flag).empty()) return ValueKind::kChoice;
  if (IsFile(flag.value)) return ValueKind::kFile;
  return flag.value == "FOLDER" ? ValueKind::kFolder : ValueKind::kOther;
}

// What fits into a menu: the help up to its first full stop.
std::string Brief(const Flag& flag) {
  constexpr std::size_t kMost = 70;
  std::string text = flag.help.substr(0, flag.help.find(';'));
  if (text.size() <= kMost) return text;
  return text.substr(0, text.rfind(' ', kMost)) + " ...";
}

// The flags of a verb, with those that every verb has.
std::vector<Flag> FlagsOf(const FlagSet& set) {
  std::vector<Flag> flags;
  for (const settings::FlagGroup& group : set.groups())
    flags.insert(flags.end(), group.flags.begin(), group.flags.end());
  flags.push_back({{"-h", "--help"}, "", "the most used flags", {}});
  flags.push_back({{"--help-all"}, "", "all flags", {}});
  return flags;
}

// In single quotes, which `quote` closes, escapes and opens again.
std::string ShellQuoted(std::string_view text, std::string_view quote) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += quote;
    } else {
      out += c;
    }
  }
  return out + "'";
}

// -- bash

std::string BashCase(const Flag& flag) {
  const std::string pattern = fmt::format("{}", fmt::join(flag.names, "|"));
  switch (KindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return fmt::format("        {}) kind=file ;;\n", pattern);
    case ValueKind::kFolder:
      return fmt::format("        {}) kind=folder ;;\n", pattern);
    case ValueKind::kChoice:
      return fmt::format("        {}) kind=words words='{}' ;;\n", pattern,
                         fmt::join(ChoicesOf(flag), " "));
    case ValueKind::kOther:
      return fmt::format("        {}) kind=other ;;\n", pattern);
  }
  return "";
}

std::string BashVerb(const Verb& verb) {
  const FlagSet set = verb.describe();
  std::vector<std::string> names;
  std::string cases;
  for (const Flag& flag : FlagsOf(set)) {
    names.insert(names.end(), flag.names.begin(), flag.names.end());
    cases += BashCase(flag);
  }
  std::string out = fmt::format("    {})\n      flags='{}'\n", verb.name, fmt::join(names, " "));
  if (!set.positional_choices().empty()) {
    out += fmt::format("      plain='{}'\n", fmt::join(set.positional_choices(), " "));
  } else if (!set.positional().empty()) {
    out += "      plain_kind=file\n";
  }
  if (!cases.empty()) out += "      case $before in\n" + cases + "      esac\n";
  return out + "      ;;\n";
}

// -- zsh

// Brackets and colons are special in the specifications of _arguments.
std::string ZshText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string ZshAction(const Flag& flag) {
  switch (KindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return fmt::format(":{}:_files", ZshText(flag.value));
    case ValueKind::kFolder:
      return fmt::format(":{}:_files -/", ZshText(flag.value));
    case ValueKind::kChoice:
      return fmt::format(":{}:({})", ZshText(flag.value), fmt::join(ChoicesOf(flag), " "));
    case ValueKind::kOther:
      return fmt::format(":{}: ", ZshText(flag.value));
  }
  return "";
}

std::string ZshVerb(const Verb& verb) {
  const FlagSet set = verb.describe();
  std::string out = fmt::format("    {})\n      _arguments", verb.name);
  for (const Flag& flag : FlagsOf(set)) {
    const std::string others =
        flag.repeatable ? "*" : fmt::format("({})", fmt::join(flag.names, " "));
    for (const std::string& name : flag.names) {
      const bool equals = name.starts_with("--") && !flag.value.empty();
      const std::string spec = fmt::format("{}{}{}[{}]{}", others, name, equals ? "=" : "",
                                           ZshText(Brief(flag)), ZshAction(flag));
      out += " \\\n        " + ShellQuoted(spec, "'\\''");
    }
  }
  if (!set.positional_choices().empty()) {
    out += fmt::format(" \\\n        '1:{}:({})'", ZshText(set.positional()),
                       fmt::join(set.positional_choices(), " "));
  } else if (!set.positional().empty()) {
    out += fmt::format(" \\\n        '*:{}:_files'", ZshText(set.positional()));
  }
  return out + "\n      ;;\n";
}

// -- fish

std::string FishName(const std::string& name) {
  if (name.starts_with("--")) return "-l " + name.substr(2);
  return (name.size() == 2 ? "-s " : "-o ") + name.substr(1);
}

std::string FishAction(const Flag& flag) {
  switch (KindOf(flag)) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kChoice:
      return fmt::format(" -x -a '{}'", fmt::join(ChoicesOf(flag), " "));
    case ValueKind::kOther:
      return " -x";
  }
  return "";
}

// In fish's single quotes a backslash escapes a quote and itself.
std::string FishQuoted(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '\\' ? std::string("\\\\") : std::string(1, c);
  return ShellQuoted(escaped, "\\'");
}

std::string FishVerb(const Verb& verb) {
  const FlagSet set = verb.describe();
  const std::string start =
      fmt::format("complete -c foretoken -n '__fish_seen_subcommand_from {}'", verb.name);
  std::string out;
  for (const Flag& flag : FlagsOf(set)) {
    out += start;
    for (const std::string& name : flag.names) out += ' ' + FishName(name);
    out += FishAction(flag) + " -d " + FishQuoted(Brief(flag)) + '\n';
  }
  if (!set.positional_choices().empty()) {
    out += fmt::format("{} -a '{}'\n", start, fmt::join(set.positional_choices(), " "));
  } else if (!set.positional().empty()) {
    out += start + " -F\n";
  }
  return out;
}

std::string BashVerbNames() {
  std::string out;
  for (const Verb* const verb : Verbs())
    out += fmt::format("{}{}", out.empty() ? "" : " ", verb->name);
  return out;
}

}  // namespace

std::string BashCompletion() {
  std::string out =
      "# bash completion of foretoken, made by `foretoken completion bash`.\n"
      "_foretoken() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
      "  local flags= plain= kind= plain_kind= words=\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W '" +
      BashVerbNames() +
      " -h --help -V --version' -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  # bash makes three words of --flag=value\n"
      "  if [[ $word == '=' ]]; then word=; elif [[ $before == '=' ]]; then "
      "before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
      "  case ${COMP_WORDS[1]} in\n";
  for (const Verb* const verb : Verbs()) out += BashVerb(*verb);
  return out +
         "  esac\n"
         "  if [[ -z $kind ]]; then\n"
         "    if [[ $word == -* ]]; then kind=words words=$flags\n"
         "    elif [[ -n $plain ]]; then kind=words words=$plain\n"
         "    else kind=$plain_kind\n"
         "    fi\n"
         "  fi\n"
         "  case $kind in\n"
         "    words) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
         "    file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "
         "\"$word\") ;;\n"
         "    folder) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "
         "\"$word\") ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _foretoken foretoken\n";
}

std::string ZshCompletion() {
  std::string out =
      "#compdef foretoken\n"
      "# zsh completion of foretoken, made by `foretoken completion zsh`.\n"
      "_foretoken() {\n"
      "  local verb=${words[2]}\n"
      "  if ((CURRENT == 2)); then\n"
      "    local -a verbs=(\n";
  for (const Verb* const verb : Verbs())
    out += "      " +
           ShellQuoted(fmt::format("{}:{}", verb->name, ZshText(verb->summary)), "'\\''") + '\n';
  out +=
      "    )\n"
      "    _describe verb verbs\n"
      "    return\n"
      "  fi\n"
      "  shift words\n"
      "  ((CURRENT--))\n"
      "  case $verb in\n";
  for (const Verb* const verb : Verbs()) out += ZshVerb(*verb);
  return out +
         "  esac\n"
         "}\n"
         "# Found by compinit, or read by source.\n"
         "if [[ ${funcstack[1]} == _foretoken ]]; then _foretoken \"$@\"; else compdef _foretoken "
         "foretoken; fi\n";
}

std::string FishCompletion() {
  std::string out =
      "# fish completion of foretoken, made by `foretoken completion fish`.\n"
      "complete -c foretoken -f\n"
      "complete -c foretoken -n __fish_use_subcommand -s h -l help -d 'lists the verbs'\n"
      "complete -c foretoken -n __fish_use_subcommand -s V -l version -d 'prints the version'\n";
  for (const Verb* const verb : Verbs())
    out += fmt::format("complete -c foretoken -n __fish_use_subcommand -a {} -d {}\n", verb->name,
                       FishQuoted(verb->summary));
  for (const Verb* const verb : Verbs()) out += FishVerb(*verb);
  return out;
}

}  // namespace foretoken::cli
