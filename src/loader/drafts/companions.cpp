// SPDX-License-Identifier: Apache-2.0
#include "loader/drafts/companions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "foretoken/catalogue.h"
#include "foretoken/result.h"

namespace foretoken::loader {
namespace {

namespace fs = std::filesystem;

constexpr int kMostEntries = 10'000;         // of a folder that are looked at
constexpr std::size_t kMostCandidates = 16;  // files that are opened
// The drafters' own names count too.
constexpr std::array<std::string_view, 2> kOtherWords = {"draft", "assistant"};
// Letters of a word that counts inside of others, too.
constexpr std::size_t kLongWord = 5;

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

// "mtp" in "mtp-x" but not in "smtp"; "eagle" also in "x_eagle3".
bool HasWord(std::string_view name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string_view::npos;
       at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool bounded =
        (at == 0 || !IsLetter(name[at - 1])) && (end == name.size() || !IsLetter(name[end]));
    if (bounded || word.size() >= kLongWord) return true;
  }
  return false;
}

// "tales-00002-of-00003.gguf": a split file is opened by its first part.
bool IsLaterPart(std::string_view name) {
  constexpr std::string_view kForm = "-00001-of-00003.gguf";
  if (name.size() <= kForm.size()) return false;
  const std::string_view suffix = name.substr(name.size() - kForm.size());
  return suffix.substr(6, 4) == "-of-" && suffix.ends_with(".gguf") &&
         suffix.substr(1, 5) != "00001";
}

// Pipes and devices are never opened.
bool IsModel(const fs::path& path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return Lower(path.extension().string()) == ".gguf";
  return fs::is_regular_file(path / "config.json", failed);
}

fs::path Resolved(const fs::path& path) {
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  return failed ? path : real;
}

class CompanionSearch {
 public:
  explicit CompanionSearch(const fs::path& model) : seen_{Resolved(model)} {
    std::error_code failed;
    if (fs::is_directory(model, failed)) {
      Look(model);
      return;
    }
    const fs::path folder = model.parent_path(), other = seen_.front().parent_path();
    Look(folder);
    if (Resolved(folder.empty() ? "." : folder) != other) Look(other);
  }

  Companions companions;

 private:
  void Look(const fs::path& folder) {
    std::error_code failed;
    std::vector<fs::path> found;
    int n = 0;
    fs::directory_iterator entry(folder.empty() ? "." : folder, failed), end;
    for (; !failed && entry != end && n < kMostEntries; entry.increment(failed), ++n) {
      const std::string name = entry->path().filename().string();
      if (NamesADrafter(name) && !IsLaterPart(name)) found.push_back(folder / name);
    }
    if (failed)
      Note(folder, "it cannot be read: " + failed.message());
    else if (entry != end)
      Note(folder, fmt::format("only the first {} of its files were looked at", kMostEntries));
    std::sort(found.begin(), found.end());
    for (const fs::path& path : found) Add(path);
  }

  void Add(const fs::path& path) {
    if (!IsModel(path)) return;
    const fs::path real = Resolved(path);
    if (std::find(seen_.begin(), seen_.end(), real) != seen_.end()) return;
    if (companions.paths.size() == kMostCandidates)
      return Note(path, fmt::format("{} others are looked at already", kMostCandidates));
    seen_.push_back(real);
    companions.paths.push_back(path.generic_string());
  }

  void Note(const fs::path& path, const std::string& why) {
    companions.notices.push_back(
        fmt::format("drafts: {}: {}", path.empty() ? "." : Shown(path.string()), why));
  }

  std::vector<fs::path> seen_;  // the model's file first
};

}  // namespace

bool NamesADrafter(std::string_view file) {
  const std::string name = Lower(file);
  const auto has = [&](std::string_view word) { return HasWord(name, word); };
  for (const DrafterInfo* const drafter : AllDrafters()) {
    if (!drafter->reads_file) continue;
    if (has(drafter->name) || std::any_of(drafter->aliases.begin(), drafter->aliases.end(), has))
      return true;
  }
  return std::any_of(kOtherWords.begin(), kOtherWords.end(), has);
}

bool NamesADraftModel(std::string_view file) {
  return Lower(file).find("draft") != std::string::npos;
}

Companions FindCompanions(const std::string& model) {
  return CompanionSearch(model).companions;
}

}  // namespace foretoken::loader
