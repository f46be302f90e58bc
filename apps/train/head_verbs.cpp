// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "train/heads/head_task.h"
#include "train/run_flags.h"
#include "train/verbs.h"

namespace foretoken::train {
namespace {

using settings::Flag;
using settings::FlagGroup;
using settings::FlagSet;
using settings::StoreInteger;
using settings::StoreText;

FlagGroup TextFlags(HeadOptions& o) {
  return {"Target and text",
          {{{"--target"}, "FILE", "the GGUF model that the head drafts for", StoreText(o.target)},
           {{"--text"},
            "FILE[:SHARE]",
            "UTF-8 text, and its share of the rows; text that the target wrote is best",
            Append(o.text),
            true},
           {{"--held-out"}, "FILE", "text that is only measured on", Append(o.held_out), true}}};
}

Flag UnrollFlag(HeadOptions& o) {
  return {{"--unroll"},
          "N",
          fmt::format("steps in which the head reads its own drafts in training ({})", o.unroll),
          StoreInteger(o.unroll, 1, 16)};
}

Flag LayersReadFlag(HeadOptions& o) {
  return {{"--layers-read"},
          "L0,L1,...",
          "the blocks of the target whose inputs are read (three: low, middle, high)",
          StoreNumbers(o.layers)};
}

// Flags of heads with blocks of their own shape.
std::vector<Flag> SizeFlags(HeadOptions& o) {
  return {{{"--heads"}, "N", "query heads (as the target)", StoreInteger(o.heads, 1, 1024)},
          {{"--kv-heads"},
           "N",
           "key and value heads (as the target)",
           StoreInteger(o.kv_heads, 1, 1024)},
          {{"--ff"},
           "N",
           "width of the feed-forward layer (as the target)",
           StoreInteger(o.ff, 8, 1 << 20)}};
}

std::vector<Flag> HeadFlags(HeadOptions& o) {
  return {{{"--decay"},
           "D",
           fmt::format("weight of a step against the one before ({})", o.decay),
           StoreDouble(o.decay, 0.01, 10)},
          {{"--name"}, "TEXT", "general.name", StoreText(o.name)},
          {{"--license"}, "TEXT", "general.license", StoreText(o.license)},
          TypeFlag(o.type)};
}

int RunHeadVerb(FlagSet& flags, const Arguments& arguments, HeadOptions& options) {
  TrainingOptions training;
  flags.Add(RunFlags(training));
  return RunTask(flags, arguments, training, [&] { return MakeHeadTask(options, training); });
}

}  // namespace

int EagleVerb(const Arguments& arguments) {
  HeadOptions o;
  o.kind = TrainedHead::kEagle;
  FlagSet flags("-train eagle --target FILE --text FILE --out FILE --steps N [flags]",
                "Trains an EAGLE-3 head: one block that drafts from what the target computed.");
  flags.Add(TextFlags(o));
  std::vector<Flag> head = {
      LayersReadFlag(o),
      {{"--draft-vocabulary"},
       "N",
       "draft the N most frequent tokens of the text alone, with an output head of its own (0: "
       "all)",
       StoreInteger(o.draft_vocabulary, 0, 1 << 24)},
      UnrollFlag(o)};
  for (Flag& flag : SizeFlags(o)) head.push_back(std::move(flag));
  for (Flag& flag : HeadFlags(o)) head.push_back(std::move(flag));
  flags.Add({"Head", std::move(head)});
  return RunHeadVerb(flags, arguments, o);
}

int MtpVerb(const Arguments& arguments) {
  HeadOptions o;
  o.kind = TrainedHead::kMtp;
  FlagSet flags(
      "-train mtp --target FILE --text FILE --out FILE --steps N [flags]",
      "Trains an MTP head: one more block of the target that drafts from its last state.");
  flags.Add(TextFlags(o));
  std::vector<Flag> head = {{{"--into"},
                             "FILE",
                             "also write a copy of the target that holds the head",
                             StoreText(o.into)},
                            UnrollFlag(o)};
  for (Flag& flag : HeadFlags(o)) head.push_back(std::move(flag));
  flags.Add({"Head", std::move(head)});
  return RunHeadVerb(flags, arguments, o);
}

int BlockVerb(const Arguments& arguments) {
  HeadOptions o;
  o.kind = TrainedHead::kBlock;
  FlagSet flags("-train block --target FILE --text FILE --out FILE --steps N [flags]",
                "Trains a block drafter (DFlash): a few layers that draft several tokens in one "
                "pass, from what the target computed.");
  flags.Add(TextFlags(o));
  std::vector<Flag> head = {LayersReadFlag(o),
                            {{"--layers"},
                             "N",
                             fmt::format("layers of the drafter ({})", o.blocks),
                             StoreInteger(o.blocks, 1, 64)},
                            {{"--block-size"},
                             "N",
                             fmt::format("tokens that it reads at once: the newest one, and a mask "
                                         "for each draft ({})",
                                         o.block_size),
                             StoreInteger(o.block_size, 2, 64)},
                            {{"--mask"},
                             "TOKEN",
                             "the number of the token that serves as mask (the tokenizer's mask, "
                             "padding or unknown token)",
                             StoreInteger(o.mask, 0, 1 << 24)}};
  for (Flag& flag : SizeFlags(o)) head.push_back(std::move(flag));
  for (Flag& flag : HeadFlags(o)) head.push_back(std::move(flag));
  flags.Add({"Drafter", std::move(head)});
  return RunHeadVerb(flags, arguments, o);
}

}  // namespace foretoken::train
