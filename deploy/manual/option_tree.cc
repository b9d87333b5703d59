// SPDX-License-Identifier: Apache-2.0
#include "deploy/manual/option_tree.h"

#include <cstring>
#include <iterator>
#include <sstream>

#include "deploy/manual/manual.h"

namespace quire {
namespace {

// Of the name of a check that checks nothing, which holds what is offered: an
// option of CLI11 has no other place for it.
constexpr char kOfferPrefix[] = "offer ";

// CLI::IsMember tells its set in the type name: "TEXT:{bash,zsh}".
std::vector<std::string> FixedValues(const std::string& type_name) {
  const size_t open = type_name.find('{');
  const size_t close = type_name.rfind('}');
  std::vector<std::string> values;
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return values;
  }
  std::istringstream in(type_name.substr(open + 1, close - open - 1));
  for (std::string value; std::getline(in, value, ',');) {
    values.push_back(value);
  }
  return values;
}

// The type name as the program set it, such as "HOST:PORT", without what CLI11
// adds to it for each check: a colon and the check's description.
std::string OwnTypeName(const CLI::Option& option) {
  std::string name = option.get_type_name();
  // get_validator() is not const, though it changes nothing.
  auto& same = const_cast<CLI::Option&>(option);
  for (int i = 0;; ++i) {
    try {
      const std::string check = same.get_validator(i)->get_description();
      name.resize(name.size() - (check.empty() ? 0 : check.size() + 1));
    } catch (const CLI::OptionNotFound&) {
      return name;
    }
  }
}

std::vector<std::string> OfferedValues(const CLI::Option& option) {
  auto& same = const_cast<CLI::Option&>(option);
  for (int i = 0;; ++i) {
    try {
      const std::string name = same.get_validator(i)->get_name();
      if (name.rfind(kOfferPrefix, 0) == 0) {
        std::istringstream in(name.substr(std::strlen(kOfferPrefix)));
        return {std::istream_iterator<std::string>(in), {}};
      }
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
  }
}

OptionView ViewOption(const CLI::Option& option) {
  OptionView view;
  for (const std::string& name : option.get_lnames()) {
    view.names.push_back("--" + name);
  }
  for (const std::string& name : option.get_snames()) {
    view.names.push_back("-" + name);
  }
  view.text = option.get_description();
  if (option.nonpositional() && option.get_items_expected_max() == 0) {
    return view;
  }
  view.default_value = option.get_default_str();
  const std::string type_name = option.get_type_name();
  view.values = FixedValues(type_name);
  view.offered = view.values.empty() ? OfferedValues(option) : view.values;
  view.value_name = OwnTypeName(option);
  if (!view.values.empty()) {
    view.value_name.clear();
    for (const std::string& value : view.values) {
      view.value_name += (view.value_name.empty() ? "" : "|") + value;
    }
  }
  if (option.get_positional()) {
    const bool repeats =
        option.get_items_expected_max() > 1 && option.get_expected_max() > 1;
    view.positional = option.get_name(true) + (repeats ? "..." : "");
    if (!option.get_required()) {
      view.positional = "[" + view.positional + "]";
    }
  }
  return view;
}

}  // namespace

void OfferValues(CLI::Option& option, const std::vector<std::string>& values) {
  std::string name = kOfferPrefix;
  for (const std::string& value : values) {
    name += value + " ";
  }
  option.check(
      CLI::Validator([](std::string&) { return std::string(); }, "", name));
}

CommandView ViewCommand(const CLI::App& app) {
  CommandView view;
  view.name = app.get_name();
  view.text = app.get_description();
  view.needs_subcommand = app.get_require_subcommand_min() > 0;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) {
      continue;
    }
    if (option->get_positional()) {
      view.positionals.push_back(ViewOption(*option));
    } else {
      view.options.push_back(ViewOption(*option));
    }
  }
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_group().empty()) {
      continue;
    }
    CommandView& sub_view = view.subcommands.emplace_back(ViewCommand(*sub));
    for (const CLI::Option* option : app.get_options()) {
      // --help and --version each belong to where they stand.
      if (sub->get_fallthrough() && option->nonpositional() &&
          !option->get_group().empty() && option != app.get_help_ptr() &&
          option != app.get_version_ptr()) {
        sub_view.inherited.push_back(ViewOption(*option));
      }
    }
  }
  return view;
}

}  // namespace quire
