// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compressed files of many members, as in WARCs: gzip, zstd.
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_STREAM_H_

#include <cstddef>
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
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Decodes one member at a time. Thread-compatible.
class MemberDecoder {
 public:
  struct Step {
    size_t consumed_bytes = 0;
    size_t produced_bytes = 0;
    // The member ended, and all of its text was produced.
    bool has_ended = false;
    // Empty unless the member is damaged.
    std::string error = {};
  };

  virtual ~MemberDecoder() = default;

  // For messages: "gzip member".
  virtual absl::string_view member_name() const = 0;

  // True if zeros may follow the last member.
  virtual bool AllowsPadding() const = 0;

  // True if `bytes` begin with a member's magic number.
  virtual bool HasMagic(ByteView bytes) const = 0;

  // Size of the prefix of a member that suffices to recognise its text.
  virtual size_t PrefixSizeBytes() const = 0;

  // The next Decode() starts a member, also in the middle of another.
  virtual void Reset() = 0;

  // Decodes a piece. No progress without an error: more of `in` is needed.
  virtual Step Decode(ByteView in, MutableByteView out) = 0;
};

// The text of all members of a file, as one stream. Bytes between members are
// an error, except zeros after the last if AllowsPadding().
class MemberStream final : public ByteStream {
 public:
  // `name` is for messages.
  MemberStream(std::unique_ptr<ByteStream> compressed, std::string name,
               std::unique_ptr<MemberDecoder> decoder);

  // Errors: DataLoss  truncated inside a member, damaged, wrong checksum, or
  //                   bytes between members; the message has the offset in the
  //                   compressed file. And those of the compressed stream.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

  bool IsVerified() const override;

  // Only the last members are remembered.
  std::optional<uint64_t> PartEnd(uint64_t text_offset) const override;

  // Searches the next member after the first byte of the skipped one, or after
  // its end if that was reached. Bytes inside damaged data that look like a
  // member are taken for one. Only the last members are remembered; for text of
  // earlier ones the oldest of these counts. REQUIRES: the compressed stream
  // can Seek().
  absl::StatusOr<std::optional<SkippedPart>> SkipPart(
      uint64_t text_offset, IsPartStart is_start) override;

 private:
  // A member begun.
  struct Member {
    // Offsets of its first byte, in the text and in the file.
    uint64_t text_offset = 0;
    uint64_t offset = 0;
    // Offset after its last byte; 0 until it has ended.
    uint64_t end_offset = 0;
  };

  // Ensures that there is input, unless the file has ended.
  absl::Status Refill();
  // Starts the next member; false at the end of the file.
  absl::StatusOr<bool> StartMember();
  // Records that a member begins at the next compressed byte.
  void BeginMember();
  absl::StatusOr<size_t> DecodePiece(MutableByteView out);
  // Returns the offset of the first member at or after `offset` of the file
  // whose text begins as `is_start` requires. Without one, returns the end of
  // the file and sets `at_end_`.
  absl::StatusOr<uint64_t> FindMember(uint64_t offset, IsPartStart is_start);
  // True if `bytes`, possibly truncated, begin a member of such text.
  bool BeginsMember(ByteView bytes, IsPartStart is_start);
  absl::Status Damaged(absl::string_view what) const;

  // Offset of the next compressed byte.
  uint64_t offset() const { return read_bytes_ - rest_.size(); }

  const std::unique_ptr<ByteStream> compressed_;
  const std::string name_;
  const std::unique_ptr<MemberDecoder> decoder_;
  std::vector<uint8_t> input_;
  // The part of input_ that is not decoded yet.
  ByteView rest_;
  uint64_t read_bytes_ = 0;
  // Size of the text since the last SkipPart().
  uint64_t text_size_bytes_ = 0;
  uint64_t member_count_ = 0;
  // The last members.
  std::deque<Member> members_;
  bool in_member_ = false;
  bool at_end_ = false;
  // Damage after the text that the last Read() returned.
  absl::Status damage_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_STREAM_H_
