// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/manual.h"

#include <algorithm>
#include <iostream>
#include <string>

#include "absl/strings/str_split.h"

#include "codecs/base/help_formatter.h"
#include "codecs/base/printable_text.h"

namespace quire {
namespace {

void AppendHelpList(const std::string& title,
                    const std::vector<ManualEntry>& entries,
                    std::string& footer) {
  if (entries.empty()) {
    return;
  }
  size_t width = 0;
  for (const ManualEntry& entry : entries) {
    width = std::max(width, entry.term.size());
  }
  footer += (footer.empty() ? "" : "\n") + title + ":\n";
  const size_t indent = width + 4;
  for (const ManualEntry& entry : entries) {
    footer += "  " + entry.term +
              std::string(width - entry.term.size() + 2, ' ') +
              FoldText(entry.text,
                       kHelpColumns - std::min(kHelpColumns, indent), indent) +
              "\n";
  }
}

// Examples may be long: their purpose has its own line.
void AppendHelpExamples(const std::vector<ManualEntry>& examples,
                        std::string& footer) {
  if (examples.empty()) {
    return;
  }
  footer += footer.empty() ? "Examples:\n" : "\nExamples:\n";
  for (const ManualEntry& example : examples) {
    footer += "  # " + example.text + "\n  " + example.term + "\n";
  }
}

// "get, completion"
std::string SubcommandNames(const CLI::App& app) {
  std::string names;
  for (const CLI::App* subcommand : app.get_subcommands(nullptr)) {
    if (!subcommand->get_group().empty()) {
      names += (names.empty() ? "" : ", ") + subcommand->get_name();
    }
  }
  return names;
}

// The error, unknown words first. CLI11 reports a missing option for a misspelt
// one, and all later words for a misspelt subcommand.
std::string Complaint(const CLI::App& app, const CLI::Error& error) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) {
    return app.get_subcommands().empty() &&
                   app.get_require_subcommand_min() > 0 &&
                   dynamic_cast<const CLI::RequiredError*>(&error) != nullptr
               ? "a subcommand must be given: " + SubcommandNames(app)
               : error.what();
  }
  for (const std::string& word : unknown) {
    if (word.size() > 1 && word.front() == '-') {
      return "unknown option \"" + word + "\"";
    }
  }
  if (app.get_subcommands(nullptr).empty() || !app.get_subcommands().empty()) {
    return "unexpected argument \"" + unknown.front() + "\"";
  }
  return "the subcommand must be one of " + SubcommandNames(app) + ", got \"" +
         unknown.front() + "\"";
}

// The help to read: of the subcommand, if one was called.
std::string HelpHint(const CLI::App& app) {
  const std::vector<CLI::App*> called = app.get_subcommands();
  if (!called.empty()) {
    return "Try '" + app.get_name() + " " + called.front()->get_name() +
           " --help'.";
  }
  const bool has_subcommands = !app.get_subcommands(nullptr).empty();
  return "Try '" + app.get_name() + " --help'" +
         (has_subcommands ? ", or --help after a subcommand." : ".");
}

}  // namespace

void AttachManual(CLI::App& app, const Manual& manual) {
  std::string footer;
  AppendHelpList("Exit codes", manual.exit_codes, footer);
  AppendHelpList("Environment", manual.environment, footer);
  AppendHelpExamples(manual.examples, footer);
  if (!footer.empty()) {
    footer.pop_back();  // CLI11 adds the line end.
  }
  app.footer(footer);
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    const std::string name = program->get_name();
    return PrintableMessage(name + ": " + Complaint(*program, error)) + "\n" +
           HelpHint(*program) + "\n";
  });
  app.set_version_flag("--version", app.get_name() + " " + manual.version,
                       "Print the version and exit");
  app.set_help_all_flag("--help-all",
                        "Print the help of all subcommands and exit")
      ->group(app.get_subcommands(nullptr).empty() ? "" : "Options");
  // App::exit() prints the text of CallForVersion to standard output,
  // unchanged, and returns exit code 0.
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string& shell) {
           std::string script = CompletionScript(app.get_name(), shell);
           script.pop_back();  // exit() adds the line end.
           throw CLI::CallForVersion(script, 0);
         },
         "Print a script that makes the shell complete command lines, and exit")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->trigger_on_parse();
  // Runs after the options before it are read, also from the environment.
  app.add_option_function<std::string>(
         "--complete",
         [&app, manual](const std::string& words) {
           for (const std::string& word : CompleteWords(
                    app, absl::StrSplit(words, '\n'), manual.word_source)) {
             std::cout << word << "\n";
           }
           throw CLI::Success();
         })
      ->group("");
}

}  // namespace quire
