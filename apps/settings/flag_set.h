// SPDX-License-Identifier: Apache-2.0
// settings/flag_set.h: the flags of one verb, and the only place that reads argv.
//
// A flag is a row: its names (the first is canonical, the rest are aliases), the word for its value
// in the help ("" for a switch), the help, and a function for its value. The help (help_text.h),
// the manual pages and the shells' completion are made from these rows. An unknown flag or a
// missing value is an error of one line, "<what>: <why>; <what to do>". If a flag is repeated,
// under any of its names, the last one counts.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::settings {

struct Flag {
  std::vector<std::string> names;  // {"-n", "--n-predict", "--max-tokens"}
  std::string value;               // "N"; "" for a switch
  std::string help;                // part of a sentence, without a full stop
  // Called for each value in order; a switch gets "". The error says what is wrong with the value
  // ("3 is not in [0, 2]; give a value in that range"); the flag's name is put before it.
  std::function<Status(const std::string&)> set;
  // Every value counts, not just the last one.
  bool repeatable = false;
  // The values that shells offer; empty: those in `value`, separated by |.
  std::vector<std::string> choices = {};
  // The help where only the most used flags are shown; empty: `help`.
  std::string brief = {};
  // The option of the library that it sets, as messages of the library name it:
  // "EngineOptions::context_size". Empty: none that they name.
  std::string option = {};
};

// The flag, which sets this option of the library.
inline Flag Sets(std::string option, Flag flag) {
  flag.option = std::move(option);
  return flag;
}

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
  // Parse calls it once, in any case, after the values of the first n_first flags and before those
  // of the others, which can thus override its effect.
  std::function<Status()> after_first = {};
  std::size_t n_first = 0;
};

// A flag of another program that users of that program may type here.
struct ForeignFlag {
  enum class Takes { kNothing, kValue, kSwitchValue };  // kSwitchValue: perhaps on, off, auto
  std::vector<std::string> names;
  Takes takes = Takes::kNothing;
  // What to do instead: the flag is refused. "": the flag is accepted without effect.
  std::string advice;
  // This value is accepted although all others are refused.
  std::string harmless_value = {};
};

enum class ParseOutcome { kRun, kHelp, kHelpAll };

struct Parsed {
  ParseOutcome outcome = ParseOutcome::kRun;
  std::vector<std::string> without_effect;  // foreign flags that were accepted, as they were typed
};

class FlagSet {
 public:
  // `synopsis` follows "usage: foretoken": "generate -m MODEL [flags]". If it begins with "-", it
  // continues the program's name: "-train model [flags]".
  FlagSet(std::string synopsis, std::string description);

  void Add(FlagGroup group);
  // The flags of the short help, under any of their names. Without a call the short help has all
  // flags.
  void SetEssential(std::vector<std::string> names) { essential_ = std::move(names); }
  void AddForeign(std::vector<ForeignFlag> flags);
  // A name that users know but foretoken does not have: the error gives `advice`.
  void AddAbsent(std::string name, std::string advice);
  // Accepts arguments that are not flags; otherwise they are errors. `value` is their word in the
  // synopsis; `choices` as in Flag.
  void SetPositional(std::string value, std::function<Status(const std::string&)> set,
                     std::vector<std::string> choices = {});
  // Commands, one each, and a sentence about the environment, for the end of the help.
  void SetExamples(std::vector<std::string> commands) { examples_ = std::move(commands); }
  void SetEnvironment(std::string text) { environment_ = std::move(text); }
  // Keeps the target of the flags' values as long as the set lives.
  void Keep(std::shared_ptr<void> settings) { kept_ = std::move(settings); }

  // `arguments` without program and verb. -h, --help and --help-all win over everything else.
  [[nodiscard]] Result<Parsed> Parse(const std::vector<std::string>& arguments) const;

  const std::string& synopsis() const { return synopsis_; }
  const std::string& description() const { return description_; }
  const std::vector<FlagGroup>& groups() const { return groups_; }
  const std::vector<std::string>& examples() const { return examples_; }
  const std::string& environment() const { return environment_; }
  const std::string& positional() const { return positional_; }  // "" where there are none
  const std::vector<std::string>& positional_choices() const { return positional_choices_; }
  bool IsEssential(const Flag& flag) const;

 private:
  struct Given {
    std::string name, value;
  };
  // The arguments of one call, being sorted.
  struct Sorted {
    std::vector<std::string> arguments, left_over, without_effect;
    std::map<const Flag*, std::vector<Given>> given;
  };
  const Flag* Find(const std::string& name) const;
  const ForeignFlag* FindForeign(const std::string& name) const;
  [[nodiscard]] Status CheckLeftOver(const std::string& argument) const;
  [[nodiscard]] Status TakeFlag(const Flag& flag, const std::vector<std::string>& arguments,
                                std::size_t& i, Sorted& sorted) const;
  [[nodiscard]] Status TakeForeign(const ForeignFlag& flag,
                                   const std::vector<std::string>& arguments, std::size_t& i,
                                   Sorted& sorted) const;
  [[nodiscard]] Status TakeUnknown(const std::string& argument, Sorted& sorted) const;
  [[nodiscard]] Result<Sorted> Normalise(const std::vector<std::string>& arguments) const;
  [[nodiscard]] Result<bool> Sort(Sorted& sorted) const;
  [[nodiscard]] Status Apply(const Flag& flag, const std::vector<Given>& given) const;
  std::string Nearest(const std::string& name) const;

  std::string synopsis_, description_, environment_;
  std::vector<std::string> examples_, essential_;
  std::vector<FlagGroup> groups_;
  std::vector<ForeignFlag> foreign_;
  std::string positional_;
  std::vector<std::string> positional_choices_;
  std::function<Status(const std::string&)> set_positional_;
  std::shared_ptr<void> kept_;
};

}  // namespace foretoken::settings
