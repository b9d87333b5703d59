// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "deploy/manual/manual.h"
#include "deploy/manual/option_tree.h"

namespace quire {
namespace {

std::string Join(const std::vector<std::string>& words,
                 const std::string& separator) {
  std::string joined;
  for (const std::string& word : words) {
    joined += (joined.empty() ? "" : separator) + word;
  }
  return joined;
}

// "_quire" for "quire"; dashes are no part of a function's name.
std::string FunctionName(const std::string& program) {
  std::string name = "_" + program;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string> Names(const std::vector<CommandView>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandView& command : commands) {
    names.push_back(command.name);
  }
  return names;
}

// All that may be given after the command's name.
std::vector<OptionView> AllOptions(const CommandView& command) {
  std::vector<OptionView> options = command.options;
  options.insert(options.end(), command.inherited.begin(),
                 command.inherited.end());
  return options;
}

// Texts inside single quotes: the quote itself leaves them for a moment.
std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

// --- bash

// One line of "case $subcommand:$previous" for each option that takes a value.
void AppendBashValues(const CommandView& command, const std::string& subcommand,
                      std::string& script) {
  for (const OptionView& option : AllOptions(command)) {
    if (option.value_name.empty()) {
      continue;
    }
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) {
      patterns.push_back(absl::StrCat("'", subcommand, ":", name, "'"));
    }
    script +=
        "    " + Join(patterns, "|") + ") COMPREPLY=($(compgen " +
        (option.offered.empty() ? std::string("-f")
                                : "-W '" + Join(option.offered, " ") + "'") +
        " -- \"$current\")); return ;;\n";
  }
}

// One line of "case $subcommand": what may come next.
void AppendBashWords(const CommandView& command, const std::string& subcommand,
                     std::string& script) {
  std::vector<std::string> options;
  std::vector<std::string> words = Names(command.subcommands);
  for (const OptionView& option : AllOptions(command)) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  for (const OptionView& positional : command.positionals) {
    words.insert(words.end(), positional.offered.begin(),
                 positional.offered.end());
  }
  script += "    '" + subcommand + "') options='" + Join(options, " ") +
            "' words='" + Join(words, " ") + "' ;;\n";
}

// Bash takes a colon for the end of a word, and the line as it was typed knows
// better.
constexpr char kBashWords[] = R"(  local -a given
  if [[ -n ${COMP_LINE-} ]]; then
    local line=${COMP_LINE:0:COMP_POINT}
    read -ra given <<<"$line"
    [[ $line == *[[:space:]] ]] && given+=('')
  else
    given=("${COMP_WORDS[@]:0:COMP_CWORD+1}")
  fi
  local last=$((${#given[@]} - 1))
  local current=${given[last]} previous=${given[last-1]-}
  local typed=
  [[ $COMP_WORDBREAKS == *:* && $current == *:* ]] && typed=${current%"${current##*:}"}
)";

// COMPREPLY has whole words; bash wants what follows the last colon.
constexpr char kBashEnd[] =
    R"(  [[ -z $typed ]] || COMPREPLY=("${COMPREPLY[@]#"$typed"}")
}
)";

std::string RenderBash(const CommandView& program, bool asks) {
  const std::string function = FunctionName(program.name);
  std::vector<std::string> with_value;
  for (const OptionView& option : program.options) {
    if (!option.value_name.empty()) {
      with_value.insert(with_value.end(), option.names.begin(),
                        option.names.end());
    }
  }
  std::string script = "# bash completion of " + program.name +
                       "; source it, or install it in\n"
                       "# /usr/share/bash-completion/completions/\n" +
                       function + "() {\n" + kBashWords +
                       R"(  local subcommand= options= words= i
  for ((i = 1; i < last; ++i)); do
    case ${given[i]} in
)";
  if (!with_value.empty()) {
    script += "      " + Join(with_value, "|") + ") ((++i)) ;;\n";
  }
  script +=
      "      -*) ;;\n      *) subcommand=${given[i]}; break ;;\n"
      "    esac\n  done\n  case $subcommand:$previous in\n";
  AppendBashValues(program, "", script);
  for (const CommandView& command : program.subcommands) {
    AppendBashValues(command, command.name, script);
  }
  script += "  esac\n  case $subcommand in\n";
  AppendBashWords(program, "", script);
  for (const CommandView& command : program.subcommands) {
    AppendBashWords(command, command.name, script);
  }
  script += R"(  esac
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
)";
  if (asks) {
    script += "    mapfile -t COMPREPLY < <(" + program.name + " " +
              kCompleteWords + " -- \"${given[@]}\" 2>/dev/null)\n" +
              "    ((${#COMPREPLY[@]})) ||\n      ";
  } else {
    script += "    ";
  }
  return script + "COMPREPLY=($(compgen -f -- \"$current\"))\n  fi\n" +
         kBashEnd + "complete -o filenames -F " + function + " " +
         program.name + "\n";
}

