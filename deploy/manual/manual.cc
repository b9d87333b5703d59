// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/manual.h"

#include <algorithm>
#include <string>

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
  for (const ManualEntry& entry : entries) {
    footer += "  " + entry.term +
              std::string(width - entry.term.size() + 2, ' ') + entry.text +
              "\n";
  }
}

// Examples may be long: what they do goes on a line of its own.
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

// What is wrong, unknown words first: for a misspelt option CLI11 reports what
// is missing, and for a misspelt subcommand all words after it.
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

// Where to read on: at the subcommand, if one was called.
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
    footer.pop_back();  // CLI11 ends it itself.
  }
  app.footer(footer);
  app.failure_message([](const CLI::App* program, const CLI::Error& error) {
    const std::string name = program->get_name();
    return PrintableMessage(name + ": " + Complaint(*program, error)) + "\n" +
           HelpHint(*program) + "\n";
  });
  app.set_version_flag("--version", app.get_name() + " " + manual.version,
                       "Print the version and exit");
  // App::exit() prints what CallForVersion carries to standard output, as it
  // is, and gives exit code 0.
  app.add_flag_callback("--man",
                        [&app, manual] {
                          std::string page = RenderManPage(app, manual);
                          page.pop_back();  // exit() ends the line itself.
                          throw CLI::CallForVersion(page, 0);
                        })
      ->trigger_on_parse()
      ->group("");
  app.add_option_function<std::string>(
         "--completion",
         [&app](const std::string& shell) {
           const Shell kind = shell == "bash" ? Shell::kBash : Shell::kZsh;
           std::string script = RenderCompletion(app, kind);
           script.pop_back();
           throw CLI::CallForVersion(script, 0);
         })
      ->check(CLI::IsMember({"bash", "zsh"}))
      ->trigger_on_parse()
      ->group("");
}

}  // namespace quire
