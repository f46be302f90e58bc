// SPDX-License-Identifier: Apache-2.0
// calls/call_format.h: the forms in which models write calls of tools.
//
// A family of models was trained on one form, and its chat template writes calls of earlier turns
// in it. A form has a grammar, which holds calls to the tools' schemas and leaves other text free, and
// a reader, which takes them out of an answer while it is made. Each form is a row and has its own
// file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "calls/control_tokens.h"
#include "calls/tool_use.h"
#include "foretoken/result.h"

namespace foretoken::calls {

// Whether what an answer goes on with is a thought.
enum class Thinking {
  kNever,  // nor is anything behind it
  kLater,  // not now
  kNow     // its marks are part of it
};

// Reads one answer. What is no call is text, but for the marks around calls and what an answer's end
// leaves of another call that has no name yet.
class CallReader {
 public:
  virtual ~CallReader() = default;
  // The next piece of the answer, however it is divided. Adds what is certain by now: text that may
  // yet be the beginning of a call waits.
  virtual void Read(std::string_view text, std::vector<AnswerPart>& parts) = 0;
  // The answer has ended.
  virtual void End(std::vector<AnswerPart>& parts) = 0;
  // Readers that find thoughts say so.
  virtual Thinking thinking() const { return Thinking::kNever; }
};

// GBNF of whole answers.
struct AnswerGrammar {
  std::string gbnf;
  // Tools whose schema is not followed, each with the reason: their arguments are any object.
  std::vector<std::string> notices = {};
};

// The ids of calls that a template takes.
enum class CallIds {
  kAny,
  kNineLetters,     // nine letters and digits
  kFunctionNumber,  // functions.NAME:n, where n counts a conversation's calls
};

struct CallFormat {
  std::string_view name, help;
  // Every answer has the form, not only those with calls: the reader divides thoughts, too, and the
  // grammar takes a use without tools.
  bool whole = false;
  CallIds ids = CallIds::kAny;
  // Whether a template that wrote the probe (below) in this way uses this form.
  bool (*wrote)(std::string_view conversation);
  // The tools must outlive the reader.
  std::unique_ptr<CallReader> (*reader)(const std::vector<Tool>& tools,
                                        const ControlTokens& control);
  // Errors: kTooLarge.
  Result<AnswerGrammar> (*grammar)(const ToolUse& use, const ControlTokens& control);
};

// The first one is used where a template knows no tools.
std::span<const CallFormat* const> CallFormats();

// A conversation in which a tool is called, to see how a template writes it; JSON as ChatOptions and
// ChatMessage have it.
inline constexpr std::string_view kProbeTool = "probe_tool", kProbeKey = "probe_key",
                                  kProbeValue = "probe value";
std::string ProbeToolsJson();
std::string ProbeCallsJson();

// The form that a template uses, from what it wrote of the probe. Null: none that is known.
const CallFormat* FormatOf(std::string_view conversation);

}  // namespace foretoken::calls
