// SPDX-License-Identifier: Apache-2.0
// settings/flag_set.h: the flags of one verb, their help, and the one place that reads argv.
//
// A flag is a row: its names (the first is canonical, the rest are aliases), the word its value has
// in the help ("" for a switch), the help, and what to do with a value. Nothing is silently
// ignored: an unknown flag, a missing value and two different values for one thing are errors of
// one line each, in the form "<what>: <why>; <what to do>".
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::settings {

struct Flag {
  std::vector<std::string> names;  // {"-n", "--n-predict", "--max-tokens"}
  std::string value;               // "N"; "" for a switch
  std::string help;                // one sentence part, no full stop
  // Called once per value; a switch gets "". The text says what is wrong with the value ("3 is not
  // in [0, 2]; give a value in that range"): the flag's name is put before it.
  std::function<Status(const std::string&)> set;
  bool repeatable = false;
};

struct FlagGroup {
  std::string title;
  std::vector<Flag> flags;
  // Called once by Parse, given or not, after the values of the first n_first flags and before
  // those of the others, which thus override what it does.
  std::function<Status()> after_first = {};
  std::size_t n_first = 0;
};

enum class ParseOutcome { kRun, kHelp };

class FlagSet {
 public:
  // `synopsis` follows "usage: foretoken": "generate -m MODEL [flags]".
  FlagSet(std::string synopsis, std::string description);

  void Add(FlagGroup group);
  // A name users know that this version lacks: the error says `advice` instead of guessing.
  void AddAbsent(std::string name, std::string advice);
  // Takes arguments that are no flags; without it they are errors.
  void SetPositional(std::string value, std::function<Status(const std::string&)> set);
  // Free text at the end of the help.
  void SetExamples(std::string text) { examples_ = std::move(text); }

  // `arguments` without program and verb. -h and --help win over everything else.
  [[nodiscard]] Result<ParseOutcome> Parse(const std::vector<std::string>& arguments) const;

  std::string Help() const;

 private:
  struct Given {
    std::string name, value;
  };
  using GivenFlags = std::map<const Flag*, std::vector<Given>>;
  const Flag* Find(const std::string& name) const;
  [[nodiscard]] Result<bool> Sort(const std::vector<std::string>& arguments, GivenFlags& given,
                                  std::vector<std::string>& left_over) const;
  [[nodiscard]] Status CheckLeftOver(const std::string& argument) const;
  [[nodiscard]] Result<std::vector<std::string>> Normalise(
      const std::vector<std::string>& arguments) const;
  [[nodiscard]] Status Apply(const Flag& flag, const std::vector<Given>& given) const;
  std::string Nearest(const std::string& name) const;

  std::string synopsis_, description_, examples_;
  std::vector<FlagGroup> groups_;
  std::vector<std::pair<std::string, std::string>> absent_;
  std::string positional_;
  std::function<Status(const std::string&)> set_positional_;
};

}  // namespace foretoken::settings
