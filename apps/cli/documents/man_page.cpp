// SPDX-License-Identifier: Apache-2.0
#include "cli/documents/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "foretoken/catalogue.h"

namespace foretoken::cli {
namespace {

// Escapes the text for roff: hyphens can be copied, and no line looks like a request.
std::string Escaped(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Heading(std::string_view page) {
  std::string name(page);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  // No hyphenation and no stretched lines, so that flags can be copied.
  return fmt::format(".TH {} 1 \"\" \"foretoken {}\" \"foretoken\"\n.nh\n.ad l\n", Escaped(name),
                     kVersion);
}

// "-m, --model PATH" in bold and italics.
std::string Names(const settings::Flag& flag) {
  std::string out;
  for (const std::string& name : flag.names)
    out += fmt::format("{}\\fB{}\\fR", out.empty() ? "" : ", ", Escaped(name));
  if (!flag.value.empty()) out += fmt::format(" \\fI{}\\fR", Escaped(flag.value));
  return out;
}

// Helps are parts of sentences; this makes them whole sentences.
std::string Sentence(std::string text) {
  if (text.empty()) return text;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text.ends_with('.') ? text : text + '.';
}

std::string Item(const std::string& term, const std::string& text) {
  return fmt::format(".TP\n{}\n{}\n", term, Escaped(text));
}

std::string Examples(const std::vector<std::string>& commands) {
  if (commands.empty()) return "";
  std::string out = ".SH EXAMPLES\n.nf\n";
  for (const std::string& command : commands) out += Escaped(command) + '\n';
  return out + ".fi\n";
}

std::string ExitStatus() {
  return ".SH EXIT STATUS\n" + Item("0", "Done.") +
         Item("1", "It failed; one line on standard error says what, why, and what to do.") +
         Item("2", "A flag or an argument is wrong.") + Item("130", "Interrupted by Ctrl-C.");
}

}  // namespace

std::string ProgramManPage() {
  std::string out = Heading("foretoken");
  out += ".SH NAME\nforetoken \\- language models on the CPU, faster by speculative decoding\n";
  out += ".SH SYNOPSIS\n\\fBforetoken\\fR \\fIVERB\\fR [\\fIflags\\fR]\n";
  out +=
      ".SH DESCRIPTION\nforetoken runs language models (GGUF files) on the CPU. A small, fast "
      "model "
      "drafts, and the large one checks several drafted tokens at a time: the same text, "
      "sooner.\n";
  out += ".SH VERBS\n";
  for (const Verb* const verb : Verbs())
    out +=
        Item(fmt::format("\\fB{}\\fR", Escaped(verb->name)), Sentence(std::string(verb->summary)));
  out += ".SH OPTIONS\n" + Item("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "List the verbs.") +
         Item("\\fB\\-V\\fR, \\fB\\-\\-version\\fR", "Print the version.");
  out += Examples({"foretoken generate -p \"Once upon a time\" --trace",
                   "foretoken inspect model.gguf", "foretoken help generate --all"});
  out += ExitStatus() + ".SH SEE ALSO\n";
  std::string pages;
  for (const Verb* const verb : Verbs())
    pages +=
        fmt::format("{}\\fBforetoken\\-{}\\fR(1)", pages.empty() ? "" : ",\n", Escaped(verb->name));
  return out + pages + '\n';
}

std::string VerbManPage(const Verb& verb) {
  const settings::FlagSet flags = verb.describe();
  const std::string page = fmt::format("foretoken-{}", verb.name);
  std::string out = Heading(page);
  out += fmt::format(".SH NAME\n{} \\- {}\n", Escaped(page), Escaped(verb.summary));
  out += fmt::format(".SH SYNOPSIS\n\\fBforetoken {}\\fR{}\n", Escaped(verb.name),
                     Escaped(flags.synopsis().substr(verb.name.size())));
  out += ".SH DESCRIPTION\n" + Escaped(flags.description()) + '\n';
  out += ".SH OPTIONS\n";
  for (const settings::FlagGroup& group : flags.groups()) {
    if (flags.groups().size() > 1) out += fmt::format(".SS {}\n", Escaped(group.title));
    for (const settings::Flag& flag : group.flags) out += Item(Names(flag), Sentence(flag.help));
  }
  if (flags.groups().size() > 1) out += ".SS Help\n";
  out += Item("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Print a help with the most used flags.") +
         Item("\\fB\\-\\-help\\-all\\fR", "Print a help with all flags.");
  out += Examples(flags.examples());
  if (!flags.environment().empty())
    out += ".SH ENVIRONMENT\n" + Escaped(Sentence(flags.environment())) + '\n';
  return out + ExitStatus() + ".SH SEE ALSO\n\\fBforetoken\\fR(1)\n";
}

}  // namespace foretoken::cli
