// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the verbs of quired share: exit codes, messages, options that are sizes.
#ifndef QUIRE_SERVER_VERBS_VERB_SUPPORT_H_
#define QUIRE_SERVER_VERBS_VERB_SUPPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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

// Writes "quired: MESSAGE" to stderr; returns kExitFailed.
int ReportFailure(const absl::Status& status);

// The same for a mistake in the command line, with a hint at --help; returns
// kExitUsage.
int ReportUsage(absl::string_view verb, absl::string_view message);

// An option that takes a size such as 64KiB; --help shows the default in that
// form. `size_bytes` holds the default and must outlive `verb`.
CLI::Option* AddByteSizeOption(CLI::App& verb, const std::string& name,
                               uint64_t& size_bytes,
                               const std::string& description);

// The number of cores, at least 1: the default of --threads.
uint32_t CoreCount();

// `text` as a JSON string, in quotes. JSON has no bytes: what is not UTF-8
// becomes U+FFFD.
std::string JsonString(absl::string_view text);

// "12.3%", or "0%" of nothing.
std::string FormatPercent(uint64_t part, uint64_t whole);

// "3:07", "1:02:03".
std::string FormatDuration(double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_VERBS_VERB_SUPPORT_H_
