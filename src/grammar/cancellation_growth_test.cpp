// SPDX-License-Identifier: Apache-2.0

#include "base/growth_testing.h"
#include "grammar/large_texts_testing.h"

namespace foretoken::grammar {
namespace {

TEST(CancellationGrowth, LittleIsDoneBehindTheAnswer) {
  for (const LargeText& text : LargeTexts())
    ExpectLittleWorkWhenCancelled(text.name, [&] { static_cast<void>(text.compile()); });
}

}  // namespace
}  // namespace foretoken::grammar
