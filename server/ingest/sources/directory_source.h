// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_

#include <memory>
#include <string>

#include "server/ingest/sources/source.h"

namespace quire {

// All regular files below the directory `path`, in bytewise order of their
// relative path. With `options.expand` tars, zips and WARCs are replaced by
// their documents. Excluded entries are neither opened nor listed. Memory: the
// listings of the directories on the path to the current file. A file that
// disappears between listing and reading is an error. Files that change between
// passes may be in only some of them. Readers can continue after every error.
std::unique_ptr<Source> MakeDirectorySource(std::string path,
                                            SourceOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_DIRECTORY_SOURCE_H_
