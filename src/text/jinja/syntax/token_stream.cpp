// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/syntax/token_stream.h"

#include <fmt/format.h>

namespace foretoken::text::jinja {
namespace {

std::string_view NameOf(TokenKind kind) {
  switch (kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kOutputBegin:
      return "{{";
    case TokenKind::kOutputEnd:
      return "}}";
    case TokenKind::kStatementBegin:
      return "{%";
    case TokenKind::kStatementEnd:
      return "%}";
    case TokenKind::kName:
      return "a name";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kSign:
      return "a sign";
    default:
      return "the end of the template";
  }
}

}  // namespace

tl::unexpected<Error> TokenStream::Bad(std::string why) const {
  return Fail(ErrorCode::kInvalidArgument, fmt::format("line {}: {}", line(), why));
}

tl::unexpected<Error> TokenStream::NoStack(std::string_view what) const {
  return Fail(ErrorCode::kTooLarge,
              fmt::format("line {}: {} are so deep inside each other that this thread's stack has "
                          "no room for more; split them, or use a thread with a larger stack",
                          line(), what));
}

tl::unexpected<Error> TokenStream::Unexpected(std::string_view wanted) const {
  const bool worded = IsAt(TokenKind::kName) || IsAt(TokenKind::kSign);
  const std::string found =
      worded ? fmt::format("'{}'", Shown(Current().word)) : std::string(NameOf(Current().kind));
  return Bad(fmt::format("{} stands where {} should be; correct the template", found, wanted));
}

Status TokenStream::ExpectSign(std::string_view sign) {
  if (SkipSign(sign)) return {};
  return Unexpected(fmt::format("'{}'", sign));
}

Status TokenStream::ExpectName(std::string_view name) {
  if (SkipName(name)) return {};
  return Unexpected(fmt::format("'{}'", name));
}

Status TokenStream::Expect(TokenKind kind) {
  if (!IsAt(kind)) return Unexpected(NameOf(kind));
  Take();
  return {};
}

Result<std::string> TokenStream::TakeName() {
  if (!IsAt(TokenKind::kName)) return Unexpected("a name");
  return Take().word;
}

}  // namespace foretoken::text::jinja
