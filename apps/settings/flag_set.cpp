// SPDX-License-Identifier: Apache-2.0
// The only file that knows CLI11. Each name of a flag is an option of its own there, because two
// aliases with different values must be told apart, and the message names both.
#include "settings/flag_set.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "foretoken/nearest_name.h"

namespace foretoken::settings {
namespace {

constexpr std::size_t kHelpColumn = 30, kHelpWidth = 98;

bool LooksLikeFlag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && argument != "--";
}

// "-md": one dash, several letters. CLI11 would read it as -m with the value "d".
bool IsLongWithOneDash(const std::string& name) {
  return name.size() > 2 && name[0] == '-' && name[1] != '-';
}

// What CLI11 gets to see.
std::string ParserName(const std::string& name) {
  return IsLongWithOneDash(name) ? "-" + name : name;
}

void AppendWrapped(std::string& out, const std::string& text, std::size_t indent) {
  std::size_t column = indent;
  bool first = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (!first && column + 1 + (end - at) > kHelpWidth) {
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
  out += '\n';
}

void AppendRow(std::string& out, const std::string& left, const std::string& help) {
  out += "  ";
  const std::size_t used = left.size() + 2;
  if (used > kHelpWidth) {
    AppendWrapped(out, left, 2);
    out += std::string(kHelpColumn, ' ');
    return AppendWrapped(out, help, kHelpColumn);
  }
  out += left;
  if (used + 2 > kHelpColumn) {
    out += '\n' + std::string(kHelpColumn, ' ');
  } else {
    out += std::string(kHelpColumn - used, ' ');
  }
  AppendWrapped(out, help, kHelpColumn);
}

}  // namespace

FlagSet::FlagSet(std::string synopsis, std::string description)
    : synopsis_(std::move(synopsis)), description_(std::move(description)) {}

void FlagSet::Add(FlagGroup group) {
  groups_.push_back(std::move(group));
}

void FlagSet::AddAbsent(std::string name, std::string advice) {
  absent_.emplace_back(std::move(name), std::move(advice));
}

void FlagSet::SetPositional(std::string value, std::function<Status(const std::string&)> set) {
  positional_ = std::move(value);
  set_positional_ = std::move(set);
}

const Flag* FlagSet::Find(const std::string& name) const {
  for (const FlagGroup& group : groups_) {
    for (const Flag& flag : group.flags) {
      if (std::find(flag.names.begin(), flag.names.end(), name) != flag.names.end()) return &flag;
    }
  }
  return nullptr;
}

std::string FlagSet::Nearest(const std::string& name) const {
  std::vector<std::string_view> known;
  for (const FlagGroup& group : groups_) {
    for (const Flag& flag : group.flags) {
      known.insert(known.end(), flag.names.begin(), flag.names.end());
    }
  }
  const std::string_view nearest = NearestName(name, known);
  return nearest.empty() ? "--help" : std::string(nearest);
}

// Error for an argument that no flag takes.
Status FlagSet::CheckLeftOver(const std::string& argument) const {
  if (!LooksLikeFlag(argument)) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: an argument that no flag takes; quote a text with spaces and give "
                            "it to its flag, see --help",
                            argument));
  }
  const std::string name = argument.substr(0, argument.find('='));
  for (const auto& [absent, advice] : absent_) {
    if (absent == name) {
      return Fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: not in this version; {}", name, advice));
    }
  }
  const std::string nearest = Nearest(name);
  return Fail(ErrorCode::kInvalidArgument,
              nearest == "--help"
                  ? fmt::format("{}: no such flag; see --help", name)
                  : fmt::format("{}: no such flag; did you mean {}?", name, nearest));
}

// Names with one dash and several letters become what CLI11 can read; clusters that are no flag of
// ours are refused here, because CLI11 would take "-ngl" for -n with the value "gl".
Result<std::vector<std::string>> FlagSet::Normalise(
    const std::vector<std::string>& arguments) const {
  std::vector<std::string> out;
  bool is_value = false;
  for (const std::string& argument : arguments) {
    if (is_value || !LooksLikeFlag(argument)) {
      out.push_back(argument);
      is_value = false;
      continue;
    }
    const std::string name = argument.substr(0, argument.find('='));
    const Flag* flag = Find(name);
    is_value = flag != nullptr && !flag->value.empty() && name.size() == argument.size();
    if (!IsLongWithOneDash(name)) {
      out.push_back(argument);
    } else if (flag != nullptr) {
      out.push_back("-" + argument);
    } else {
      const Flag* cluster = Find(name.substr(0, 2));
      const bool number = name.find_first_not_of("0123456789.", 2) == std::string::npos;
      if (cluster == nullptr || cluster->value.empty() || !number) {
        FORETOKEN_CHECK_OK(CheckLeftOver(argument));
      }
      out.push_back(argument);
    }
  }
  return out;
}

