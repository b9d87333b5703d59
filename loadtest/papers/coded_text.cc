// SPDX-License-Identifier: Apache-2.0
#include "loadtest/papers/coded_text.h"

#include <zlib.h>

#include <ctime>
#include <memory>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

constexpr int kCheckedRangeCount = 500;
constexpr size_t kCheckedRangeSizeBytes = 16 << 10;

}  // namespace

double ThreadCpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

absl::StatusOr<CodedText> CodedText::Encode(const PayloadCodec& codec,
                                            ByteView text,
                                            size_t block_size_bytes,
                                            size_t thread_count) {
  CodedText coded;
  coded.block_size_bytes_ = block_size_bytes;
  coded.size_bytes_ = text.size();
  coded.blocks_.resize((text.size() + block_size_bytes - 1) / block_size_bytes);
  std::vector<double> cpu_seconds(thread_count, 0.0);
  std::vector<absl::Status> statuses(thread_count);
  // Encodes every n-th block.
  const auto encode = [&](size_t thread) -> absl::Status {
    const std::unique_ptr<PayloadCodec::Scratch> scratch = codec.NewScratch();
    std::vector<uint8_t> buffer(codec.StoredSizeMax(block_size_bytes));
    for (size_t i = thread; i < coded.blocks_.size(); i += thread_count) {
      const size_t begin = i * block_size_bytes;
      const ByteView raw =
          text.subspan(begin, std::min(block_size_bytes, text.size() - begin));
      const double started = ThreadCpuSeconds();
      QUIRE_ASSIGN_OR_RETURN(const Payload payload,
                             codec.Encode(raw, buffer, *scratch));
      cpu_seconds[thread] += ThreadCpuSeconds() - started;
      coded.blocks_[i] = {{payload.bytes.begin(), payload.bytes.end()},
                          payload.is_raw};
    }
    return absl::OkStatus();
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < thread_count; ++i) {
      threads.emplace_back([&, i] { statuses[i] = encode(i); });
    }
  }
  for (size_t i = 0; i < thread_count; ++i) {
    QUIRE_RETURN_IF_ERROR(statuses[i]);
    coded.encode_cpu_seconds_ += cpu_seconds[i];
  }
  return coded;
}

uint64_t CodedText::payload_bytes() const {
  uint64_t size = 0;
  for (const Block& block : blocks_) {
    size += block.stored.size();
  }
  return size;
}

absl::StatusOr<uint64_t> CodedText::IndexBytes() const {
  std::vector<uint8_t> sizes(blocks_.size() * sizeof(uint32_t));
  for (size_t i = 0; i < blocks_.size(); ++i) {
    StoreLittleEndian(static_cast<uint32_t>(blocks_[i].stored.size()),
                      sizes.data() + i * sizeof(uint32_t));
  }
  return ZlibSizeBytes(sizes);
}

absl::Status CodedText::Read(const PayloadCodec& codec, uint64_t offset,
                             MutableByteView out,
                             PayloadCodec::Scratch& scratch) const {
  while (!out.empty()) {
    const auto index = static_cast<size_t>(offset / block_size_bytes_);
    const auto inside = static_cast<size_t>(offset % block_size_bytes_);
    const auto block_size = static_cast<size_t>(std::min<uint64_t>(
        block_size_bytes_, size_bytes_ - index * uint64_t{block_size_bytes_}));
    const MutableByteView part =
        out.first(std::min(out.size(), block_size - inside));
    const Payload payload = {.bytes = blocks_[index].stored,
                             .is_raw = blocks_[index].is_raw};
    QUIRE_RETURN_IF_ERROR(
        part.size() == block_size
            ? codec.Decode(payload, part, scratch)
            : codec.DecodeRange(payload, block_size, inside, part, scratch));
    offset += part.size();
    out = out.subspan(part.size());
  }
  return absl::OkStatus();
}

absl::Status CodedText::CheckRange(const PayloadCodec& codec, ByteView text,
                                   uint64_t offset, size_t size,
                                   PayloadCodec::Scratch& scratch) const {
  std::vector<uint8_t> decoded(size);
  QUIRE_RETURN_IF_ERROR(Read(codec, offset, decoded, scratch));
  if (!std::ranges::equal(decoded, text.subspan(offset, size))) {
    return absl::DataLossError(
        absl::StrCat(codec.info().name, ": the ", size, " bytes at offset ",
                     offset, " differ from the text that was encoded"));
  }
  return absl::OkStatus();
}

absl::Status CodedText::Check(const PayloadCodec& codec, ByteView text) const {
  const std::unique_ptr<PayloadCodec::Scratch> scratch = codec.NewScratch();
  for (uint64_t offset = 0; offset < size_bytes_; offset += block_size_bytes_) {
    const auto size = static_cast<size_t>(
        std::min<uint64_t>(block_size_bytes_, size_bytes_ - offset));
    QUIRE_RETURN_IF_ERROR(CheckRange(codec, text, offset, size, *scratch));
  }
  const auto size = static_cast<size_t>(
      std::min<uint64_t>(kCheckedRangeSizeBytes, size_bytes_));
  std::mt19937_64 random(1);
  for (int i = 0; i < kCheckedRangeCount; ++i) {
    QUIRE_RETURN_IF_ERROR(CheckRange(
        codec, text, random() % (size_bytes_ - size + 1), size, *scratch));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ZlibSizeBytes(ByteView text) {
  uLongf size = compressBound(text.size());
  std::vector<uint8_t> packed(size);
  if (compress2(packed.data(), &size, text.data(), text.size(),
                Z_BEST_COMPRESSION) != Z_OK) {
    return absl::InternalError("zlib does not compress the text");
  }
  return size;
}

}  // namespace quire
