// SPDX-License-Identifier: Apache-2.0
// loader/drafts/companions.h: files beside a model whose names say that they draft for one. Whether
// they fit the model is decided by what they hold (draft_files.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace foretoken::loader {

struct Companions {
  std::vector<std::string> paths;    // of files and model folders, in the order of their names
  std::vector<std::string> notices;  // what of the folder was not looked at, and why
};

// The name of a file or folder has a drafter's name in it: "mtp-tales.gguf", "Tales-EAGLE3.gguf",
// "tales-1m-draft". `file` is a name without a folder.
bool NamesADrafter(std::string_view file);
// It says that a whole model drafts, which a head's name does not.
bool NamesADraftModel(std::string_view file);

// Looks into the folder of the model's file, and where the file is a link, also into the folder that it
// points to; of a model folder, into the folder itself. Folders below are not searched, but model
// folders in it count. The model itself, other parts of split files and second names of one file are
// left out. Opens no file.
Companions FindCompanions(const std::string& model);

}  // namespace foretoken::loader
