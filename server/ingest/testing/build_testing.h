// SPDX-License-Identifier: GPL-3.0-or-later
//
// Small builds, and checks of their archives, for the tests of ingest.
#ifndef QUIRE_SERVER_INGEST_TESTING_BUILD_TESTING_H_
#define QUIRE_SERVER_INGEST_TESTING_BUILD_TESTING_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "server/ingest/build_options.h"
#include "server/ingest/testing/ingest_testing.h"

namespace quire {

// Returns options of archives that have several blocks and segments after some
// 100 KB of text. `codec`: as ParseTestCodec() takes it.
BuildOptions SmallBuildOptions(absl::string_view codec,
                               uint64_t segment_size_bytes = 40000);

// Fails unless the archive is whole and has exactly these documents, and its
// parent directory has no partial archive.
void ExpectDocuments(const std::string& path, const IdsAndContents& documents);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TESTING_BUILD_TESTING_H_
