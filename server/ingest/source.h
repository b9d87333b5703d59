// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where documents come from: folders, tars, zips, WARCs, single files.
#ifndef QUIRE_SERVER_INGEST_SOURCE_H_
#define QUIRE_SERVER_INGEST_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// A document, before its bytes are read.
struct SourceDocument {
  // Any bytes.
  std::string id;
  // If known beforehand; what Read() returns counts.
  std::optional<uint64_t> size_bytes;
  std::optional<int64_t> capture_time_ms;
  std::string record_type;
  std::string media_type;
};

// One pass over the documents of an input, in an order that is the same in
// every pass. Thread-compatible.
class SourceReader {
 public:
  virtual ~SourceReader() = default;

  // Goes to the next document, over what is left of the current one; nullopt
  // after the last.
  // Errors: DataLoss     the input is malformed or cut; names file and place.
  //         Unavailable  it cannot be read.
  virtual absl::StatusOr<std::optional<SourceDocument>> Next() = 0;

  // Reads on in the current document; 0 at its end.
  // REQUIRES: !out.empty(); Next() returned a document.
  virtual absl::StatusOr<size_t> Read(MutableByteView out) = 0;
};

// An input that can be read several times: building takes one pass to count,
// one to sample the dictionary and one to encode.
// Immutable.
class Source {
 public:
  virtual ~Source() = default;
  // For messages: the path as the user gave it.
  virtual const std::string& name() const = 0;
  virtual absl::StatusOr<std::unique_ptr<SourceReader>> Open() const = 0;
};

// Looks at what `path` is and returns its source: a folder, a file that
// libarchive reads as tar or zip in any compression, a WARC (plain or gzip), or
// any other file, which is one document. "-" is a tar on standard input, which
// is spooled to an unnamed file in `spool_folder` because it is read more than
// once.
// Errors: NotFound         no such file.
//         InvalidArgument  neither file nor folder; or a file that looks like
//                          an archive but is none.
absl::StatusOr<std::unique_ptr<Source>> OpenSource(
    const std::string& path, const std::string& spool_folder);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCE_H_
