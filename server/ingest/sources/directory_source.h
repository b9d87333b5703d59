// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_

#include <memory>
#include <string>

#include "server/ingest/sources/source.h"

namespace quire {

// All regular files below the directory `path`, in bytewise order of their path
// relative to it; with `options.expand`, the documents of tars, zips and WARCs
// in their places. What is excluded is neither opened nor listed. Memory: the
// listings of the directories on the way to the current file. A file that goes
// away between listing and reading is an error; files that come and go between
// passes are simply in the one and not in the other. Readers can continue after
// every error.
std::unique_ptr<Source> MakeDirectorySource(std::string path,
                                            SourceOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_
