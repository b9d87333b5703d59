// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_MEMBER_READER_H_
#define QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_MEMBER_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// A member of a gzip file (RFC 1952), or the bytes after the last.
struct GzipMember {
  // Bytes in the file, and of text.
  uint64_t size_bytes = 0;
  uint64_t text_size_bytes = 0;
  // False: bytes that are not a member.
  bool is_member = false;
  // Header and stream with its trailer, and text; both empty if there is more
  // of either than is kept.
  size_t header_size = 0;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> text;
};

// Divides a gzip file into its members. Thread-compatible.
class GzipMemberReader {
 public:
  // Keeps members of at most `kept_text_size_bytes_max` of text and, in the
  // file, of twice that and a header. `on_bytes` gets all bytes of the file,
  // `on_text` all text, in pieces, in order; both must outlive the reader.
  GzipMemberReader(std::unique_ptr<ByteStream> file,
                   uint64_t kept_text_size_bytes_max,
                   absl::FunctionRef<void(ByteView)> on_bytes,
                   absl::FunctionRef<void(ByteView)> on_text);
  ~GzipMemberReader();
  GzipMemberReader(const GzipMemberReader&) = delete;
  GzipMemberReader& operator=(const GzipMemberReader&) = delete;

  // Returns the next member, or at the end all bytes that follow the last;
  // unset after that. Errors: DataLoss  damaged or truncated; those of the
  // stream.
  absl::StatusOr<std::optional<GzipMember>> Next();

 private:
  struct Inflater;

  // Reads until there are `size` bytes in the buffer, or the file ends.
  absl::Status Fill(size_t size);
  // Returns the size of the header at the front of the buffer; unset if it is
  // none.
  absl::StatusOr<std::optional<size_t>> HeaderSize();
  bool IsKept(const GzipMember& member) const;
  // Moves bytes from the front of the buffer to the member.
  void Take(size_t size, GzipMember& member);
  absl::Status ReadStream(GzipMember& member);
  absl::Status ReadRest(GzipMember& member);

  ByteView buffered() const {
    return ByteView(buffer_).subspan(begin_, end_ - begin_);
  }

  const std::unique_ptr<ByteStream> file_;
  const uint64_t kept_text_size_bytes_max_;
  const absl::FunctionRef<void(ByteView)> on_bytes_;
  const absl::FunctionRef<void(ByteView)> on_text_;
  const std::unique_ptr<Inflater> inflater_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool at_end_ = false;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_STREAMS_GZIP_MEMBER_READER_H_
