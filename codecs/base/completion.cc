// SPDX-License-Identifier: Apache-2.0
#include "codecs/base/completion.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace quire {
namespace {

// Bash splits words at colons, but the program needs whole words: the script
// splits the line itself, and removes the text up to the last colon from each
// answer.
constexpr char kBashScript[] = R"(# bash completion for PROGRAM
FUNCTION() {
  local given line=${COMP_LINE:0:COMP_POINT} cut= tab=$'\t'
  read -ra given <<<"$line"
  [[ $line == *[[:space:]] ]] && given+=('')
  local last=${given[${#given[@]}-1]}
  [[ $COMP_WORDBREAKS == *:* && $last == *:* ]] && cut=${last%"${last##*:}"}
  local IFS=$'\n'
  mapfile -t COMPREPLY < <(PROGRAM --complete "${given[*]}" 2>/dev/null)
  COMPREPLY=("${COMPREPLY[@]%%"$tab"*}")
  COMPREPLY=("${COMPREPLY[@]#"$cut"}")
}
complete -o default -o filenames -F FUNCTION PROGRAM
)";

constexpr char kZshScript[] = R"(#compdef PROGRAM
FUNCTION() {
  local tab=$'\t'
  local -a lines offered shown
  lines=("${(@f)$(PROGRAM --complete "${(pj:\n:)words[1,CURRENT]}" 2>/dev/null)}")
  [[ -n $lines[1] ]] || { _files; return }
  offered=("${(@)lines%%${tab}*}")
  shown=("${(@)lines/${tab}/  -- }")
  compadd -ld shown -a offered
}
if [[ $funcstack[1] == FUNCTION ]]; then
  FUNCTION "$@"
else
  compdef FUNCTION PROGRAM
fi
)";

// Name of a check that accepts everything and holds the values of
// OfferValues().
constexpr char kOfferPrefix[] = "offer ";

std::vector<std::string> OfferedValues(const CLI::Option& option) {
  // get_validator() is not const, though it changes nothing.
  auto& same = const_cast<CLI::Option&>(option);
  for (int i = 0;; ++i) {
    try {
      const CLI::Validator& check = *same.get_validator(i);
      if (absl::StartsWith(check.get_name(), kOfferPrefix)) {
        return absl::StrSplit(check.get_name().substr(sizeof(kOfferPrefix) - 1),
                              ' ');
      }
      // CLI::IsMember describes itself as "{bash,zsh}".
      const std::string text = check.get_description();
      if (text.size() > 2 && text.front() == '{' && text.back() == '}') {
        return absl::StrSplit(text.substr(1, text.size() - 2), ',');
      }
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
  }
}

// The app itself, and its parents whose options may follow its name.
std::vector<const CLI::App*> WithParents(const CLI::App* app) {
  std::vector<const CLI::App*> apps = {app};
  while (app->get_fallthrough() && app->get_parent() != nullptr) {
    app = app->get_parent();
    apps.push_back(app);
  }
  return apps;
}

const CLI::App* FindSubcommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* subcommand : app.get_subcommands({})) {
    if (subcommand->get_name() == name) {
      return subcommand;
    }
  }
  return nullptr;
}

const CLI::Option* FindOption(const CLI::App* app, const std::string& name) {
  for (const CLI::App* one : WithParents(app)) {
    if (const CLI::Option* option = one->get_option_no_throw(name)) {
      return option;
    }
  }
  return nullptr;
}

// The end of a command line, which decides what may follow.
struct CommandLineEnd {
  const CLI::App* command = nullptr;
  // Set if its value is expected.
  const CLI::Option* option = nullptr;
  bool options_ended = false;
  TypedWords typed;
};

CommandLineEnd Follow(const CLI::App& app,
                      const std::vector<std::string>& words) {
  CommandLineEnd end;
  end.command = &app;
  end.typed.last = words.back();
  for (size_t i = 1; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (end.option != nullptr) {
      end.typed.values[end.option->get_single_name()] = word;
      end.option = nullptr;
    } else if (end.options_ended || word.size() < 2 || word[0] != '-') {
      const CLI::App* subcommand = end.typed.positionals.empty()
                                       ? FindSubcommand(*end.command, word)
                                       : nullptr;
      if (subcommand != nullptr) {
        end.command = subcommand;
      } else {
        end.typed.positionals.push_back(word);
      }
    } else if (word == "--") {
      end.options_ended = true;
    } else {
      const size_t equals = word.find('=');
      const CLI::Option* option =
          FindOption(end.command, word.substr(0, equals));
      if (option == nullptr || option->get_items_expected_max() == 0) {
        continue;
      }
      if (equals == word.npos) {
        end.option = option;
      } else {
        end.typed.values[option->get_single_name()] = word.substr(equals + 1);
      }
    }
  }
  return end;
}

std::vector<std::string> OptionNames(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::App* app : WithParents(command)) {
    for (const CLI::Option* option : app->get_options()) {
      // --help and --version belong to the command before them.
      if (option->get_group().empty() ||
          (app != command && (option == app->get_help_ptr() ||
                              option == app->get_help_all_ptr() ||
                              option == app->get_version_ptr()))) {
        continue;
      }
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name + "\t" + option->get_description());
      }
      for (const std::string& name : option->get_snames()) {
        names.push_back("-" + name + "\t" + option->get_description());
      }
    }
  }
  return names;
}

