// SPDX-License-Identifier: GPL-3.0-or-later
//
// Messages of `quired build` after the archive is complete, on standard error.
#ifndef QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_
#define QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_

#include <string>

#include "codecs/base/progress_meter.h"
#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/deposit_tracker.h"

namespace quire {

// Returns the state of the progress meter, without the part of an earlier
// build.
Progress ToProgress(const BuildProgress& progress);

// Prints results that may be unintended: omitted attributes, no documents. No
// effect without any. Used with --quiet, too.
void PrintWarnings(const BuildSummary& summary, const Archive& archive);

// Prints the deposited files that were added. No effect without any.
void PrintDeposits(const DepositSummary& deposits);

// Prints how to resume the build of `output`, if it left OUT.partial for that.
void PrintResumeHint(const std::string& output);

// Prints that the blocks of an earlier build of `output` are not resumed
// (ResumeOptions::on_dropped).
void PrintDroppedWarning(const std::string& output);

// Prints the encoding of `archive`, which BuildEmptyArchive() wrote to
// `output`.
void PrintDictionary(const std::string& output, const BuildSummary& summary,
                     const Archive& archive, double seconds);

// Prints counts, sizes, the elapsed time, and the memory for serving. `output`
// is the directory as the user gave it, `archive` the archive opened there,
// built with `options`.
void PrintSummary(const std::string& output, const BuildOptions& options,
                  const BuildSummary& summary, const Archive& archive,
                  double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_
