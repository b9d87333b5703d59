// SPDX-License-Identifier: Apache-2.0
//
// `quire ls --files` and `quire get --file`.
#ifndef QUIRE_CLIENT_CLI_FILE_SUBCOMMANDS_H_
#define QUIRE_CLIENT_CLI_FILE_SUBCOMMANDS_H_

#include "absl/status/status.h"

#include "client/cli/cli_run.h"

namespace quire {

// Lists the deposited files whose paths start with the prefix of the settings.
// Errors: those of Client::ListFiles() and of the output; NotFound  there is
// none.
absl::Status ListFiles(CliRun& run);

// Writes the deposited files of the settings, or a part of each. Complains
// about those that cannot be read. Errors: those of the output.
absl::Status GetFiles(CliRun& run);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_FILE_SUBCOMMANDS_H_
