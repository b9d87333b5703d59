// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_PLAIN_FILE_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCES_PLAIN_FILE_SOURCE_H_

#include <memory>

#include "server/ingest/sources/source.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// The whole file as one document; its id is the last component of its path.
std::unique_ptr<Source> MakePlainFileSource(
    std::shared_ptr<const InputFile> file);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_PLAIN_FILE_SOURCE_H_
