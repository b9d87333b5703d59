// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"

#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"
#include "server/archive/files/file_io.h"
#include "server/commands/quired_commands.h"
#include "server/commands/subcommand_support.h"
#include "server/service/security/access_rules.h"

namespace quire {
namespace {

struct TokenArguments {
  std::string id;
  std::string archives = "*";
  std::string rights = "list,read";
  std::string expires;
  std::string output;
};

// Returns 256 bits from the kernel.
absl::StatusOr<std::string> NewSecret() {
  std::array<char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) !=
      static_cast<ssize_t>(bytes.size())) {
    return ErrnoStatus(errno, "random numbers", "read");
  }
  return absl::WebSafeBase64Escape({bytes.data(), bytes.size()});
}

// Creates a file for this user only; never overwrites one.
absl::Status WriteSecret(const std::string& path, const std::string& text) {
  const UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) {
    return ErrnoStatus(errno, path, "create");
  }
  if (write(file.get(), text.data(), text.size()) !=
          static_cast<ssize_t>(text.size()) ||
      fsync(file.get()) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return ErrnoStatus(error, path, "write");
  }
  return absl::OkStatus();
}

// Checks that each argument is one word: blanks separate the words of a rule.
// Errors: InvalidArgument  an argument with blanks, or no ID.
absl::Status CheckWords(const TokenArguments& arguments) {
  if (arguments.id.empty()) {
    return absl::InvalidArgumentError("ID must not be empty");
  }
  for (const auto& [name, value] :
       {std::pair("ID", &arguments.id),
        std::pair("--archives", &arguments.archives),
        std::pair("--rights", &arguments.rights),
        std::pair("--expires", &arguments.expires)}) {
    if (std::any_of(value->begin(), value->end(), [](char c) {
          return absl::ascii_isspace(static_cast<unsigned char>(c));
        })) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " must have no blanks, got ", QuotedText(*value)));
    }
  }
  return absl::OkStatus();
}

int NewToken(const TokenArguments& arguments) {
  if (const absl::Status words = CheckWords(arguments); !words.ok()) {
    return ReportUsage("token new", words.message());
  }
  const absl::StatusOr<std::string> secret = NewSecret();
  if (!secret.ok()) {
    return ReportFailure(secret.status());
  }
  const Sha256 digest = Sha256Of(*secret);
  const std::string line = absl::StrCat(
      "token ", arguments.id, " sha256=",
      absl::BytesToHexString(
          {reinterpret_cast<const char*>(digest.data()), digest.size()}),
      " archives=", arguments.archives, " rights=", arguments.rights,
      arguments.expires.empty() ? "" : " expires=", arguments.expires);
  // Applies the server's checks.
  const auto rules = AccessRules::Parse(line);
  if (!rules.ok()) {
    return ReportUsage("token new",
                       absl::StripPrefix(rules.status().message(), "line 1: "));
  }
  const std::string token = absl::StrCat(arguments.id, ".", *secret, "\n");
  if ((*rules)->FindToken(
          absl::StrCat("Bearer ", absl::StripAsciiWhitespace(token)),
          absl::Now()) == nullptr) {
    return ReportUsage("token new",
                       absl::StrCat("--expires must be in the future, got ",
                                    PrintableText(arguments.expires)));
  }
  if (arguments.output.empty()) {
    std::fprintf(stderr,
                 "The token, for --token-file of the client; it is not "
                 "stored:\n%s\nThe line for the file of quired serve "
                 "--access, on standard output:\n",
                 token.c_str());
  } else if (absl::Status status = WriteSecret(arguments.output, token);
             !status.ok()) {
    return ReportFailure(status);
  }
  if (std::printf("%s\n", line.c_str()) < 0 || std::fflush(stdout) != 0) {
    return ReportFailure(absl::UnavailableError("standard output is closed"));
  }
  return kExitGood;
}

}  // namespace

void AddTokenCommand(CLI::App& app, int& exit_code) {
  CLI::App* token = app.add_subcommand(
      "token", "Create tokens for clients of quired serve --access");
  token->require_subcommand(1, 1);
  CLI::App* fresh = token->add_subcommand(
      "new", "Create a token, and print its line for --access");
  auto arguments = std::make_shared<TokenArguments>();
  fresh
      ->add_option("ID", arguments->id,
                   "Name of the client, in --access and in logs")
      ->type_name("")
      ->required();
  fresh
      ->add_option(
          "--archives", arguments->archives,
          "Names of permitted archives, with * and ?, and commas between")
      ->type_name("GLOBS")
      ->capture_default_str();
  fresh
      ->add_option("--rights", arguments->rights,
                   "Rights: list (see archives), read (read documents)")
      ->type_name("RIGHTS")
      ->capture_default_str();
  fresh
      ->add_option(
          "--expires", arguments->expires,
          "Expiry in UTC, 2027-01-31 or 2027-01-31T12:00:00Z; default: none")
      ->type_name("TIME");
  fresh
      ->add_option("-o,--output", arguments->output,
                   "New file for the token; default: standard error")
      ->type_name("FILE");
  fresh->footer(
      "Example:\n"
      "  quired token new crawler --archives 'web-*' -o crawler.token >> "
      "access\n");
  fresh->callback(
      [arguments, &exit_code] { exit_code = NewToken(*arguments); });
}

}  // namespace quire
