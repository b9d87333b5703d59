// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `quire`. Each reads its settings, writes to the output,
// reports failed parts with Complain(), and returns the error that ended it as
// a whole.
#ifndef QUIRE_CLIENT_CLI_SUBCOMMANDS_H_
#define QUIRE_CLIENT_CLI_SUBCOMMANDS_H_

#include "absl/status/status.h"

#include "client/cli/cli_run.h"

namespace quire {

absl::Status RunArchives(CliRun& run);
absl::Status RunInfo(CliRun& run);
absl::Status RunLs(CliRun& run);
absl::Status RunGet(CliRun& run);
absl::Status RunCaptures(CliRun& run);
absl::Status RunRange(CliRun& run);
absl::Status RunScan(CliRun& run);
absl::Status RunBatch(CliRun& run);
absl::Status RunExport(CliRun& run);

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_SUBCOMMANDS_H_
