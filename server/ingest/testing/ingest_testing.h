// SPDX-License-Identifier: GPL-3.0-or-later
//
// Generated inputs for the tests of ingest.
#ifndef QUIRE_SERVER_INGEST_TESTING_INGEST_TESTING_H_
#define QUIRE_SERVER_INGEST_TESTING_INGEST_TESTING_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "server/ingest/sources/source.h"
#include "testing/base/temporary_directory.h"

namespace quire {

struct IngestedDocument {
  SourceDocument document;
  std::string contents;
};

// Appends the rest of the current document to `contents`, also what comes
// before an error, in pieces of `piece_size_bytes`. Errors: those of
// SourceReader::Read().
absl::Status ReadContents(SourceReader& reader, size_t piece_size_bytes,
                          std::string& contents);

// Reads all of `source` once. Odd read sizes, so that pieces do not end at
// round offsets. Checks that stated sizes are right.
absl::StatusOr<std::vector<IngestedDocument>> ReadAllDocuments(
    const Source& source, SkippedEntries* skipped = nullptr);
absl::StatusOr<std::vector<IngestedDocument>> ReadAllDocuments(
    SourceReader& reader);

// OpenSource() and one pass: id and contents of each document.
using IdsAndContents = std::vector<std::pair<std::string, std::string>>;
absl::StatusOr<IdsAndContents> ReadInput(const std::string& path,
                                         SkippedEntries* skipped = nullptr);

// Returns the contents of all documents, in order.
std::string Concatenate(const std::vector<IngestedDocument>& documents);

// Returns the kind of the input, or the error of opening it.
std::string KindOf(const std::string& path);

struct TestEntry {
  enum class Kind { kFile, kHardLink, kSymbolicLink, kDirectory, kPipe };
  std::string name;
  // For links: the target.
  std::string contents;
  Kind kind = Kind::kFile;
};

// Returns a tar or zip by libarchive. `format` is one of its names ("gnutar",
// "pax", "zip", ...), `filter` too ("none", "gzip", "xz", ...).
std::string MakeTestArchive(const std::string& format,
                            const std::string& filter,
                            const std::vector<TestEntry>& entries);

// Returns a tar of one sparse file "sparse" in GNU tar's oldest format ("S");
// libarchive writes only its own. Everything except `data` is a hole.
std::string GnuSparseTar(absl::string_view data, uint64_t data_offset,
                         uint64_t size_bytes);

// Returns one gzip member.
std::string Gzip(absl::string_view text);

// A zstd dictionary with this id for text like MakeTestText().
std::string MakeZstdDictionary(uint32_t id);

// The frame that begins a .warc.zst. `contents`: a dictionary, or a frame of
// one.
std::string ZstdDictionaryFrame(absl::string_view contents);

// One zstd frame with a checksum; `dictionary` may be empty.
std::string Zstd(absl::string_view text, absl::string_view dictionary = "");

void MarkZipEntryEncrypted(absl::string_view name, std::string& zip);

// Returns a WARC record with correct length and end. `headers` are whole lines.
std::string MakeWarcRecord(const std::vector<std::string>& headers,
                           absl::string_view block,
                           absl::string_view version = "WARC/1.0");

// Returns a WARC with one record of each kind that crawlers write.
std::string SmallWarc();

// Returns compressible text of exactly `size` bytes, the same for the same
// seed.
std::string MakeTestText(size_t size, uint64_t seed);

// Changes the byte at `offset` of each open unnamed file of `size_bytes`, such
// as a Spool; returns the number of such files.
int ChangeUnnamedFiles(uint64_t size_bytes, uint64_t offset);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_TESTING_INGEST_TESTING_H_