Status FlagSet::Apply(const Flag& flag, const std::vector<Given>& given) const {
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!flag.repeatable && i > 0) {
      if (given[i].value == given[0].value) continue;
      const bool same_name = given[i].name == given[0].name;
      return Fail(
          ErrorCode::kInvalidArgument,
          same_name ? fmt::format("{}: given twice, as {} and as {}; keep one", given[0].name,
                                  given[0].value, given[i].value)
                    : fmt::format("{} {} and {} {}: two names of one thing with different values; "
                                  "keep one",
                                  given[0].name, given[0].value, given[i].name, given[i].value));
    }
    if (Status status = flag.set(given[i].value); !status) {
      return Fail(std::move(status.error()).In(given[i].name));
    }
  }
  return {};
}

// Lets CLI11 sort the arguments into `given` and into what is left over. False: the help was asked
// for.
Result<bool> FlagSet::Sort(const std::vector<std::string>& arguments, GivenFlags& given,
                           std::vector<std::string>& left_over) const {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  bool help = false;
  app.add_flag("-h,--help", help);
  const auto add = [&](const Flag& flag, const std::string& name) {
    const std::string parser_name = ParserName(name);
    std::vector<Given>& values = given[&flag];
    if (flag.value.empty()) {
      app.add_flag_function(parser_name, [&values, name](std::int64_t) {
        values.push_back({name, ""});
      });
      return;
    }
    const auto keep = [&values, name](const CLI::results_t& results) {
      for (const std::string& value : results) values.push_back({name, value});
      return true;
    };
    app.add_option(parser_name, keep)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  for (const FlagGroup& group : groups_) {
    for (const Flag& flag : group.flags) {
      for (const std::string& name : flag.names) add(flag, name);
    }
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11's order
  } catch (const CLI::ArgumentMismatch&) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: its value is missing; see --help", arguments.back()));
  } catch (const CLI::Error& error) {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("flags: {}; see --help", error.what()));
  }
  left_over = app.remaining();
  return !help;
}

Result<ParseOutcome> FlagSet::Parse(const std::vector<std::string>& arguments) const {
  if (!arguments.empty() && (arguments.back() == "--help" || arguments.back() == "-h")) {
    return ParseOutcome::kHelp;  // also after a flag that waits for its value
  }
  FORETOKEN_TRY(const std::vector<std::string> normalised, Normalise(arguments));
  GivenFlags given;
  std::vector<std::string> left_over;
  FORETOKEN_TRY(const bool goes_on, Sort(normalised, given, left_over));
  if (!goes_on) return ParseOutcome::kHelp;
  for (const std::string& argument : left_over) {
    if (set_positional_ && !LooksLikeFlag(argument)) {
      FORETOKEN_CHECK_OK(set_positional_(argument));
    } else {
      FORETOKEN_CHECK_OK(CheckLeftOver(argument));
    }
  }
  for (const FlagGroup& group : groups_) {
    for (std::size_t i = 0; i < group.flags.size(); ++i) {
      if (group.after_first && i == group.n_first) FORETOKEN_CHECK_OK(group.after_first());
      FORETOKEN_CHECK_OK(Apply(group.flags[i], given[&group.flags[i]]));
    }
  }
  return ParseOutcome::kRun;
}

std::string FlagSet::Help() const {
  std::string out = "usage: foretoken " + synopsis_ + "\n\n";
  AppendWrapped(out, description_, 0);
  for (const FlagGroup& group : groups_) {
    out += '\n' + group.title + ":\n";
    for (const Flag& flag : group.flags) {
      std::string left = fmt::format("{}", fmt::join(flag.names, ", "));
      if (!flag.value.empty()) left += ' ' + flag.value;
      AppendRow(out, left, flag.help);
    }
  }
  out += '\n';
  AppendRow(out, "-h, --help", "this text");
  if (!examples_.empty()) out += '\n' + examples_;
  return out;
}

}  // namespace foretoken::settings
