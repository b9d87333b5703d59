// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gzip as in WARCs: many members in one file.
#ifndef QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/byte_stream.h"

namespace quire {

// The text of all members of a gzip file (RFC 1952), as one stream. Stricter
// than libarchive's reader, which neither verifies the checksums of members nor
// distinguishes garbage between them from the end: here both are errors. Zeros
// after the last member are skipped, as gzip does.
class GzipStream final : public ByteStream {
 public:
  // `name` is for messages. Errors: ResourceExhausted  no memory for zlib.
  static absl::StatusOr<std::unique_ptr<GzipStream>> Create(
      std::unique_ptr<ByteStream> compressed, std::string name);
  ~GzipStream() override;

  // Errors: DataLoss  truncated inside a member, damaged, wrong checksum, or
  //                   bytes between members; the message has the offset in the
  //                   compressed file. And those of the compressed stream.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

  bool IsVerified() const override;

  // Searches the next member after the first byte of the skipped one, or after
  // its end if that was reached. Bytes inside damaged data that look like a
  // member are taken for one. Only the last members are remembered; for text of
  // earlier ones the oldest of these counts. REQUIRES: the compressed stream
  // can Seek().
  absl::StatusOr<std::optional<SkippedPart>> SkipPart(
      uint64_t text_offset, absl::string_view beginning) override;

 private:
  struct Inflater;

  // A member begun.
  struct Member {
    // Offsets of its first byte, in the text and in the file.
    uint64_t text_offset = 0;
    uint64_t offset = 0;
    // Offset after its last byte; 0 until its checksum is verified.
    uint64_t end_offset = 0;
  };

  GzipStream(std::unique_ptr<ByteStream> compressed, std::string name,
             std::unique_ptr<Inflater> inflater);

  // Ensures that there is input, unless the file has ended.
  absl::Status Refill();
  // Starts the next member; false at the end of the file.
  absl::StatusOr<bool> StartMember();
  // Records that a member begins at the next compressed byte.
  void BeginMember();
  // Returns the offset of the first member at or after `offset` of the file
  // whose text begins with `beginning`. Without one, returns the end of the
  // file and sets `at_end_`.
  absl::StatusOr<uint64_t> FindMember(uint64_t offset,
                                      absl::string_view beginning);
  // True if `bytes`, possibly truncated, begin a member of such text.
  bool BeginsMember(MutableByteView bytes, absl::string_view beginning);
  absl::Status Damaged(const char* what) const;
  // Offset of the next compressed byte.
  uint64_t offset() const;

  const std::unique_ptr<ByteStream> compressed_;
  const std::string name_;
  const std::unique_ptr<Inflater> inflater_;
  std::vector<uint8_t> input_;
  uint64_t read_bytes_ = 0;
  // Size of the text since the last SkipPart().
  uint64_t text_size_bytes_ = 0;
  uint64_t member_count_ = 0;
  // The last members.
  std::deque<Member> members_;
  bool in_member_ = false;
  bool at_end_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_
