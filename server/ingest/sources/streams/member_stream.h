// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compressed files of any number of members, as in WARCs.
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

// Zeros that may follow a member.
enum class MemberPadding {
  kNone,
  // After the last member: padding to the block size of a medium.
  kAtEnd,
  // A multiple of four, after every member.
  kFoursAnywhere,
};

// Limit on the window, or dictionary, of a compressed input: its default, and
// the least and largest that can be given.
inline constexpr uint64_t kWindowSizeBytesDefault = uint64_t{1} << 30;
inline constexpr uint64_t kWindowSizeBytesMin = uint64_t{1} << 20;
inline constexpr uint64_t kWindowSizeBytesMax = uint64_t{1} << 31;

// Decodes one member at a time. Thread-compatible.
class MemberDecoder {
 public:
  struct Step {
    size_t consumed_bytes = 0;
    size_t produced_bytes = 0;
    // The member ended, all of its text was produced, and its checksums, if it
    // has any, are right.
    bool has_ended = false;
    // Empty unless the member cannot be decoded further.
    std::string error = {};
    // What to do about the error; may be empty.
    std::string remedy = {};
    // The error is that of missing memory, not of the member.
    bool is_out_of_memory = false;
  };

  virtual ~MemberDecoder() = default;

  // For messages: "gzip member".
  virtual absl::string_view member_name() const = 0;

  virtual MemberPadding padding() const = 0;

  // Size of the magic number; 0 if the file is one member.
  virtual size_t MagicSizeBytes() const = 0;

  // True if `bytes` begin with a member's magic number, or are a prefix of one.
  virtual bool HasMagic(ByteView bytes) const = 0;

  // Size of the prefix of a member that suffices to recognise its text; 0 if
  // members are not searched for.
  virtual size_t PrefixSizeBytes() const { return 0; }

  // True if the file may end after the bytes of the member decoded so far: it
  // has no end mark.
  virtual bool MayEndHere() const { return false; }

  // The next Decode() starts a member, also in the middle of another.
  virtual void Reset() = 0;

  // Decodes a piece. No progress without an error: more of `in` is needed.
  virtual Step Decode(ByteView in, MutableByteView out) = 0;
};

// The text of all members of a file, as one stream. Bytes that are not a member
// are an error, except zeros that padding() allows.
class MemberStream final : public ByteStream {
 public:
  // `name` is for messages.
  MemberStream(std::unique_ptr<ByteStream> compressed, std::string name,
               std::unique_ptr<MemberDecoder> decoder);

  ~MemberStream() override { EndMember(TextCheck::State::kFailed); }

  MemberStream(const MemberStream&) = delete;
  MemberStream& operator=(const MemberStream&) = delete;

  // Errors: DataLoss  truncated inside a member, damaged, wrong checksum, or
  //                   bytes between members; the message has the offset in the
  //                   compressed file. And those of the compressed stream.
  absl::StatusOr<size_t> Read(MutableByteView out) override;

  bool IsVerified() const override;

  // Only the last members are remembered.
  std::optional<uint64_t> PartEnd(uint64_t text_offset) const override;

  std::shared_ptr<const TextCheck> AwaitedCheck(
      uint64_t text_size_bytes) const override;

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

  // Ensures that there are `size` bytes of input, unless the file ends before.
  // REQUIRES: size <= input_.size().
  absl::Status Refill(size_t size = 1);
  // Starts the next member; false at the end of the file.
  absl::StatusOr<bool> StartMember();
  // Passes over zeros after a member; returns their number.
  absl::StatusOr<uint64_t> PassPadding();
  // Returns the error for bytes that are not a member.
  absl::Status TrailingBytes();
  // Records that a member begins at the next compressed byte.
  void BeginMember();
  // Leaves the member, if in one.
  void EndMember(TextCheck::State check);
  absl::StatusOr<size_t> DecodePiece(MutableByteView out);
  // Returns the offset of the first member at or after `offset` of the file
  // whose text begins as `is_start` requires. Without one, returns the end of
  // the file and sets `at_end_`.
  absl::StatusOr<uint64_t> FindMember(uint64_t offset, IsPartStart is_start);
  // True if `bytes`, possibly truncated, begin a member of such text.
  bool BeginsMember(ByteView bytes, IsPartStart is_start);
  absl::Status Damaged(absl::string_view what,
                       absl::string_view remedy = "") const;

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
  // That of the last member; null before the first.
  std::shared_ptr<TextCheck> check_;
  bool at_end_ = false;
  // Damage after the text that the last Read() returned.
  absl::Status damage_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_MEMBER_STREAM_H_
