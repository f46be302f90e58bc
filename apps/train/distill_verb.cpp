// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "train/run_flags.h"
#include "train/targets/distill_task.h"
#include "train/verbs.h"

namespace foretoken::train {

using settings::FlagSet;
using settings::StoreInteger;
using settings::StoreText;

int DistillVerb(const Arguments& arguments) {
  TrainingOptions training;
  DistillOptions o;
  FlagSet flags("-train distill --target FILE --text FILE --out FILE --minutes M [flags]",
                "Trains a small draft model that imitates a target.");
  ModelShape& s = o.shape;
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
         StoreDouble(o.samples_temperature, 0, 2)},
        {{"--mix"},
         "A",
         fmt::format("share of the KL to the target in the loss; the rest is cross entropy on the "
                     "text ({})",
                     o.mix),
         StoreDouble(o.mix, 0, 1)}}});
  flags.Add(
      {"Draft",
       {{{"--layers"}, "N", fmt::format("blocks ({})", s.layers), StoreInteger(s.layers, 1, 1000)},
        {{"--width"},
         "N",
         fmt::format("of the residual stream ({})", s.dim),
         StoreInteger(s.dim, 8, 65536)},
        {{"--heads"},
         "N",
         fmt::format("query heads ({})", s.heads),
         StoreInteger(s.heads, 1, 1024)},
        {{"--kv-heads"},
         "N",
         fmt::format("key and value heads ({})", s.kv_heads),
         StoreInteger(s.kv_heads, 1, 1024)},
        {{"--ff"},
         "N",
         fmt::format("width of the feed-forward layer ({})", s.ff),
         StoreInteger(s.ff, 8, 1 << 20)},
        {{"--context"},
         "N",
         "context length that the file states (the target's)",
         StoreInteger(s.context, 8, 1 << 20)},
        {{"--name"}, "TEXT", "general.name", StoreText(o.name)},
        {{"--license"}, "TEXT", "general.license", StoreText(o.license)},
        TypeFlag(o.type)}});
  flags.Add(RunFlags(training));
  return RunTask(flags, arguments, training, [&] { return MakeDistillTask(o, training); });
}

}  // namespace foretoken::train
