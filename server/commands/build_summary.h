// SPDX-License-Identifier: GPL-3.0-or-later
//
// What `quired build` says to people once the archive is there; all of it goes
// to standard error.
#ifndef QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_
#define QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_

#include <string>

#include "codecs/base/progress_meter.h"
#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"

namespace quire {

// For the progress meter, without what an earlier build had encoded.
Progress ToProgress(const BuildProgress& progress);

// What may not be as was meant: attributes that were left out, no document at
// all. Nothing if all is well. For --quiet, too.
void PrintWarnings(const BuildSummary& summary, const Archive& archive);

// Counts, sizes, the time that it took, and the memory that serving takes.
// `output` is the directory as the user gave it, `archive` what was opened
// there, built with `options`.
void PrintSummary(const std::string& output, const BuildOptions& options,
                  const BuildSummary& summary, const Archive& archive,
                  double seconds);

}  // namespace quire

#endif  // QUIRE_SERVER_COMMANDS_BUILD_SUMMARY_H_
