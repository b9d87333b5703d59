// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/factor_streams.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

// How many bytes of lengths are decoded at a time when not all are needed.
constexpr size_t kLengthChunk = 512;
// Of a length as a varint: 2^20 has 21 bits.
constexpr size_t kLengthSizeMax = 3;
static_assert(kBlockSizeBytesMax < size_t{1} << 7 * kLengthSizeMax);

// The integers' bytes in memory are their stored form.
static_assert(std::endian::native == std::endian::little);

ByteView BytesOf(const std::vector<uint32_t>& integers) {
  return {reinterpret_cast<const uint8_t*>(integers.data()),
          integers.size() * sizeof(uint32_t)};
}

MutableByteView BytesOf(std::vector<uint32_t>& integers, size_t begin,
                        size_t count) {
  return {reinterpret_cast<uint8_t*>(integers.data() + begin),
          count * sizeof(uint32_t)};
}

// The lengths read so far, and the text they stand for.
struct LengthProgress {
  size_t count = 0;
  size_t text_size = 0;
};

// Takes lengths off the front of `bytes` until `lengths` is full; leaves over
// what may be the first part of a length.
absl::Status TakeLengths(ByteView& bytes, size_t raw_size,
                         std::vector<uint32_t>& lengths,
                         LengthProgress& progress) {
  while (progress.count < lengths.size() && !bytes.empty()) {
    uint64_t length = bytes.front();
    if (length < 0x80) {
      bytes = bytes.subspan(1);
    } else {
      if (bytes.size() < kLengthSizeMax && bytes.back() >= 0x80) {
        break;
      }
      QUIRE_ASSIGN_OR_RETURN(length, TakeVarint(bytes));
    }
    const uint64_t text_size = std::max<uint64_t>(length, 1);
    if (text_size > raw_size - progress.text_size) {
      return absl::DataLossError(absl::StrCat(
          "factor ", progress.count, " has ", text_size,
          " bytes of text where ", raw_size - progress.text_size, " are left"));
    }
    lengths[progress.count++] = static_cast<uint32_t>(length);
    progress.text_size += text_size;
  }
  return absl::OkStatus();
}

absl::Status StreamError(absl::string_view name, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(name, " stream: ", status.message()));
}

}  // namespace

absl::StatusOr<ByteView> FactorStreamWriter::Write(const FactorList& factors) {
  assert(factors.size() > 0);
  length_bytes_.clear();
  for (const uint32_t length : factors.lengths) {
    AppendVarint(length, length_bytes_);
  }
  const size_t stream_size_max =
      DeflateSizeMax(factors.size() * sizeof(uint32_t));
  if (offset_stream_.size() < stream_size_max) {
    offset_stream_.resize(stream_size_max);
    length_stream_.resize(stream_size_max);
    stored_.resize(2 * stream_size_max + 2 * kVarintSizeBytesMax);
  }
  QUIRE_ASSIGN_OR_RETURN(
      const size_t offsets_size,
      deflate_.Compress(BytesOf(factors.offsets), offset_stream_));
  QUIRE_ASSIGN_OR_RETURN(
      const size_t lengths_size,
      deflate_.Compress(AsBytes(length_bytes_), length_stream_));
  std::string header;
  AppendVarint(factors.size(), header);
  AppendVarint(offsets_size, header);
  auto end = std::ranges::copy(AsBytes(header), stored_.begin()).out;
  end = std::copy_n(offset_stream_.begin(), offsets_size, end);
  end = std::copy_n(length_stream_.begin(), lengths_size, end);
  return ByteView(stored_.begin(), end);
}

absl::Status FactorStreamReader::Read(ByteView stored, size_t raw_size,
                                      size_t end, FactorList& factors) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t factor_count, TakeVarint(stored));
  if (factor_count == 0 || factor_count > raw_size) {
    return absl::DataLossError(absl::StrCat(
        "claims ", factor_count, " factors for ", raw_size, " bytes of text"));
  }
  QUIRE_ASSIGN_OR_RETURN(const uint64_t offsets_size, TakeVarint(stored));
  if (offsets_size > stored.size()) {
    return absl::DataLossError(absl::StrCat("claims ", offsets_size,
                                            " bytes of offsets where ",
                                            stored.size(), " bytes are left"));
  }
  absl::Status status = ReadLengths(stored.subspan(offsets_size), factor_count,
                                    raw_size, end, factors.lengths);
  if (!status.ok()) {
    return StreamError("length", status);
  }
  status = ReadOffsets(stored.first(offsets_size), factors.lengths.size(),
                       end == raw_size, factors.offsets);
  return status.ok() ? status : StreamError("offset", status);
}

absl::Status FactorStreamReader::ReadLengths(ByteView stored,
                                             size_t factor_count,
                                             size_t raw_size, size_t end,
                                             std::vector<uint32_t>& lengths) {
  QUIRE_RETURN_IF_ERROR(inflate_.Start(stored));
  const bool all = end == raw_size;
  const size_t chunk_size = all ? factor_count * kLengthSizeMax : kLengthChunk;
  if (length_bytes_.size() < chunk_size + kLengthSizeMax) {
    length_bytes_.resize(chunk_size + kLengthSizeMax);
  }
  lengths.resize(factor_count);
  LengthProgress progress;
  ByteView unread;
  while (progress.count < factor_count && (all || progress.text_size < end)) {
    if (!unread.empty()) {
      std::memmove(length_bytes_.data(), unread.data(), unread.size());
    }
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        inflate_.Read(
            MutableByteView(length_bytes_).subspan(unread.size(), chunk_size)));
    if (size == 0) {
      return absl::DataLossError(absl::StrCat(
          "ends after ", progress.count, " of ", factor_count, " integers"));
    }
    unread = ByteView(length_bytes_).first(unread.size() + size);
    QUIRE_RETURN_IF_ERROR(TakeLengths(unread, raw_size, lengths, progress));
  }
  if (progress.text_size < end) {
    return absl::DataLossError(absl::StrCat("gives ", progress.text_size,
                                            " bytes of text where ", raw_size,
                                            " were expected"));
  }
  lengths.resize(progress.count);
  if (all && !unread.empty()) {
    return absl::DataLossError(absl::StrCat(unread.size(),
                                            " bytes follow the last of ",
                                            factor_count, " integers"));
  }
  return all ? inflate_.Finish() : absl::OkStatus();
}

absl::Status FactorStreamReader::ReadOffsets(ByteView stored,
                                             size_t factor_count, bool all,
                                             std::vector<uint32_t>& offsets) {
  QUIRE_RETURN_IF_ERROR(inflate_.Start(stored));
  offsets.resize(factor_count);
  const MutableByteView bytes = BytesOf(offsets, 0, factor_count);
  QUIRE_ASSIGN_OR_RETURN(const size_t size, inflate_.Read(bytes));
  if (size != bytes.size()) {
    return absl::DataLossError(
        absl::StrCat("ends before the last of ", factor_count, " integers"));
  }
  return all ? inflate_.Finish() : absl::OkStatus();
}

}  // namespace quire
