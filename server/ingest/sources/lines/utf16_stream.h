// SPDX-License-Identifier: GPL-3.0-or-later
#ifndef QUIRE_SERVER_INGEST_SOURCES_LINES_UTF16_STREAM_H_
#define QUIRE_SERVER_INGEST_SOURCES_LINES_UTF16_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "server/ingest/sources/streams/byte_stream.h"

namespace quire {

// Appends a character as UTF-8. REQUIRES: code < 0x110000, not a surrogate.
void AppendUtf8(uint32_t code, std::string& out);

// Unicode encodings that are not UTF-8.
enum class WideEncoding { kUtf16Little, kUtf16Big, kUtf32 };

// Returns the encoding that a byte order mark at the start of a text names.
std::optional<WideEncoding> WideEncodingOf(absl::string_view start);

// The characters of a stream in UTF-16, its byte order mark included, as UTF-8.
// Errors: DataLoss  half a surrogate pair or half a character, with its offset;
//         those of the stream. Thread-compatible.
class Utf16Stream final : public ByteStream {
 public:
  // `name` is for messages.
  Utf16Stream(std::unique_ptr<ByteStream> stream, bool is_big_endian,
              std::string name);

  absl::StatusOr<size_t> Read(MutableByteView out) override;

 private:
  // Converts the next piece; false at the end.
  absl::StatusOr<bool> Convert();
  absl::Status AddUnit(uint32_t unit);
  absl::Status Malformed(absl::string_view what) const;

  const std::unique_ptr<ByteStream> stream_;
  const bool is_big_endian_;
  const std::string name_;
  // Offset of the next unit in the stream.
  uint64_t offset_ = 0;
  // The first byte of a unit, and the first half of a pair.
  std::optional<uint8_t> odd_byte_;
  std::optional<uint32_t> high_;
  std::string text_;
  size_t position_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_LINES_UTF16_STREAM_H_
