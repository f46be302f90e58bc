// SPDX-License-Identifier: Apache-2.0
#include "server/api/plain_replies.h"

#include <algorithm>
#include <utility>

#include "foretoken/catalogue.h"
#include "server/api/object_text.h"

namespace foretoken::server {
namespace {}  // namespace

std::string ErrorJson(const ApiError& error) {
  return OneLine(Json{{"error",
                       {{"message", error.message},
                        {"type", error.type},
                        {"param", NullIfEmpty(error.param)},
                        {"code", NullIfEmpty(error.code)}}}});
}

LongText TokensText(std::vector<std::int32_t> tokens, PieceOf piece) {
  LongText text;
  text.Add("{\"tokens\":");
  const std::size_t n = tokens.size();
  text.AddList(
      n, [tokens = std::move(tokens), piece = std::move(piece)](std::size_t i, std::string& out) {
        const std::int32_t id = tokens[i];
        out += piece ? OneLine(Json{{"id", id}, {"piece", piece(id)}}) : std::to_string(id);
      });
  text.Add("}");
  return text;
}

// Never cuts a character in two, whatever else the bytes are.
LongText NamedText(std::string_view name, std::string content) {
  constexpr std::size_t kPart = 16 << 10;
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::vector<std::size_t> ends;
  for (std::size_t end = 0; end < content.size(); ends.push_back(end)) {
    end = std::min(end + kPart, content.size());
    for (int i = 0; i < 3 && end < content.size() && continues(content[end]); ++i) ++end;
  }
  LongText text;
  text.Add("{\"" + std::string(name) + "\":\"");
  const std::size_t n = ends.size();
  text.AddEach(n, [content = std::move(content), ends = std::move(ends)](std::size_t i,
                                                                         std::string& out) {
    const std::size_t begin = i == 0 ? 0 : ends[i - 1];
    const std::string quoted = QuotedJson(std::string_view(content).substr(begin, ends[i] - begin));
    out.append(quoted, 1, quoted.size() - 2);
  });
  text.Add("\"}");
  return text;
}

std::string HealthJson(bool draining, AsyncLoad load, const Overload& overload,
                       const Status& files) {
  Json json = {{"status", !files     ? "error"
                          : draining ? "draining"
                                     : "ok"},
               {"running", load.running},
               {"waiting", load.waiting},
               {"overload", Name(overload.state())},
               {"memory",
                {{"limit_bytes", overload.plan().ceiling},
                 {"resident_bytes", overload.resident()},
                 {"requests_bytes", overload.held()}}}};
  if (!files) json["error"] = files.error().message;
  return OneLine(json);
}

std::string VersionJson() {
  return OneLine(Json{{"version", kVersion}});
}

}  // namespace foretoken::server
