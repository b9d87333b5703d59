// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "deploy/manual/manual.h"
#include "deploy/manual/option_tree.h"

namespace quire {
namespace {

// Text as roff prints it: nothing in it is a request, a hyphen is the one that
// can be typed and searched for.
std::string Escape(const std::string& text) {
  std::string escaped;
  bool at_line_start = true;
  for (const char c : text) {
    if (at_line_start && (c == '.' || c == '\'')) {
      escaped += "\\&";
    }
    at_line_start = c == '\n';
    switch (c) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '"':
        escaped += "\\(dq";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string Bold(const std::string& text) {
  return "\\fB" + Escape(text) + "\\fR";
}

std::string Italic(const std::string& text) {
  return "\\fI" + Escape(text) + "\\fR";
}

void AppendSection(const std::string& title, std::string& page) {
  page += ".SH " + title + "\n";
}

void AppendTerm(const std::string& term, const std::string& text,
                std::string& page) {
  page += ".TP\n" + term + "\n" + Escape(text) + "\n";
}

void AppendOption(const OptionView& option, std::string& page) {
  std::string term;
  if (!option.positional.empty()) {
    term = Italic(option.positional);
  }
  for (const std::string& name : option.names) {
    term += (term.empty() ? "" : ", ") + Bold(name);
  }
  if (option.positional.empty() && !option.value_name.empty()) {
    term += " " + Italic(option.value_name);
  }
  std::string text = option.text;
  if (!text.empty() && text.back() != '.') {
    text += '.';
  }
  if (!option.positional.empty() && !option.values.empty()) {
    text += " One of " + option.value_name + ".";
  }
  if (!option.default_value.empty()) {
    text += " Default: " + option.default_value + ".";
  }
  AppendTerm(term, text, page);
}

std::string Synopsis(const std::string& program, const CommandView& command) {
  std::string line = Bold(program);
  if (!command.options.empty()) {
    line += " [" + Italic("options") + "]";
  }
  for (const OptionView& positional : command.positionals) {
    line += " " + Italic(positional.positional);
  }
  if (!command.subcommands.empty()) {
    line += command.needs_subcommand ? " " + Italic("SUBCOMMAND") + " ..."
                                     : " [" + Italic("SUBCOMMAND") + " ...]";
  }
  return line;
}

void AppendOptions(const CommandView& command, std::string& page) {
  for (const OptionView& positional : command.positionals) {
    AppendOption(positional, page);
  }
  for (const OptionView& option : command.options) {
    AppendOption(option, page);
  }
}

void AppendCommand(const std::string& program, const CommandView& command,
                   std::string& page) {
  page += ".SS \"" + Synopsis(program, command) + "\"\n";
  page += Escape(command.text) + "\n";
  AppendOptions(command, page);
  for (const CommandView& sub : command.subcommands) {
    AppendCommand(program + " " + sub.name, sub, page);
  }
}

void AppendEntries(const std::string& title,
                   const std::vector<ManualEntry>& entries, std::string& page) {
  if (entries.empty()) {
    return;
  }
  AppendSection(title, page);
  for (const ManualEntry& entry : entries) {
    AppendTerm(Bold(entry.term), entry.text, page);
  }
}

void AppendExamples(const std::vector<ManualEntry>& examples,
                    std::string& page) {
  if (examples.empty()) {
    return;
  }
  AppendSection("EXAMPLES", page);
  for (const ManualEntry& example : examples) {
    page += ".PP\n" + Escape(example.text) + "\n.PP\n.RS 4\n.nf\n" +
            Escape(example.term) + "\n.fi\n.RE\n";
  }
}

std::string UpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return text;
}

}  // namespace

std::string RenderManPage(const CLI::App& app, const Manual& manual) {
  const CommandView command = ViewCommand(app);
  std::string page = ".TH " + UpperCase(Escape(command.name)) + " 1 \"\" \"" +
                     Escape(command.name + " " + manual.version) +
                     "\" \"Quire\"\n";
  AppendSection("NAME", page);
  page += Escape(command.name) + " \\- " + Escape(command.text) + "\n";
  AppendSection("SYNOPSIS", page);
  page += Synopsis(command.name, command) + "\n";
  if (!manual.description.empty()) {
    AppendSection("DESCRIPTION", page);
    for (const std::string& paragraph : manual.description) {
      page += ".PP\n" + Escape(paragraph) + "\n";
    }
  }
  AppendSection("OPTIONS", page);
  AppendOptions(command, page);
  if (!command.subcommands.empty()) {
    AppendSection("SUBCOMMANDS", page);
    for (const CommandView& sub : command.subcommands) {
      AppendCommand(command.name + " " + sub.name, sub, page);
    }
  }
  AppendEntries("EXIT STATUS", manual.exit_codes, page);
  AppendEntries("ENVIRONMENT", manual.environment, page);
  AppendExamples(manual.examples, page);
  if (!manual.see_also.empty()) {
    AppendSection("SEE ALSO", page);
    std::string list;
    for (const std::string& other : manual.see_also) {
      list += (list.empty() ? "" : ", ") + other;
    }
    page += Escape(list) + "\n";
  }
  return page;
}

}  // namespace quire
