// SPDX-License-Identifier: Apache-2.0
// attack/json_mutator.h: damaged JSON texts, and damaged folders of safetensors files, whose headers
// are JSON texts too.
#pragma once

#include <map>
#include <string>

#include "attack/random.h"

namespace foretoken::attack {

// Changes a value, a name, a part or a byte of the text, and says what.
std::string ChangeJson(Random& random, std::string& text);

// Changes a file of a folder: the JSON of it, the JSON of its header, or bytes of its tensors.
// files: their contents by their names.
std::string ChangeFolder(Random& random, std::map<std::string, std::string>& files);

}  // namespace foretoken::attack
