// SPDX-License-Identifier: Apache-2.0
#include "loader/kept_list.h"

#include "base/files/input_file.h"
#include "base/files/own_folder.h"
#include "base/files/text_file.h"

namespace foretoken::loader {
namespace {

constexpr int kVersion = 1;

}  // namespace

RecordReader::Json KeptList::List() const {
  auto none = RecordReader::Json::array();
  if (!WhyNotOurFolder(folder_).empty()) return none;
  const std::string path = folder_ + "/" + form_.file;
  auto file = InputFile::Open(path, {.links = false});
  if (!file || !WhyNotOurs(file->status()).empty()) return none;
  const auto text = ReadDescriptor(file->descriptor(), path, {.most_bytes = form_.most_bytes});
  if (!text) return none;
  auto json = RecordReader::Json::parse(*text, nullptr, false);
  if (!json.is_object() || json.value(form_.name, RecordReader::Json()) != kVersion) return none;
  const auto list = json.find(form_.list);
  return list != json.end() && list->is_array() ? std::move(*list) : none;
}

void KeptList::WriteList(RecordReader::Json list) const {
  if (!MakeOurFolder(folder_).empty()) return;
  const RecordReader::Json json = {{form_.name, kVersion}, {form_.list, std::move(list)}};
  constexpr auto kReplace = RecordReader::Json::error_handler_t::replace;
  (void)WriteTextFile(folder_ + "/" + form_.file, json.dump(-1, ' ', false, kReplace) + "\n");
}

}  // namespace foretoken::loader
