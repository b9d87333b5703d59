// SPDX-License-Identifier: GPL-3.0-or-later
//
// Parquet files, whose rows a child process writes as JSON Lines: Debian 12 has
// no library for them in C++.
#ifndef QUIRE_SERVER_INGEST_SOURCES_PACKED_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_PACKED_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

inline constexpr absl::string_view kParquetMagic = "PAR1";

// The way to build from the rows of a Parquet file.
inline constexpr absl::string_view kParquetAdvice =
    "give it as an input of its own with --split lines, --id-field and "
    "--text-field, or pipe in the tar that quire-pack parquet makes of its "
    "rows";

// True if the file begins as Parquet does. Errors: Unavailable.
absl::StatusOr<bool> IsParquet(const InputFile& file);

// Returns a source with one document, named like the file: a line for each row
// of the Parquet file, a JSON object of the columns of `options.split`, which
// must be set; of all columns if its text is the whole line. Each pass runs
//
//   quire-pack rows [--column NAME]... -- PATH
//
// as a child; the environment variable QUIRE_PACK names another program. The
// lines are neither kept nor written to a disk. The passes must give the same
// bytes: a pass that reads to the end and finds others, or a child that fails,
// is an error at the end of the document.
// Errors of its readers, and names of the file are in them:
//   FailedPrecondition  the program cannot be started, or ends with an exit
//                       code that is not 0 or by a signal; with its message.
//   DataLoss            a pass gave other bytes than the one before.
//   ResourceExhausted   the lines are over the limit for inputs.
std::unique_ptr<Source> MakePackedSource(std::shared_ptr<const InputFile> file,
                                         const SourceOptions& options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_PACKED_SOURCE_H_
