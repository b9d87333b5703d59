// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gzip, as WARCs use it: many members one after the other.
#ifndef QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/byte_stream.h"

namespace quire {

// The text of all members of a gzip file (RFC 1952), as one stream. Stricter
// than libarchive's reader, which neither checks the checksums of members nor
// tells garbage between them from the end: here both are errors. Zeros after
// the last member are passed over, as gzip does.
class GzipStream final : public ByteStream {
 public:
  // `name` is for messages. Errors: ResourceExhausted  no memory for zlib.
  static absl::StatusOr<std::unique_ptr<GzipStream>> Create(
      std::unique_ptr<ByteStream> compressed, std::string name);
  ~GzipStream() override;

  // Errors: DataLoss  truncated inside a member, damaged, a checksum that does
  // not
  //                   match, or bytes between members; the message has the
  //                   offset in the compressed file. And those of the
  //                   compressed stream.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

 private:
  struct Inflater;

  GzipStream(std::unique_ptr<ByteStream> compressed, std::string name,
             std::unique_ptr<Inflater> inflater);

  // Makes sure that there is input, unless the file has ended.
  absl::Status Refill();
  // Starts the next member; false at the end of the file.
  absl::StatusOr<bool> StartMember();
  absl::Status Damaged(const char* what) const;
  // Of the next compressed byte.
  uint64_t offset() const;

  const std::unique_ptr<ByteStream> compressed_;
  const std::string name_;
  const std::unique_ptr<Inflater> inflater_;
  std::vector<uint8_t> input_;
  uint64_t read_bytes_ = 0;
  uint64_t member_offset_ = 0;
  uint64_t member_count_ = 0;
  bool in_member_ = false;
  bool at_end_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_
