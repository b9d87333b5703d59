// SPDX-License-Identifier: GPL-3.0-or-later
//
// Gzip, as WARCs use it: many members one after the other.
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

  bool IsVerified() const override;

  // The next member is looked for behind the first byte of the one that is
  // passed over, or behind its end if that was reached: bytes inside damaged
  // data that look like such a member are taken for one. Only the last members
  // that were begun are known; for text of others the oldest of these is meant.
  // The compressed stream must be able to Seek().
  absl::StatusOr<std::optional<SkippedPart>> SkipPart(
      uint64_t text_offset, absl::string_view beginning) override;

 private:
  struct Inflater;

  // A member that was begun.
  struct Member {
    // Of its first byte, in the text and in the file.
    uint64_t text_offset = 0;
    uint64_t offset = 0;
    // Behind its last byte; 0 until its checksum was found right.
    uint64_t end_offset = 0;
  };

  GzipStream(std::unique_ptr<ByteStream> compressed, std::string name,
             std::unique_ptr<Inflater> inflater);

  // Makes sure that there is input, unless the file has ended.
  absl::Status Refill();
  // Starts the next member; false at the end of the file.
  absl::StatusOr<bool> StartMember();
  // Notes that a member begins at the next compressed byte.
  void BeginMember();
  // The offset of the first member at `offset` of the file or after it whose
  // text begins with `beginning`; else that of the file's end, and `at_end_` is
  // true.
  absl::StatusOr<uint64_t> FindMember(uint64_t offset,
                                      absl::string_view beginning);
  // True if `bytes`, cut off somewhere, are of a member of such a text.
  bool BeginsMember(MutableByteView bytes, absl::string_view beginning);
  absl::Status Damaged(const char* what) const;
  // Of the next compressed byte.
  uint64_t offset() const;

  const std::unique_ptr<ByteStream> compressed_;
  const std::string name_;
  const std::unique_ptr<Inflater> inflater_;
  std::vector<uint8_t> input_;
  uint64_t read_bytes_ = 0;
  // Of the text, since the last SkipPart().
  uint64_t text_size_bytes_ = 0;
  uint64_t member_count_ = 0;
  // The last of them.
  std::deque<Member> members_;
  bool in_member_ = false;
  bool at_end_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_GZIP_STREAM_H_
