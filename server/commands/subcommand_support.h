// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the subcommands of quired share: exit codes, messages, options that are
// sizes or times.
#ifndef QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_
#define QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "codecs/base/duration_text.h"

namespace quire {

// Of quired.
inline constexpr int kExitGood = 0;
// Not found, damaged, or the work failed.
inline constexpr int kExitFailed = 1;
// The command line makes no sense.
inline constexpr int kExitUsage = 2;

// The program's arguments in the order in which CLI::App::parse() takes a
// vector: last first, and without the program's name. CLI11 takes "[a,b]" for a
// list of two, but it is also a fine name for a file: here it becomes
// "./[a,b]".
std::vector<std::string> ArgumentsForParse(int argc, const char* const* argv);

// Writes "quired: MESSAGE" to stderr, fit for terminals; returns kExitFailed.
int ReportFailure(const absl::Status& status);

// The same for a mistake in the command line, with a hint at --help; returns
// kExitUsage.
int ReportUsage(absl::string_view subcommand, absl::string_view message);

// An option that takes a size such as 64KiB; --help shows the default in that
// form. `size_bytes` holds the default and must outlive `subcommand`.
CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               uint64_t& size_bytes,
                               const std::string& description);

// The same for an option without a default; what it stands for without a value
// is for `description` to say.
CLI::Option* AddByteSizeOption(CLI::App& subcommand, const std::string& name,
                               std::optional<uint64_t>& size_bytes,
                               const std::string& description);

// An option that takes a time such as 10s (duration_text.h); --help shows the
// default in that form. `time` holds the default and must outlive `subcommand`.
CLI::Option* AddTimeOption(CLI::App& subcommand, const std::string& name,
                           absl::Duration& time, const DurationRange& range,
                           const std::string& description);

// The number of cores, at least 1: the default of --threads.
uint32_t CoreCount();

// Lets the process open as many files as the system allows it, for archives of
// many segments, each of which is a file, and servers of many connections.
void RaiseFileLimit();

// "12.3%", or "0%" of nothing.
std::string FormatPercent(uint64_t part, uint64_t whole);

// "3:07", "1:02:03".
std::string FormatDuration(double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_SUBCOMMAND_SUPPORT_H_