// Returns the positional after those typed; null if there is none.
const CLI::Option* NextPositional(const CommandLineEnd& end) {
  size_t index = 0;
  for (const CLI::Option* option : end.command->get_options()) {
    if (option->get_positional() && (index++ == end.typed.positionals.size() ||
                                     option->get_expected_max() > 1)) {
      return option;
    }
  }
  return nullptr;
}

std::vector<std::string> NextWords(CommandLineEnd& end,
                                   const WordSource& source) {
  if (end.option != nullptr) {
    return OfferedValues(*end.option);
  }
  if (!end.options_ended && absl::StartsWith(end.typed.last, "-")) {
    return OptionNames(end.command);
  }
  std::vector<std::string> words;
  if (end.typed.positionals.empty()) {
    for (const CLI::App* subcommand : end.command->get_subcommands({})) {
      if (!subcommand->get_group().empty()) {
        words.push_back(subcommand->get_name() + "\t" +
                        subcommand->get_description());
      }
    }
  }
  const CLI::Option* positional = NextPositional(end);
  if (words.empty() && positional != nullptr) {
    words = OfferedValues(*positional);
    if (words.empty() && source != nullptr) {
      end.typed.positional = positional->get_name(true);
      words = source(end.typed);
    }
  }
  return words;
}

}  // namespace

void OfferValues(CLI::Option& option, const std::vector<std::string>& values) {
  option.check(CLI::Validator([](std::string&) { return std::string(); }, "",
                              kOfferPrefix + absl::StrJoin(values, " ")));
}

std::vector<std::string> CompleteWords(const CLI::App& app,
                                       const std::vector<std::string>& words,
                                       const WordSource& source) {
  if (words.size() < 2) {
    return {};
  }
  CommandLineEnd end = Follow(app, words);
  std::vector<std::string> offered = NextWords(end, source);
  offered.erase(std::remove_if(offered.begin(), offered.end(),
                               [&end](const std::string& word) {
                                 return !absl::StartsWith(word, end.typed.last);
                               }),
                offered.end());
  return offered;
}

std::string CompletionScript(const std::string& program,
                             const std::string& shell) {
  // A function's name cannot have dashes.
  const std::string function = "_" + absl::StrReplaceAll(program, {{"-", "_"}});
  return absl::StrReplaceAll(shell == "bash" ? kBashScript : kZshScript,
                             {{"PROGRAM", program}, {"FUNCTION", function}});
}

}  // namespace quire
