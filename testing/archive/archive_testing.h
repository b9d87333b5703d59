// SPDX-License-Identifier: GPL-3.0-or-later
//
// Helpers of the tests of archives, here and in other directories; for tests
// only.
#ifndef QUIRE_TESTING_ARCHIVE_ARCHIVE_TESTING_H_
#define QUIRE_TESTING_ARCHIVE_ARCHIVE_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/payload/payload_codec.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "testing/base/temporary_directory.h"

namespace quire {

// What NewCapture has, kept.
struct TestCapture {
  std::string key;
  std::string url;
  uint32_t status = 0;
  std::string digest = {};
};

struct TestDocument {
  std::string id = {};
  std::string text = {};
  std::optional<int64_t> capture_time_ms = std::nullopt;
  std::string record_type = {};
  std::string media_type = {};
  // Values of the fields that the writer was given.
  std::vector<FieldValue> fields = {};
  std::optional<TestCapture> capture = std::nullopt;
  std::shared_ptr<DepositDraft> deposit = nullptr;
};

using TestSegment = std::vector<TestDocument>;

// Sizes of blocks; the last one is repeated.
struct TestBlockSizes {
  // NOLINTNEXTLINE(google-explicit-constructor)
  TestBlockSizes(uint32_t size_bytes) : sizes_bytes({size_bytes}) {}

  TestBlockSizes(std::initializer_list<size_t> sizes) : sizes_bytes(sizes) {}

  std::vector<size_t> sizes_bytes;
};

// Adds the documents of one segment and their blocks, and ends the segment. If
// `codec` is null, blocks are stored raw.
absl::Status WriteTestSegment(const TestSegment& segment,
                              const TestBlockSizes& block_sizes,
                              const PayloadCodec* codec, ArchiveWriter& writer);

// Same, for a segment whose blocks hold `stored_text`, of which `runs` make the
// documents' text.
absl::Status WriteTestSegment(const TestSegment& segment,
                              const std::string& stored_text,
                              std::vector<StoredRun> runs,
                              const TestBlockSizes& block_sizes,
                              const PayloadCodec* codec, ArchiveWriter& writer);

// Writes a whole archive, with the context's symbol table if there is one, and
// with members of at most `inflated_text_size_max` bytes of text inflated.
absl::StatusOr<ArchiveInfo> WriteTestArchive(
    const std::string& path, const ArchiveWriterOptions& options,
    const std::vector<TestSegment>& segments,
    const std::shared_ptr<const CodecContext>& context = nullptr,
    size_t inflated_text_size_max = 0);

// Returns the bytes of a range, read block by block.
absl::StatusOr<std::string> ReadTestRange(const Archive& archive,
                                          LogicalRange range);

// Returns the fields of each document: "lang=\"de\" count=null".
std::vector<std::string> ReadTestFields(const Archive& archive);

// Returns the captures of all documents, in the order of their index: "KEY
// TIME_MS ORDINAL STATUS DIGEST URL".
std::vector<std::string> ReadTestCaptures(const Archive& archive);

// Returns `document_count` documents, reproducible from the generator: some
// empty, some with the id of another, ids of any bytes, texts that compress.
TestSegment RandomTestSegment(size_t document_count, size_t text_size_max,
                              std::mt19937_64& random);

}  // namespace quire

#endif  // QUIRE_TESTING_ARCHIVE_ARCHIVE_TESTING_H_