// --- zsh

// Text inside a specification of _arguments or _describe.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

std::string ZshAction(const OptionView& option, const std::string& otherwise) {
  return option.offered.empty() ? otherwise
                                : "(" + Join(option.offered, " ") + ")";
}

void AppendZshSpecs(const CommandView& command, const std::string& indent,
                    bool asks, std::string& script) {
  for (const OptionView& option : AllOptions(command)) {
    const std::string value = option.value_name.empty()
                                  ? ""
                                  : ":" + ZshText(option.value_name) + ":" +
                                        ZshAction(option, "_files");
    for (const std::string& name : option.names) {
      script += " \\\n" + indent +
                Quote(absl::StrCat("(", Join(option.names, " "), ")", name, "[",
                                   ZshText(option.text), "]", value));
    }
  }
  for (const OptionView& positional : command.positionals) {
    const bool repeats = positional.positional.find("...") != std::string::npos;
    script += " \\\n" + indent +
              Quote(std::string(repeats ? "*" : "") + ":" +
                    ZshText(positional.positional) + ":" +
                    ZshAction(positional, asks ? "_offered_words" : "_files"));
  }
}

// Of the words that the program offers; _arguments takes away from `words` what
// it has understood.
std::string ZshAsking(const std::string& program) {
  return R"(  local -a given=("${(@)words[1,CURRENT]}") offered
  _offered_words() {
    offered=("${(@f)$()" +
         program + " " + kCompleteWords +
         R"( -- "${given[@]}" 2>/dev/null)}")
    [[ -n $offered[1] ]] && compadd -- "${offered[@]}" || _files
  }
)";
}

std::string RenderZsh(const CommandView& program, bool asks) {
  const std::string function = FunctionName(program.name);
  std::string script = "#compdef " + program.name + "\n" + function +
                       "() {\n  local line state\n" +
                       (asks ? ZshAsking(program.name) : "") +
                       "  _arguments -C";
  AppendZshSpecs(program, "    ", asks, script);
  if (program.subcommands.empty()) {
    return script + "\n}\n" + function + " \"$@\"\n";
  }
  script +=
      " \\\n    '1: :->subcommand' \\\n    '*:: :->rest'\n"
      "  case $state in\n  subcommand)\n    local -a subcommands=(";
  for (const CommandView& command : program.subcommands) {
    script += "\n      " + Quote(command.name + ":" + ZshText(command.text));
  }
  script +=
      "\n    )\n    _describe subcommand subcommands ;;\n  rest)\n"
      "    case $line[1] in\n";
  for (const CommandView& command : program.subcommands) {
    script += "    " + command.name + ")\n      _arguments";
    AppendZshSpecs(command, "        ", asks, script);
    script += " ;;\n";
  }
  return script + "    esac ;;\n  esac\n}\n" + function + " \"$@\"\n";
}

}  // namespace

std::string RenderCompletion(const CLI::App& app, Shell shell) {
  const CommandView program = ViewCommand(app);
  const bool asks = !app.get_subcommands([](const CLI::App* subcommand) {
                          return subcommand->get_name() == kCompleteWords;
                        })
                         .empty();
  return shell == Shell::kBash ? RenderBash(program, asks)
                               : RenderZsh(program, asks);
}

}  // namespace quire
