// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/stored_text.h"

#include <zlib.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr double kEstimateSecondsMax = 0.25;
constexpr uint64_t kEstimateBlockCount = 16;

// Encodes to the front of `stored`; adds to `cpu_seconds`.
absl::StatusOr<size_t> TimedEncode(const BlockCodec& encoder, ByteView raw,
                                   MutableByteView stored,
                                   BlockCodec::Scratch& scratch,
                                   double& cpu_seconds) {
  const double started = ThreadCpuSeconds();
  absl::StatusOr<size_t> size = encoder.Encode(raw, stored, scratch);
  cpu_seconds += ThreadCpuSeconds() - started;
  return size;
}

absl::Status Differs(const BlockCodec& decoder, absl::string_view what,
                     uint64_t offset) {
  return absl::DataLossError(
      absl::StrCat(decoder.info().name, ": ", what, " at offset ", offset,
                   " of the sample decodes to other bytes than were encoded"));
}

}  // namespace

double ThreadCpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

absl::StatusOr<double> EstimateEncodeSecondsPerByte(const BlockCodec& encoder,
                                                    const TextSample& text,
                                                    uint32_t block_size_bytes) {
  const auto size = static_cast<size_t>(
      std::min<uint64_t>(block_size_bytes, text.size_bytes()));
  if (size == 0) {
    return 0.0;
  }
  const std::unique_ptr<BlockCodec::Scratch> scratch = encoder.NewScratch();
  std::vector<uint8_t> raw(size);
  std::vector<uint8_t> stored(encoder.StoredSizeMax(size));
  double cpu_seconds = 0;
  uint64_t done_bytes = 0;
  // The first block, which allocates, does not count.
  for (uint64_t i = 0; i <= kEstimateBlockCount; ++i) {
    const uint64_t offset =
        (text.size_bytes() - size) / kEstimateBlockCount * i;
    QUIRE_RETURN_IF_ERROR(text.Read(offset, raw));
    double block_seconds = 0;
    QUIRE_RETURN_IF_ERROR(
        TimedEncode(encoder, raw, stored, *scratch, block_seconds).status());
    if (i > 0) {
      cpu_seconds += block_seconds;
      done_bytes += size;
    }
    if (i > 0 && cpu_seconds > kEstimateSecondsMax) {
      break;
    }
  }
  return cpu_seconds / static_cast<double>(done_bytes);
}

// Encodes blocks first, first + n, ...; returns the CPU seconds of it.
absl::StatusOr<double> StoredText::EncodeEveryNth(const BlockCodec& encoder,
                                                  const TextSample& text,
                                                  size_t first, size_t n) {
  const std::unique_ptr<BlockCodec::Scratch> scratch = encoder.NewScratch();
  std::vector<uint8_t> raw_buffer(block_size_bytes_);
  std::vector<uint8_t> stored(encoder.StoredSizeMax(block_size_bytes_));
  double cpu_seconds = 0;
  for (size_t i = first; i < blocks_.size(); i += n) {
    const MutableByteView raw = MutableByteView(raw_buffer).first(BlockSize(i));
    QUIRE_RETURN_IF_ERROR(text.Read(i * uint64_t{block_size_bytes_}, raw));
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        TimedEncode(encoder, raw, stored, *scratch, cpu_seconds));
    blocks_[i].assign(stored.begin(),
                      stored.begin() + static_cast<ptrdiff_t>(size));
  }
  return cpu_seconds;
}

absl::StatusOr<StoredText> StoredText::Encode(const BlockCodec& encoder,
                                              const TextSample& text,
                                              uint32_t block_size_bytes,
                                              size_t thread_count) {
  StoredText result(block_size_bytes);
  result.size_bytes_ = text.size_bytes();
  result.blocks_.resize(static_cast<size_t>(
      (text.size_bytes() + block_size_bytes - 1) / block_size_bytes));
  std::vector<absl::StatusOr<double>> cpu_seconds(thread_count, 0.0);
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < thread_count; ++i) {
      threads.emplace_back([&, i] {
        cpu_seconds[i] = result.EncodeEveryNth(encoder, text, i, thread_count);
      });
    }
  }
  for (const absl::StatusOr<double>& seconds : cpu_seconds) {
    QUIRE_RETURN_IF_ERROR(seconds.status());
    result.encode_cpu_seconds_ += *seconds;
  }
  for (const std::vector<uint8_t>& block : result.blocks_) {
    result.payload_bytes_ += block.size();
  }
  QUIRE_RETURN_IF_ERROR(result.MeasureIndex());
  return result;
}

