// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/config_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/variable_names.h"
#include "server/storage/remote/store_address.h"

#include "toml++/toml.h"

namespace quire {
namespace {

constexpr char kArchivesTable[] = "archives";
constexpr char kArchiveOption[] = "archive";
constexpr char kVariablePrefix[] = "QUIRED_";

// Returns the environment variable of an option, by one of its long names.
std::string VariableOf(absl::string_view name) {
  return absl::StrCat(
      kVariablePrefix,
      absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

bool TakesFile(const CLI::Option& option) {
  return option.get_type_name() == "FILE" || option.get_type_name() == "DIR";
}

// A directory with a limit, such as that of --store-cache.
bool TakesLimitedDirectory(const CLI::Option& option) {
  return option.get_type_name() == "DIR:SIZE";
}

bool TakesArchive(const CLI::Option& option) {
  return option.get_type_name() == "[NAME=]PATH";
}

// Returns CLI11's message if it rejects the values.
std::optional<std::string> Give(CLI::Option& option,
                                const std::vector<std::string>& values) {
  try {
    option.add_result(values);
    option.run_callback();
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return std::nullopt;
}

// Thread-compatible.
class ConfigReader {
 public:
  ConfigReader(const std::string& path, CLI::App& subcommand, PathChecks checks)
      : path_(path), subcommand_(subcommand), checks_(checks) {}

  std::vector<std::string> Read() {
    toml::table file;
    try {
      file = toml::parse_file(path_);
    } catch (const toml::parse_error& error) {
      AddFault(error.source(),
               absl::StrCat(std::string(error.description()),
                            "; a value that is no plain number, true or false, "
                            "as a size or a path, must be in quotes"));
      return std::move(faults_);
    }
    ReadTable(file, "");
    for (auto& [name, setting] : settings_) {
      Apply(name, setting);
    }
    return std::move(faults_);
  }

 private:
  struct Setting {
    toml::source_region source;
    std::vector<std::string> values;
  };

  void AddFault(const toml::source_region& source, absl::string_view message) {
    faults_.push_back(
        source.begin.line > 0
            ? absl::StrCat(path_, ":", source.begin.line, ": ", message)
            : absl::StrCat(path_, ": ", message));
  }

  void ReadTable(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      if (node.as_table() == nullptr) {
        AddSetting(name, node);
      } else if (!prefix.empty()) {
        AddFault(node.source(), "a table within a table is unknown");
      } else if (name == kArchivesTable) {
        ReadArchives(*node.as_table());
      } else if (!HasOptionsOf(name)) {
        AddFault(node.source(),
                 absl::StrCat("unknown table ", QuotedText(name), Help()));
      } else {
        ReadTable(*node.as_table(), name + "-");
      }
    }
  }

  // Each key is a name, each value a path.
  void ReadArchives(const toml::table& table) {
    Setting& setting = settings_[kArchiveOption];
    for (const auto& [key, node] : table) {
      const std::optional<std::string> path = node.value_exact<std::string>();
      if (!path.has_value() || path->empty()) {
        AddFault(node.source(),
                 absl::StrCat(QuotedText(std::string(key.str())),
                              " must be the path of an archive"));
        continue;
      }
      setting.source = node.source();
      setting.values.push_back(
          absl::StrCat(std::string(key.str()), "=", *path));
    }
  }

  bool HasOptionsOf(const std::string& table) const {
    for (const CLI::Option* option : subcommand_.get_options()) {
      for (const std::string& name : option->get_lnames()) {
        if (absl::StartsWith(name, table + "-")) {
          return true;
        }
      }
    }
    return false;
  }

  std::string Help() const {
    return absl::StrCat("; quired ", subcommand_.get_name(),
                        " --help lists the options, whose long names are keys");
  }

  void AddSetting(const std::string& name, const toml::node& node) {
    const CLI::Option* option = subcommand_.get_option_no_throw("--" + name);
    if (option == nullptr || name == "help" || name == "config") {
      AddFault(
          node.source(),
          name == kArchivesTable
              ? "archives must be a table: [archives], and NAME = \"PATH\" "
                "on each line below it"
              : absl::StrCat("unknown key ", QuotedText(name), Help()));
      return;
    }
    // Use its first name, whichever name the file has.
    Setting& setting = settings_[option->get_lnames().front()];
    if (!setting.values.empty()) {
      AddFault(node.source(), absl::StrCat(QuotedText(name), " is set twice"));
      return;
    }
    setting.source = node.source();
    if (const toml::array* array = node.as_array(); array != nullptr) {
      if (array->empty()) {
        AddFault(node.source(), absl::StrCat(QuotedText(name), " is empty"));
      } else if (array->size() > 1 && option->get_items_expected_max() == 1) {
        AddFault(node.source(),
                 absl::StrCat(QuotedText(name), " takes one value, not ",
                              array->size()));
        return;
      }
      for (const toml::node& value : *array) {
        AddValue(name, value, setting);
      }
    } else {
      AddValue(name, node, setting);
    }
  }

  void AddValue(const std::string& name, const toml::node& node,
                Setting& setting) {
    const bool is_flag =
        subcommand_.get_option("--" + name)->get_items_expected_max() == 0;
    const auto truth = node.value_exact<bool>();
    if (is_flag && truth.has_value()) {
      setting.values.emplace_back(*truth ? "true" : "false");
    } else if (const auto text = node.value_exact<std::string>();
               text.has_value() && !is_flag) {
      if (text->empty()) {
        AddFault(node.source(),
                 absl::StrCat(QuotedText(name),
                              " is empty; leave it out, or give it a value"));
        return;
      }
      setting.values.push_back(*text);
    } else if (const auto integer = node.value_exact<int64_t>();
               integer.has_value() && !is_flag) {
      setting.values.push_back(absl::StrCat(*integer));
    } else if (const auto number = node.value_exact<double>();
               number.has_value() && !is_flag) {
      setting.values.push_back(absl::StrCat(*number));
    } else {
      AddFault(node.source(),
               absl::StrCat(QuotedText(name), " must be ",
                            is_flag ? "true or false" : "text or a number"));
    }
  }

  void Apply(const std::string& name, Setting& setting) {
    if (setting.values.empty()) {
      return;
    }
    CLI::Option& option = *subcommand_.get_option("--" + name);
    for (std::string& value : setting.values) {
      if (TakesFile(option)) {
        value = Absolute(value);
        CheckFile(name, value, setting);
      } else if (TakesLimitedDirectory(option)) {
        // It is created.
        value = Absolute(value);
      } else if (TakesArchive(option)) {
        value = AbsoluteArchive(value);
        CheckArchive(value, setting);
      }
    }
    if (option.count() > 0) {
      return;
    }
    if (const auto fault = Give(option, setting.values)) {
      AddFault(setting.source, *fault);
    }
  }

  std::string Absolute(const std::string& path) const {
    return path == "-"
               ? path
               : (std::filesystem::path(path_).parent_path() / path).string();
  }

  // Value is NAME=PATH or PATH; a name has no slash.
  static size_t PathBegin(const std::string& value) {
    const size_t equals = value.find('=');
    return equals == std::string::npos || value.find('/') < equals ? 0
                                                                   : equals + 1;
  }

  std::string AbsoluteArchive(const std::string& value) const {
    const size_t begin = PathBegin(value);
    if (IsStoreUrl(value.substr(begin))) {
      return value;
    }
    return value.substr(0, begin) + Absolute(value.substr(begin));
  }

  void CheckFile(const std::string& name, const std::string& path,
                 const Setting& setting) {
    if (checks_ == PathChecks::kNone || path == "-") {
      return;
    }
    // This file is written.
    const bool is_output = name == "access-log";
    const std::string directory =
        std::filesystem::path(path).parent_path().string();
    const std::string& needed = is_output ? directory : path;
    const bool is_good =
        needed.empty() || access(needed.c_str(), is_output ? W_OK : R_OK) == 0;
    if (!is_good) {
      AddFault(setting.source,
               absl::StrCat(QuotedText(name), ": ", QuotedText(needed),
                            is_output ? " is not a writable directory"
                                      : " cannot be read"));
    }
  }

  void CheckArchive(const std::string& value, const Setting& setting) {
    const std::string path = value.substr(PathBegin(value));
    if (IsStoreUrl(path)) {
      return;
    }
    if (checks_ == PathChecks::kAll && access(path.c_str(), R_OK) != 0) {
      const int fault = errno;
      const bool is_option =
          PathBegin(value) > 0 &&
          subcommand_.get_option_no_throw(
              "--" + value.substr(0, PathBegin(value) - 1)) != nullptr;
      AddFault(setting.source,
               absl::StrCat(
                   "archive ", QuotedText(path),
                   " cannot be read: ", std::generic_category().message(fault),
                   is_option ? "; an option must stand above [archives]" : ""));
    }
  }

  const std::string path_;
  CLI::App& subcommand_;
  const PathChecks checks_;
  // By the long name of their option.
  std::map<std::string, Setting> settings_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> ApplyEnvironment(CLI::App& subcommand) {
  std::vector<std::string> faults;
  for (CLI::Option* option : subcommand.get_options()) {
    if (option->count() > 0) {
      continue;
    }
    // An option with two names has two variables.
    std::string given_variable;
    for (const std::string& name : option->get_lnames()) {
      if (name == "help") {
        continue;
      }
      const std::string variable = VariableOf(name);
      // NOLINTNEXTLINE(concurrency-mt-unsafe): before there are threads.
      const char* value = getenv(variable.c_str());
      if (value == nullptr || *value == '\0') {
        continue;
      }
      if (!given_variable.empty()) {
        faults.push_back(absl::StrCat(variable, ": is another name of ",
                                      given_variable, "; set one of them"));
        continue;
      }
      given_variable = variable;
      if (const auto fault = Give(*option, {value})) {
        faults.push_back(absl::StrCat(variable, ": ", *fault));
      }
    }
  }
  return faults;
}

std::vector<std::string> UnknownEnvironment(const CLI::App& subcommand) {
  std::vector<std::string> known;
  for (const CLI::Option* option : subcommand.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (name != "help") {
        known.push_back(VariableOf(name));
      }
    }
  }
  return DescribeUnknownVariables(kVariablePrefix, known,
                                  UnknownVariables::kAll, environ);
}

OptionValues ValuesOf(const CLI::App& subcommand) {
  OptionValues values;
  for (const CLI::Option* option : subcommand.get_options()) {
    if (option->count() > 0 && option->get_configurable() &&
        !option->get_lnames().empty()) {
      values[option->get_lnames().front()] = option->results();
    }
  }
  return values;
}

std::vector<std::string> ApplyValues(const OptionValues& values,
                                     CLI::App& subcommand) {
  std::vector<std::string> faults;
  for (const auto& [name, given] : values) {
    CLI::Option* option = subcommand.get_option_no_throw("--" + name);
    if (option == nullptr || option->count() > 0) {
      continue;
    }
    if (const auto fault = Give(*option, given)) {
      faults.push_back(*fault);
    }
  }
  return faults;
}

std::vector<std::string> ApplyConfigFile(const std::string& path,
                                         CLI::App& subcommand,
                                         PathChecks checks) {
  return ConfigReader(path, subcommand, checks).Read();
}

}  // namespace quire
