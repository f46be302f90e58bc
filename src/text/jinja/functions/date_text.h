// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/date_text.h: a date as a text, in English.
#pragma once

#include <ctime>

#include "text/jinja/values/characters.h"

namespace foretoken::text::jinja {

// As strftime() in the C locale: %a %A %b %B %d %e %H %I %j %m %M %p %S %y %Y %-d and other
// numbers without padding, %F %T %D %R %c %x %X %w %u %U %W %h %n %t %%. Others stay as they are.
Characters DateText(CharactersView format, const std::tm& date);

}  // namespace foretoken::text::jinja