absl::Status StoredText::MeasureIndex() {
  std::vector<uint8_t> sizes(blocks_.size() * sizeof(uint32_t));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    StoreLittleEndian(static_cast<uint32_t>(blocks_[i].size()),
                      sizes.data() + i * sizeof(uint32_t));
  }
  uLongf packed_size = compressBound(static_cast<uLong>(sizes.size()));
  std::vector<uint8_t> packed(packed_size);
  if (compress2(packed.data(), &packed_size, sizes.data(),
                static_cast<uLong>(sizes.size()), Z_BEST_COMPRESSION) != Z_OK) {
    return absl::InternalError("zlib does not compress the block index");
  }
  index_bytes_ = packed_size;
  return absl::OkStatus();
}

size_t StoredText::BlockSize(size_t index) const {
  return static_cast<size_t>(std::min<uint64_t>(
      block_size_bytes_, size_bytes_ - index * uint64_t{block_size_bytes_}));
}

absl::StatusOr<size_t> StoredText::DecodeBlock(
    const BlockCodec& decoder, size_t index, MutableByteView raw,
    BlockCodec::Scratch& scratch) const {
  const size_t size = BlockSize(index);
  QUIRE_RETURN_IF_ERROR(
      decoder.Decode(blocks_[index], raw.first(size), scratch));
  return size;
}

absl::Status StoredText::DecodeRange(const BlockCodec& decoder, uint64_t offset,
                                     MutableByteView out,
                                     BlockCodec::Scratch& scratch) const {
  while (!out.empty()) {
    const auto index = static_cast<size_t>(offset / block_size_bytes_);
    const auto inside = static_cast<size_t>(offset % block_size_bytes_);
    const size_t block_size = BlockSize(index);
    const MutableByteView part =
        out.first(std::min(out.size(), block_size - inside));
    QUIRE_RETURN_IF_ERROR(part.size() == block_size
                              ? decoder.Decode(blocks_[index], part, scratch)
                              : decoder.DecodeRange(blocks_[index], block_size,
                                                    inside, part, scratch));
    offset += part.size();
    out = out.subspan(part.size());
  }
  return absl::OkStatus();
}

absl::Status StoredText::CheckBlocks(const BlockCodec& decoder,
                                     const TextSample& text) const {
  const std::unique_ptr<BlockCodec::Scratch> scratch = decoder.NewScratch();
  std::vector<uint8_t> decoded(block_size_bytes_);
  std::vector<uint8_t> original(block_size_bytes_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const size_t size,
                           DecodeBlock(decoder, i, decoded, *scratch));
    const uint64_t offset = i * uint64_t{block_size_bytes_};
    QUIRE_RETURN_IF_ERROR(
        text.Read(offset, MutableByteView(original).first(size)));
    if (!std::equal(original.begin(),
                    original.begin() + static_cast<ptrdiff_t>(size),
                    decoded.begin())) {
      return Differs(decoder, "the block", offset);
    }
  }
  return absl::OkStatus();
}

absl::Status StoredText::CheckRanges(const BlockCodec& decoder,
                                     const TextSample& text, int range_count,
                                     uint32_t range_size_bytes) const {
  const auto size =
      static_cast<size_t>(std::min<uint64_t>(range_size_bytes, size_bytes_));
  const std::unique_ptr<BlockCodec::Scratch> scratch = decoder.NewScratch();
  std::vector<uint8_t> decoded(size);
  std::vector<uint8_t> original(size);
  std::mt19937_64 random(1);
  for (int i = 0; i < range_count; ++i) {
    const uint64_t offset = random() % (size_bytes_ - size + 1);
    QUIRE_RETURN_IF_ERROR(DecodeRange(decoder, offset, decoded, *scratch));
    QUIRE_RETURN_IF_ERROR(text.Read(offset, original));
    if (original != decoded) {
      return Differs(decoder, "a range", offset);
    }
  }
  return absl::OkStatus();
}

absl::Status StoredText::Check(const BlockCodec& decoder,
                               const TextSample& text, int range_count,
                               uint32_t range_size_bytes) const {
  QUIRE_RETURN_IF_ERROR(CheckBlocks(decoder, text));
  return CheckRanges(decoder, text, range_count, range_size_bytes);
}

}  // namespace quire
