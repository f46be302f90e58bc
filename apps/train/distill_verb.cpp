// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "foretoken/option_keys.h"
#include "train/run_flags.h"
#include "train/targets/distill_task.h"
#include "train/verbs.h"

namespace foretoken::train {

using settings::Flag;
using settings::FlagSet;
using settings::StoreInteger;
using settings::StoreText;

int DistillVerb(const Arguments& arguments) {
  TrainingOptions training;
  DistillOptions o;
  constexpr NumberRange temperature = FlagRange("temperature");
  FlagSet flags("-train distill --target FILE --text FILE --out FILE --minutes M [flags]",
                "Trains a small draft model that imitates a target.");
  flags.Add(
      {"Target and text",
       {{{"--target"}, "FILE", "the GGUF model that the draft imitates", StoreText(o.target)},
        {{"--text"}, "FILE[:SHARE]", "UTF-8 text, and its share of the rows", Append(o.text), true},
        {{"--held-out"}, "FILE", "text that is only measured on", Append(o.held_out), true},
        {{"--samples"},
         "N",
         "also let the target write N tokens, into OUT.samples.txt; half of the rows are of them",
         StoreInteger(o.samples, 0, 2'000'000'000)},
        {{"--samples-temp"},
         "T",
         fmt::format("temperature of these ({})", o.samples_temperature),
         StoreDouble(o.samples_temperature, temperature.least, temperature.most)},
        {{"--mix"},
         "A",
         fmt::format("share of the KL to the target in the loss; the rest is cross entropy on the "
                     "text ({})",
                     o.mix),
         StoreDouble(o.mix, 0, 1)}}});
  std::vector<Flag> draft = ShapeFlags(o.shape);
  draft.push_back({{"--name"}, "TEXT", "general.name", StoreText(o.name)});
  draft.push_back({{"--license"}, "TEXT", "general.license", StoreText(o.license)});
  draft.push_back(TypeFlag(o.type));
  flags.Add({"Draft", std::move(draft)});
  flags.Add(RunFlags(training));
  return RunTask(flags, arguments, training, [&] { return MakeDistillTask(o, training); });
}

}  // namespace foretoken::train
