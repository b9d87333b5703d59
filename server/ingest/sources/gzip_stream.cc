// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/sources/gzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr size_t kInputSizeBytes = 64 << 10;
// 15 bits of window, and 16 for a gzip header only.
constexpr int kGzipWindowBits = 15 + 16;
// Start of a member: deflate is the only method.
constexpr std::array<uint8_t, 3> kMagic = {0x1F, 0x8B, 8};
// Number of members remembered.
constexpr size_t kKnownMemberCount = 1024;
// Prefix that identifies a member: header, code table and first bytes.
constexpr size_t kMemberStartSizeBytes = 1024;
constexpr size_t kBeginningSizeBytesMax = 16;

}  // namespace

struct GzipStream::Inflater {
  z_stream stream = {};
};

GzipStream::GzipStream(std::unique_ptr<ByteStream> compressed, std::string name,
                       std::unique_ptr<Inflater> inflater)
    : compressed_(std::move(compressed)),
      name_(std::move(name)),
      inflater_(std::move(inflater)),
      input_(kInputSizeBytes) {}

absl::StatusOr<std::unique_ptr<GzipStream>> GzipStream::Create(
    std::unique_ptr<ByteStream> compressed, std::string name) {
  auto inflater = std::make_unique<Inflater>();
  if (inflateInit2(&inflater->stream, kGzipWindowBits) != Z_OK) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": no memory to decompress it"));
  }
  return std::unique_ptr<GzipStream>(new GzipStream(
      std::move(compressed), std::move(name), std::move(inflater)));
}

GzipStream::~GzipStream() {
  inflateEnd(&inflater_->stream);
}

uint64_t GzipStream::offset() const {
  return read_bytes_ - inflater_->stream.avail_in;
}

absl::Status GzipStream::Damaged(const char* what) const {
  return absl::DataLossError(absl::StrCat(
      name_, ": ", what, " at byte ", offset(), " of the compressed file, in ",
      "gzip member ", member_count_, " that starts at byte ",
      members_.empty() ? 0 : members_.back().offset));
}

absl::Status GzipStream::Refill() {
  z_stream& z = inflater_->stream;
  if (z.avail_in == 0) {
    QUIRE_ASSIGN_OR_RETURN(const size_t got, compressed_->Read(input_));
    z.next_in = input_.data();
    z.avail_in = static_cast<uInt>(got);
    read_bytes_ += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> GzipStream::StartMember() {
  z_stream& z = inflater_->stream;
  QUIRE_RETURN_IF_ERROR(Refill());
  // Padding to the block size of a medium.
  const bool padded = member_count_ > 0 && z.avail_in > 0 && z.next_in[0] == 0;
  while (padded && z.avail_in > 0) {
    if (z.next_in[0] != 0) {
      BeginMember();
      return Damaged("bytes that are not gzip");
    }
    ++z.next_in;
    --z.avail_in;
    QUIRE_RETURN_IF_ERROR(Refill());
  }
  if (z.avail_in == 0) {
    at_end_ = true;
    return false;
  }
  BeginMember();
  inflateReset(&z);
  return true;
}

void GzipStream::BeginMember() {
  if (members_.size() == kKnownMemberCount) {
    members_.pop_front();
  }
  members_.push_back({.text_offset = text_size_bytes_, .offset = offset()});
  ++member_count_;
  in_member_ = true;
}

absl::StatusOr<size_t> GzipStream::Read(MutableByteView out) {
  z_stream& z = inflater_->stream;
  z.next_out = out.data();
  const size_t want = std::min<size_t>(out.size(), 1 << 30);
  z.avail_out = static_cast<uInt>(want);
  while (!at_end_ && z.avail_out == want) {
    if (!in_member_) {
      QUIRE_ASSIGN_OR_RETURN(const bool more, StartMember());
      if (!more) {
        break;
      }
    }
    QUIRE_RETURN_IF_ERROR(Refill());
    if (z.avail_in == 0) {
      return Damaged("the file ends (is it truncated?)");
    }
    const int result = inflate(&z, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      in_member_ = false;
      members_.back().end_offset = offset();
    } else if (result != Z_OK) {
      if (z.avail_out < want) {
        // The text before the damage is valid; zlib repeats its error at the
        // next call.
        break;
      }
      return Damaged(z.msg != nullptr ? z.msg : "damaged gzip data");
    }
  }
  text_size_bytes_ += want - z.avail_out;
  return want - z.avail_out;
}

bool GzipStream::IsVerified() const {
  return !in_member_ || members_.back().text_offset == text_size_bytes_;
}

absl::StatusOr<std::optional<ByteStream::SkippedPart>> GzipStream::SkipPart(
    uint64_t text_offset, absl::string_view beginning) {
  QUIRE_CHECK(beginning.size() <= kBeginningSizeBytesMax);
  if (members_.empty() || !compressed_->Seek(0)) {
    return std::nullopt;
  }
  Member skipped = members_.front();
  for (const Member& member : members_) {
    if (member.text_offset <= text_offset) {
      skipped = member;
    }
  }
  QUIRE_ASSIGN_OR_RETURN(
      const uint64_t next,
      FindMember(std::max(skipped.offset + 1, skipped.end_offset), beginning));
  compressed_->Seek(next);
  read_bytes_ = next;
  inflater_->stream.avail_in = 0;
  in_member_ = false;
  text_size_bytes_ = 0;
  members_.clear();
  return SkippedPart{.offset = skipped.offset,
                     .size_bytes = next - skipped.offset,
                     .is_last = at_end_};
}

absl::StatusOr<uint64_t> GzipStream::FindMember(uint64_t offset,
                                                absl::string_view beginning) {
  at_end_ = false;
  while (true) {
    compressed_->Seek(offset);
    QUIRE_ASSIGN_OR_RETURN(const size_t size, ReadFully(*compressed_, input_));
    at_end_ = size < input_.size();
    const size_t step = at_end_ ? size : size - kMemberStartSizeBytes;
    for (size_t i = 0; i < step; ++i) {
      if (input_[i] == kMagic[0] &&
          BeginsMember(MutableByteView(input_).subspan(i, size - i),
                       beginning)) {
        at_end_ = false;
        return offset + i;
      }
    }
    offset += step;
    if (at_end_) {
      return offset;
    }
  }
}

bool GzipStream::BeginsMember(MutableByteView bytes,
                              absl::string_view beginning) {
  if (bytes.size() < kMagic.size() ||
      !std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return false;
  }
  std::array<uint8_t, kBeginningSizeBytesMax> text = {};
  z_stream& z = inflater_->stream;
  inflateReset(&z);
  z.next_in = bytes.data();
  z.avail_in = static_cast<uInt>(std::min(bytes.size(), kMemberStartSizeBytes));
  z.next_out = text.data();
  z.avail_out = static_cast<uInt>(beginning.size());
  const int result = inflate(&z, Z_SYNC_FLUSH);
  return (result == Z_OK || result == Z_STREAM_END) && z.avail_out == 0 &&
         AsText(ByteView(text)).substr(0, beginning.size()) == beginning;
}

}  // namespace quire
