// SPDX-License-Identifier: Apache-2.0
// attack/file_attack.h: gives mutated files to a reader, each in a process that may die, and counts
// the results.
//
// A child reads files one after the other; the parent knows which one it is reading. These are
// faults: a child dies by a signal, a sanitizer ends it, it uses too much CPU time or memory, or
// its reader reports a wrong answer. The file is then kept with what is known, and a new child
// continues with the next file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "attack/good_files.h"

namespace foretoken::attack {

// The result for one file: "opened", "refused: kInvalidFile", ...; a fault says what was wrong.
struct Outcome {
  std::string label;
  std::string fault = {};
};

// Reads the file at `path`.
using FileReader =
    std::function<Outcome(const std::string& path, const GoodFile& good, Random& random)>;

// The file of a number, instead of a mutated model.
using FileMaker = std::function<Mutated(std::uint64_t seed, std::uint64_t number)>;

struct AttackOptions {
  std::uint64_t seed = 1;
  std::uint64_t first = 0;    // the number of the first file
  std::uint64_t files = 200;  // at most
  double seconds = 0;         // at most; 0: no limit
  double cpu_seconds = 60;    // of one file
  std::int64_t memory_mib = 1500;
  std::string keep = "attack-kept";  // a folder for files that found a fault
  std::string write = {};            // a folder: the files are only written there
  std::vector<std::string> more;     // good files beside those of the fixtures
  // For the negative control of the attack: what the reader of the planted file does.
  std::string plant = {};  // "crash", "abort", "hang", "memory", "wrong" or "message"
};

// Reads the command line, attacks, prints the counts. The exit code: 0 without a fault, 1 with one,
// 2 for a wrong command line.
int AttackFiles(std::span<char* const> arguments,
                const std::function<FileReader(const GoodFiles&, const std::string& folder)>& make,
                FileMaker file = {});

// "" for a good error message: one line of at most 2,400 bytes (a path may be long), of printable
// UTF-8.
std::string WrongWithMessage(const std::string& message);

// What the reader of the planted file must do to its own answer.
bool PlantedWrong();

}  // namespace foretoken::attack
