// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/commands/subcommand_support.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/printable_text.h"
#include "server/commands/remote_paths.h"

namespace quire {
namespace {

// See AddRemovedOptions().
struct RemovedOption {
  const char* subcommand;
  const char* name;
  bool is_flag;
  // The remedy, for the message.
  const char* instead;
};

constexpr char kExperiment[] =
    "set it in the table [experiment] of the configuration file";
constexpr char kNoTable[] = "the symbol table takes 2 KB";

constexpr RemovedOption kRemovedOptions[] = {
    {"serve", "range-decode", false, "the server chooses for each read"},
    {"serve", "decode-threads", false,
     "there is one for each core that affinity and cgroup allow; limit these, "
     "for example by CPUQuota= of systemd"},
    {"serve", "engine", false, kExperiment},
    {"serve", "device-depth", false, kExperiment},
    {"serve", "device-model", false, kExperiment},
    {"serve", "connection-age-grace", false,
     "calls of an old connection continue; --stall-timeout ends stalled ones"},
    {"serve", "slow-call-log", false,
     "--access-log has the duration of each call"},
    {"build", "no-symbol-table", true, kNoTable},
    {"dictionary", "no-symbol-table", true, kNoTable},
    {"recompress", "no-symbol-table", true, kNoTable},
};

// Adds an option that takes a size without stating a default.
template <typename Size>
CLI::Option* AddSizeOption(CLI::App& subcommand, const std::string& name,
                           Size& size_bytes, const std::string& description) {
  const auto take = [name, &size_bytes](const std::string& text) {
    const absl::StatusOr<uint64_t> size = ParseByteSize(text);
    if (!size.ok()) {
      throw CLI::ValidationError(name, std::string(size.status().message()));
    }
    size_bytes = *size;
  };
  return subcommand.add_option_function<std::string>(name, take, description)
      ->type_name("SIZE");
}

}  // namespace

std::vector<std::string> ArgumentsForParse(int argc, const char* const* argv) {
  std::vector<std::string> arguments;
  for (int i = argc - 1; i > 0; --i) {
    const absl::string_view argument = argv[i];
    const bool like_list = argument.size() > 1 && argument.front() == '[' &&
                           argument.back() == ']';
    arguments.push_back(absl::StrCat(like_list ? "./" : "", argument));
  }
  return arguments;
}

int ReportFailure(const absl::Status& status) {
  std::cerr << "quired: "
            << PrintableMessage(RemotePaths::WithUrls(status.message()))
            << "\n";
  return kExitFailed;
}

int ReportUsage(absl::string_view subcommand, absl::string_view message) {
  std::cerr << "quired: " << PrintableMessage(message) << "\n"
            << "Try 'quired " << subcommand << " --help'.\n";
  return kExitUsage;
}

absl::Status CheckLocalPath(const std::string& what, const std::string& path) {
  for (const absl::string_view scheme : {"s3:", "https:", "http:"}) {
    std::error_code error;
    if (absl::StartsWith(path, absl::StrCat(scheme, "/")) &&
        !absl::StartsWith(path, absl::StrCat(scheme, "//")) &&
        !std::filesystem::exists(std::string(scheme), error)) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, " must have two slashes after \"", scheme,
          "\" for a URL, such as ",
          scheme == "s3:" ? "s3://BUCKET/PREFIX"
                          : absl::StrCat(scheme, "//HOST/PATH"),
          ", or ./ before it for a local path; got ", QuotedText(path)));
    }
  }
  const size_t scheme_size = path.find("://");
  std::error_code error;
  if (scheme_size == std::string::npos || scheme_size == 0 ||
      !std::all_of(path.begin(),
                   path.begin() + static_cast<ptrdiff_t>(scheme_size),
                   [](char c) {
                     return absl::ascii_isalnum(static_cast<unsigned char>(c));
                   }) ||
      std::filesystem::exists(path, error)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      what, " must be a local path, got the URL ", QuotedText(path),
      "; only s3:// and https:// are known, and not everywhere: copy it to or "
      "from this machine with a program for such URLs"));
}

void AddArchiveArgument(CLI::App& subcommand, std::string& archive) {
  subcommand.add_option("ARCHIVE", archive, "Directory of the archive")
      ->type_name("")
      ->required();
}

void AddReadArchiveArgument(CLI::App& subcommand, std::string& archive,
                            StoreArguments& store) {
  subcommand
      .add_option("ARCHIVE", archive,
                  "Directory of the archive, or s3://BUCKET/PREFIX, or "
                  "https://HOST/PATH")
      ->type_name("")
      ->required();
  AddStoreReadOptions(subcommand, store);
}

void AddRemovedOptions(CLI::App& subcommand,
                       const std::function<void(const std::string&)>& warn) {
  for (const RemovedOption& option : kRemovedOptions) {
    if (subcommand.get_name() != option.subcommand) {
      continue;
    }
    const std::string name = absl::StrCat("--", option.name);
    const auto say = [warn, name, &option] {
      warn(absl::StrCat(name, " is ignored, and will be unknown to the next ",
                        "release: ", option.instead));
    };
    CLI::Option* const added =
        option.is_flag ? subcommand.add_flag_callback(name, say)
                       : subcommand.add_option_function<std::string>(
                             name, [say](const std::string&) { say(); });
    added->group("")->configurable(false);
  }
}

CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               uint64_t& size_bytes,
                               const std::string& description) {
  return AddSizeOption(subcommand, name, size_bytes, description)
      ->default_str(FormatByteSizeExact(size_bytes));
}

CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               std::optional<uint64_t>& size_bytes,
                               const std::string& description) {
  return AddSizeOption(subcommand, name, size_bytes, description);
}

CLI::Option* AddTimeOption(CLI::App& subcommand, const std::string& name,
                           absl::Duration& time, const DurationRange& range,
                           const std::string& description) {
  return subcommand
      .add_option_function<std::string>(
          name,
          [name, &time, range](const std::string& text) {
            const absl::StatusOr<absl::Duration> given =
                ParseDurationText(text, range);
            if (!given.ok()) {
              throw CLI::ValidationError(name,
                                         std::string(given.status().message()));
            }
            time = *given;
          },
          description)
      ->type_name("TIME")
      ->default_str(absl::FormatDuration(time));
}

void RaiseFileLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

double Stopwatch::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                       start_)
      .count();
}

std::string FormatPercent(uint64_t part, uint64_t whole) {
  if (whole == 0) {
    return "0%";
  }
  return absl::StrFormat(
      "%.2f%%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string FormatDuration(double seconds) {
  const auto whole =
      static_cast<uint64_t>(std::clamp(std::ceil(seconds), 0.0, 360000.0 * 24));
  const uint64_t minutes = whole / 60;
  if (minutes < 60) {
    return absl::StrFormat("%d:%02d", minutes, whole % 60);
  }
  return absl::StrFormat("%d:%02d:%02d", minutes / 60, minutes % 60,
                         whole % 60);
}

}  // namespace quire
