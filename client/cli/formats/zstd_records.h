// SPDX-License-Identifier: Apache-2.0
//
// The .warc.zst of the IIPC's proposal "Zstandard Compression for WARC Files
// 1.0": a dictionary in a skippable frame, then a zstd frame for each record.
#ifndef QUIRE_CLIENT_CLI_ZSTD_RECORDS_H_
#define QUIRE_CLIENT_CLI_ZSTD_RECORDS_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"

#include "client/cli/formats/member_compressor.h"
#include "codecs/base/bytes.h"

namespace quire {

// Upper bound on the text of a frame: decoders of .warc.zst need not accept
// larger windows. A longer record takes several frames.
inline constexpr size_t kZstdFrameTextSizeBytesMax = size_t{8} << 20;

// Upper bound on a dictionary: decoders need not accept larger ones.
inline constexpr size_t kRecordDictionarySizeBytesMax = size_t{8} << 20;

// Returns a zstd dictionary (RFC 8878, section 5) for texts like `samples`: the
// text that several of them have, and as much of the rest as fits, earlier
// samples first. Its tables and its id depend on the samples alone, so equal
// samples give equal dictionaries. Empty if the samples are too few to be worth
// one. Takes about the size of the samples in memory, and 24 MiB. Thread-safe.
std::string MakeRecordDictionary(std::span<const std::string> samples);

// Writes the dictionary before the first record. Each frame has its content
// size, a checksum, and the id of the dictionary. Holds the text of a frame and
// the frame, and up to 15 times the dictionary for the index of its matches.
// Thread-compatible.
class ZstdRecords final : public MemberCompressor {
 public:
  // `dictionary` is of MakeRecordDictionary(); an empty one means none.
  explicit ZstdRecords(std::string dictionary);
  ~ZstdRecords() override;
  ZstdRecords(const ZstdRecords&) = delete;
  ZstdRecords& operator=(const ZstdRecords&) = delete;

  absl::Status Write(ByteView bytes, Sink sink) override;
  absl::Status EndMember(Sink sink) override;

 private:
  class Library;

  absl::Status WriteDictionary(Sink sink);
  // Writes the held text as a frame.
  absl::Status WriteFrame(Sink sink);

  const std::string dictionary_;
  const std::unique_ptr<Library> library_;
  bool has_begun_ = false;
  std::string text_;
  std::string frame_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ZSTD_RECORDS_H_
