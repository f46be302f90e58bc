// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11, which sorts arguments into values of flags and the rest.
#include "settings/flag_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>

#include "config/nearest_name.h"

namespace foretoken::settings {
namespace {

bool LooksLikeFlag(const std::string& argument) {
  return argument.size() > 1 && argument[0] == '-' && argument != "--";
}

// "-md": one dash, several letters. CLI11 would read it as -m with the value "d".
bool IsLongWithOneDash(const std::string& name) {
  return name.size() > 2 && name[0] == '-' && name[1] != '-';
}

// The name that CLI11 gets.
std::string ParserName(const std::string& name) {
  return IsLongWithOneDash(name) ? "-" + name : name;
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Values of llama.cpp's switches that once took none.
bool IsSwitchValue(const std::string& text) {
  return Contains({"on", "off", "auto", "0", "1", "true", "false"}, text);
}

bool IsHelp(const std::string& name) {
  return name == "-h" || name == "--help" || name == "--help-all";
}

}  // namespace

FlagSet::FlagSet(std::string synopsis, std::string description)
    : synopsis_(std::move(synopsis)), description_(std::move(description)) {}

void FlagSet::Add(FlagGroup group) {
  groups_.push_back(std::move(group));
}

void FlagSet::AddForeign(std::vector<ForeignFlag> flags) {
  std::move(flags.begin(), flags.end(), std::back_inserter(foreign_));
}

void FlagSet::AddAbsent(std::string name, std::string advice) {
  foreign_.push_back({{std::move(name)}, ForeignFlag::Takes::kNothing, std::move(advice)});
}

void FlagSet::SetPositional(std::string value, std::function<Status(const std::string&)> set,
                            std::vector<std::string> choices) {
  positional_ = std::move(value);
  set_positional_ = std::move(set);
  positional_choices_ = std::move(choices);
}

bool FlagSet::IsEssential(const Flag& flag) const {
  return essential_.empty() || std::any_of(flag.names.begin(), flag.names.end(),
                                           [&](const auto& n) { return Contains(essential_, n); });
}

const Flag* FlagSet::Find(const std::string& name) const {
  for (const FlagGroup& group : groups_) {
    for (const Flag& flag : group.flags) {
      if (Contains(flag.names, name)) return &flag;
    }
  }
  return nullptr;
}

const ForeignFlag* FlagSet::FindForeign(const std::string& name) const {
  for (const ForeignFlag& flag : foreign_) {
    if (Contains(flag.names, name)) return &flag;
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

// The error for an argument that no flag takes.
Status FlagSet::CheckLeftOver(const std::string& argument) const {
  if (!LooksLikeFlag(argument)) {
    return InvalidArgument(
        fmt::format("{}: an argument that no flag takes; quote a text with spaces and give "
                    "it to its flag, see --help",
                    argument));
  }
  const std::string name = argument.substr(0, argument.find('='));
  const std::string nearest = Nearest(name);
  return InvalidArgument(
      nearest == "--help"
          ? fmt::format("{}: no such flag; see --help-all", Shown(name))
          : fmt::format("{}: no such flag; did you mean {}?", Shown(name), nearest));
}

// One of our flags at arguments[i], with the value after it.
Status FlagSet::TakeFlag(const Flag& flag, const std::vector<std::string>& arguments,
                         std::size_t& i, Sorted& sorted) const {
  const std::string& argument = arguments[i];
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const bool glued = equals != std::string::npos;
  if (flag.value.empty() && glued)
    return InvalidArgument(
        fmt::format("{}: it takes no value; leave {} out", name, argument.substr(equals)));
  sorted.given[&flag].push_back({name, ""});
  sorted.arguments.push_back(ParserName(name));
  if (glued) {
    sorted.arguments.push_back(argument.substr(equals + 1));
  } else if (!flag.value.empty()) {
    if (++i == arguments.size())
      return InvalidArgument(name + ": its value is missing; see --help");
    sorted.arguments.push_back(arguments[i]);
  }
  return {};
}

Status FlagSet::TakeForeign(const ForeignFlag& flag, const std::vector<std::string>& arguments,
                            std::size_t& i, Sorted& sorted) const {
  using Takes = ForeignFlag::Takes;
  const std::string& argument = arguments[i];
  const std::size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : argument.substr(equals + 1);
  if (equals == std::string::npos && i + 1 < arguments.size()) {
    const bool takes = flag.takes == Takes::kValue ||
                       (flag.takes == Takes::kSwitchValue && IsSwitchValue(arguments[i + 1]));
    if (takes) value = arguments[++i];
  }
  const bool harmless = !flag.harmless_value.empty() && value == flag.harmless_value;
  if (!flag.advice.empty() && !harmless)
    return InvalidArgument(fmt::format("{}: no such flag; {}", name, flag.advice));
  sorted.without_effect.push_back(value.empty() ? name : name + " " + value);
  return {};
}

// An unknown name: "-n5" is -n with 5. Other clusters are refused here, because CLI11 would take
// "-ngl" for -n with the value "gl".
Status FlagSet::TakeUnknown(const std::string& argument, Sorted& sorted) const {
  const Flag* const flag = Find(argument.substr(0, 2));
  const bool number = IsLongWithOneDash(argument) &&
                      argument.find_first_not_of("0123456789.", 2) == std::string::npos;
  if (!number || flag == nullptr || flag->value.empty()) return CheckLeftOver(argument);
  sorted.given[flag].push_back({argument.substr(0, 2), ""});
  sorted.arguments.insert(sorted.arguments.end(), {argument.substr(0, 2), argument.substr(2)});
  return {};
}

// The arguments in CLI11's form: names with one dash and several letters get a second dash, and
// foreign flags are removed. Flags are listed in their order, still without values.
Result<FlagSet::Sorted> FlagSet::Normalise(const std::vector<std::string>& arguments) const {
  Sorted sorted;
  bool only_positional = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    only_positional |= argument == "--";
    const std::string name = argument.substr(0, argument.find('='));
    if (only_positional || !LooksLikeFlag(argument) || IsHelp(name)) {
      sorted.arguments.push_back(argument);
    } else if (const Flag* const flag = Find(name)) {
      FORETOKEN_CHECK_OK(TakeFlag(*flag, arguments, i, sorted));
    } else if (const ForeignFlag* const foreign = FindForeign(name)) {
      FORETOKEN_CHECK_OK(TakeForeign(*foreign, arguments, i, sorted));
    } else {
      FORETOKEN_CHECK_OK(TakeUnknown(argument, sorted));
    }
  }
  return sorted;
}

Status FlagSet::Apply(const Flag& flag, const std::vector<Given>& given) const {
  for (const Given& one : given) {
    if (Status status = flag.set(one.value); !status) {
      return Fail(std::move(status.error()).In(one.name));
    }
  }
  return {};
}

// Lets CLI11 assign the values to their names, and the rest to `left_over`. False: help was
// requested.
Result<bool> FlagSet::Sort(Sorted& sorted) const {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  bool help = false;
  app.add_flag("-h,--help,--help-all", help);
  for (auto& [flag, values] : sorted.given) {
    std::vector<std::string> names;
    for (const std::string& name : flag->names) names.push_back(ParserName(name));
    const std::string all = fmt::format("{}", fmt::join(names, ","));
    if (flag->value.empty()) {
      app.add_flag(all);
      continue;
    }
    const auto keep = [&values = values](const CLI::results_t& results) {
      for (std::size_t i = 0; i < std::min(values.size(), results.size()); ++i)
        values[i].value = results[i];
      return true;
    };
    app.add_option(all, keep)->expected(1)->allow_extra_args(false)->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }
  try {
    app.parse(std::vector<std::string>(sorted.arguments.rbegin(),
                                       sorted.arguments.rend()));  // CLI11's order
  } catch (const CLI::Error& error) {
    return InvalidArgument(fmt::format("flags: {}; see --help", error.what()));
  }
  sorted.left_over = app.remaining();
  return !help;
}

Result<Parsed> FlagSet::Parse(const std::vector<std::string>& arguments) const {
  const bool all = Contains(arguments, "--help-all");
  const Parsed help{all ? ParseOutcome::kHelpAll : ParseOutcome::kHelp, {}};
  // Also after a flag that waits for its value.
  if (!arguments.empty() && IsHelp(arguments.back())) return help;
  FORETOKEN_TRY(Sorted sorted, Normalise(arguments));
  FORETOKEN_TRY(const bool goes_on, Sort(sorted));
  if (!goes_on) return help;
  for (const std::string& argument : sorted.left_over) {
    if (argument == "--") continue;
    if (!set_positional_) FORETOKEN_CHECK_OK(CheckLeftOver(argument));
    FORETOKEN_CHECK_OK(set_positional_(argument));
  }
  for (const FlagGroup& group : groups_) {
    for (std::size_t i = 0; i < group.flags.size(); ++i) {
      if (group.after_first && i == group.n_first) FORETOKEN_CHECK_OK(group.after_first());
      const auto found = sorted.given.find(&group.flags[i]);
      if (found != sorted.given.end()) FORETOKEN_CHECK_OK(Apply(group.flags[i], found->second));
    }
  }
  return Parsed{ParseOutcome::kRun, std::move(sorted.without_effect)};
}

}  // namespace foretoken::settings
