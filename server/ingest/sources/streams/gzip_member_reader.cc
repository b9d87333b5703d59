// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/streams/gzip_member_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kBufferSizeBytes = 256 << 10;
constexpr size_t kTextPieceSizeBytes = 64 << 10;
// Headers are searched for their ends in as many bytes.
constexpr size_t kHeaderSizeMax = kBufferSizeBytes / 2;

// RFC 1952, section 2.3.
constexpr size_t kFixedHeaderSize = 10;
constexpr size_t kTrailerSize = 8;
constexpr uint8_t kHasHeaderChecksum = 2;
constexpr uint8_t kHasExtra = 4;
constexpr uint8_t kHasName = 8;
constexpr uint8_t kHasComment = 16;

// Raw streams.
constexpr int kWindowBits = -15;

}  // namespace

struct GzipMemberReader::Inflater {
  Inflater() { is_ready = inflateInit2(&stream, kWindowBits) == Z_OK; }

  ~Inflater() { inflateEnd(&stream); }

  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream = {};
  bool is_ready = false;
  std::vector<uint8_t> piece = std::vector<uint8_t>(kTextPieceSizeBytes);
};

GzipMemberReader::GzipMemberReader(std::unique_ptr<ByteStream> file,
                                   uint64_t kept_text_size_bytes_max,
                                   absl::FunctionRef<void(ByteView)> on_bytes,
                                   absl::FunctionRef<void(ByteView)> on_text)
    : file_(std::move(file)),
      kept_text_size_bytes_max_(kept_text_size_bytes_max),
      on_bytes_(on_bytes),
      on_text_(on_text),
      inflater_(std::make_unique<Inflater>()),
      buffer_(kBufferSizeBytes) {}

GzipMemberReader::~GzipMemberReader() = default;

absl::Status GzipMemberReader::Fill(size_t size) {
  if (begin_ + size > buffer_.size()) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < size && !at_end_) {
    const MutableByteView left = MutableByteView(buffer_).subspan(end_);
    QUIRE_ASSIGN_OR_RETURN(const size_t got, file_->Read(left));
    on_bytes_(left.first(got));
    end_ += got;
    at_end_ = got == 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<size_t>> GzipMemberReader::HeaderSize() {
  QUIRE_RETURN_IF_ERROR(Fill(kHeaderSizeMax));
  const ByteView bytes = buffered();
  if (bytes.size() < kFixedHeaderSize || bytes[0] != 0x1F || bytes[1] != 0x8B ||
      bytes[2] != Z_DEFLATED) {
    return std::optional<size_t>();
  }
  const uint8_t flags = bytes[3];
  size_t size = kFixedHeaderSize;
  if ((flags & kHasExtra) != 0 && size + 2 <= bytes.size()) {
    size += 2 + LoadLittleEndian<uint16_t>(&bytes[size]);
  }
  for (const uint8_t has_text : {kHasName, kHasComment}) {
    if ((flags & has_text) != 0 && size < bytes.size()) {
      const ByteView rest = bytes.subspan(size);
      const auto zero = std::ranges::find(rest, uint8_t{0});
      size += static_cast<size_t>(zero - rest.begin()) + 1;
    }
  }
  size += (flags & kHasHeaderChecksum) != 0 ? 2 : 0;
  return size < bytes.size() ? std::optional(size) : std::nullopt;
}

bool GzipMemberReader::IsKept(const GzipMember& member) const {
  // A stream of empty blocks has any size.
  return member.text_size_bytes <= kept_text_size_bytes_max_ &&
         member.size_bytes <= 2 * kept_text_size_bytes_max_ + kHeaderSizeMax;
}

void GzipMemberReader::Take(size_t size, GzipMember& member) {
  member.size_bytes += size;
  if (IsKept(member)) {
    const ByteView taken = buffered().first(size);
    member.bytes.insert(member.bytes.end(), taken.begin(), taken.end());
  } else {
    member.text = std::vector<uint8_t>();
    member.bytes = std::vector<uint8_t>();
  }
  begin_ += size;
}

absl::Status GzipMemberReader::ReadStream(GzipMember& member) {
  z_stream& stream = inflater_->stream;
  inflateReset(&stream);
  uLong crc = crc32(0, nullptr, 0);
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    QUIRE_RETURN_IF_ERROR(Fill(1));
    const ByteView in = buffered();
    if (in.empty()) {
      return absl::DataLossError("the last member is truncated");
    }
    stream.next_in =
        const_cast<Bytef*>(in.data());  // NOLINT(*-pro-type-const-cast)
    stream.avail_in = static_cast<uInt>(in.size());
    stream.next_out = inflater_->piece.data();
    stream.avail_out = static_cast<uInt>(inflater_->piece.size());
    result = inflate(&stream, Z_SYNC_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::DataLossError("a member is damaged");
    }
    const ByteView text =
        ByteView(inflater_->piece)
            .first(inflater_->piece.size() - stream.avail_out);
    crc = crc32(crc, text.data(), static_cast<uInt>(text.size()));
    on_text_(text);
    member.text_size_bytes += text.size();
    if (IsKept(member)) {
      member.text.insert(member.text.end(), text.begin(), text.end());
    }
    Take(in.size() - stream.avail_in, member);
  }
  QUIRE_RETURN_IF_ERROR(Fill(kTrailerSize));
  const ByteView trailer = buffered();
  if (trailer.size() < kTrailerSize ||
      LoadLittleEndian<uint32_t>(trailer.data()) != crc ||
      LoadLittleEndian<uint32_t>(&trailer[4]) !=
          static_cast<uint32_t>(member.text_size_bytes)) {
    return absl::DataLossError("the checksum of a member is wrong");
  }
  Take(kTrailerSize, member);
  return absl::OkStatus();
}

absl::Status GzipMemberReader::ReadRest(GzipMember& member) {
  while (!buffered().empty()) {
    member.size_bytes += buffered().size();
    begin_ = end_;
    QUIRE_RETURN_IF_ERROR(Fill(1));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<GzipMember>> GzipMemberReader::Next() {
  if (!inflater_->is_ready) {
    return absl::ResourceExhaustedError("no memory for zlib");
  }
  QUIRE_RETURN_IF_ERROR(Fill(1));
  if (buffered().empty()) {
    return std::optional<GzipMember>();
  }
  GzipMember member;
  QUIRE_ASSIGN_OR_RETURN(const std::optional<size_t> header_size, HeaderSize());
  if (!header_size.has_value()) {
    QUIRE_RETURN_IF_ERROR(ReadRest(member));
    return std::optional(std::move(member));
  }
  member.is_member = true;
  member.header_size = *header_size;
  Take(*header_size, member);
  QUIRE_RETURN_IF_ERROR(ReadStream(member));
  return std::optional(std::move(member));
}

}  // namespace quire
