// SPDX-License-Identifier: Apache-2.0
#include "loader/kept_list.h"

#include "base/files/input_file.h"
#include "base/files/output_file.h"
#include "base/files/own_folder.h"
#include "base/files/text_file.h"
#include "base/json/json_reader.h"

namespace foretoken::loader {
namespace {

constexpr int kVersion = 1;

}  // namespace

Json KeptList::List() const {
  auto none = Json::array();
  if (!WhyNotOurFolder(folder_).empty()) return none;
  const std::string path = folder_ + "/" + form_.file;
  auto file = InputFile::Open(path, {.links = false});
  if (!file || !WhyNotOurs(file->status()).empty()) return none;
  const auto text = ReadDescriptor(file->descriptor(), path, {.most_bytes = form_.most_bytes});
  if (!text) return none;
  const auto json = ReadJson(*text);
  if (!json || json->at(form_.name) != kVersion) return none;
  const Json& list = json->at(form_.list);
  return list.is_array() ? list : none;
}

void KeptList::WriteList(Json list) const {
  if (!MakeOurFolder(folder_).empty()) return;
  const Json json = {{form_.name, kVersion}, {form_.list, std::move(list)}};
  // Whatever the umask: what others may write to is not read.
  auto file = OutputFile::Create(folder_ + "/" + form_.file, {.mode = 0600});
  if (file && file->Append(json.dump() + "\n")) (void)file->Publish();
}

}  // namespace foretoken::loader
