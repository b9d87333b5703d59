// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sources of files that are documents themselves.
#ifndef QUIRE_SERVER_INGEST_SOURCES_FILE_SOURCES_H_
#define QUIRE_SERVER_INGEST_SOURCES_FILE_SOURCES_H_

#include <memory>
#include <string>

#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// The whole file as one document; its id is the last component of its path.
std::unique_ptr<Source> MakePlainFileSource(
    std::shared_ptr<const InputFile> file);

// All regular files below the directory `path`, in bytewise order of their
// relative path. With `options.expand` tars, zips and WARCs are replaced by
// their documents. Excluded entries are neither opened nor listed. Memory: the
// listings of the directories on the path to the current file. A file that
// disappears between listing and reading is an error. Files that change between
// passes may be in only some of them. Readers can continue after every error.
std::unique_ptr<Source> MakeDirectorySource(std::string path,
                                            SourceOptions options);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_FILE_SOURCES_H_
