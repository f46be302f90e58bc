// SPDX-License-Identifier: Apache-2.0
// loader/kept_list.h: a list of records that is kept in a file between two starts, the newest first:
//   {NAME: VERSION, LIST: [...]}
// A file that cannot be read, or that other users could have written, is as good as none, and is replaced.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_record.h"

namespace foretoken::loader {

class KeptList {
 public:
  struct Form {
    const char *file, *name, *list;  // "costs.json", "foretoken_costs", "engines"
    std::size_t most_bytes, most_entries;
  };

  KeptList(std::string folder, Form form) : folder_(std::move(folder)), form_(form) {}

  // The entries that can be read.
  template <typename Entry, typename Describe>
  std::vector<Entry> Read(const Describe& describe) const {
    std::vector<Entry> entries;
    for (const auto& json : List())
      if (Entry entry; !ReadRecord(json, entry, describe)) entries.push_back(std::move(entry));
    return entries;
  }
  // Makes the folder if there is none. Keeps as many as a file has; a file that cannot be written stays as
  // it is.
  template <typename Entry, typename Describe>
  void Write(const std::vector<Entry>& entries, const Describe& describe) const {
    auto list = Json::array();
    for (const Entry& entry : entries)
      if (list.size() < form_.most_entries) list.push_back(WriteRecord(entry, describe));
    WriteList(std::move(list));
  }

 private:
  Json List() const;  // an empty one where there is none
  void WriteList(Json list) const;

  std::string folder_;
  Form form_;
};

}  // namespace foretoken::loader
