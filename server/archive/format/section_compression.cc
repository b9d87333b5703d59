// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/format/section_compression.h"

#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/memory/huge_pages.h"
#include "codecs/base/status_macros.h"
#include "server/archive/format/work_in_threads.h"

namespace quire {
namespace {

constexpr uint64_t kZstdWorthTryingSizeBytes = uint64_t{1} << 20;
// FORMAT.md limits both: no reader needs more than 128 MiB of history.
constexpr int kZstdWindowLogMax = 27;
// A longer history saves 0.2 % of a dictionary of 192 MiB.
constexpr uint32_t kXzHistorySizeBytesMax = uint32_t{64} << 20;
constexpr uint64_t kXzDecoderMemoryBytesMax = uint64_t{130} << 20;
// Interval between two checks of `cancel` while other threads compress.
constexpr uint32_t kCancelIntervalMs = 100;
// Matches up to this length are searched, and this deep: as small as with xz's
// own 64 and 48 or up to 0.7 % smaller, in 0.8 to 1 of the time.
constexpr uint32_t kXzMatchSizeMax = 128;
constexpr uint32_t kXzSearchDepth = 32;
constexpr int kPartsTrialLevel = 3;
constexpr size_t kPartSizeBytesMin = size_t{1} << 20;
// Input of an encoder between two checks of `cancel`, and initial output of a
// decoder, whose output grows at least as fast.
constexpr size_t kStepSizeBytes = size_t{64} << 10;
constexpr size_t kGrowthSizeBytes = size_t{1} << 20;
// Output that zstd gets space for at once, in all and per stored byte: into
// space for all of it, zstd decodes without a history of its own.
constexpr uint64_t kAtOnceSizeBytesMax = uint64_t{64} << 20;
constexpr uint64_t kAtOnceExpansionMax = 64;

struct LzmaStream {
  LzmaStream() = default;
  LzmaStream(const LzmaStream&) = delete;
  LzmaStream& operator=(const LzmaStream&) = delete;

  ~LzmaStream() { lzma_end(&stream); }

  lzma_stream stream = LZMA_STREAM_INIT;
};

// For encoders, whose tables are read at random.
void* AllocateHugePages(void* /*opaque*/, size_t count, size_t size_bytes) {
  void* const memory = calloc(count, size_bytes);
  if (memory != nullptr) {
    PreferHugePages({static_cast<const uint8_t*>(memory), count * size_bytes});
  }
  return memory;
}

void FreeHugePages(void* /*opaque*/, void* memory) {
  free(memory);
}

constexpr lzma_allocator kHugePageAllocator = {
    .alloc = &AllocateHugePages, .free = &FreeHugePages, .opaque = nullptr};

struct FreeZstd {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

bool IsCancelled(const std::atomic<bool>* cancel) {
  return cancel != nullptr && cancel->load(std::memory_order_relaxed);
}

absl::Status Cancelled() {
  return absl::CancelledError("decompression was cancelled");
}

// The archive has checksums of its own.
lzma_ret StartXz(lzma_stream& stream, size_t size, bool is_text,
                 size_t part_count) {
  lzma_options_lzma options;
  QUIRE_CHECK(!lzma_lzma_preset(&options, 9), "liblzma has no preset 9");
  const size_t part_size = (size + part_count - 1) / part_count;
  // History beyond the data would only cost memory, here and in the reader.
  options.dict_size = static_cast<uint32_t>(std::clamp<uint64_t>(
      part_size, LZMA_DICT_SIZE_MIN,
      part_count > 1 ? kXzHistorySizeBytesMax / 2 : kXzHistorySizeBytesMax));
  options.nice_len = kXzMatchSizeMax;
  options.depth = kXzSearchDepth;
  if (is_text) {
    // A letter depends on the preceding one, not on its address.
    options.lc = 4;
    options.pb = 0;
  }
  const lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options},
                                 {LZMA_VLI_UNKNOWN, nullptr}};
  if (part_count == 1) {
    return lzma_stream_encoder(&stream, filters, LZMA_CHECK_NONE);
  }
  lzma_mt parts = {};
  parts.threads = 2;
  parts.block_size = part_size;
  parts.filters = filters;
  parts.check = LZMA_CHECK_NONE;
  parts.timeout = kCancelIntervalMs;
  return lzma_stream_encoder_mt(&stream, &parts);
}

// Unset if the result would not be smaller than `raw`.
absl::StatusOr<std::optional<std::string>> CompressXz(
    ByteView raw, bool is_text, size_t part_count,
    const std::atomic<bool>* cancel) {
  LzmaStream lzma;
  lzma.stream.allocator = &kHugePageAllocator;
  QUIRE_CHECK(StartXz(lzma.stream, raw.size(), is_text, part_count) == LZMA_OK,
              "liblzma cannot start an encoder");
  std::string out(raw.size(), '\0');
  lzma.stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  lzma.stream.avail_out = out.size();
  lzma.stream.next_in = raw.data();
  for (size_t done = 0; true;) {
    if (IsCancelled(cancel)) {
      return absl::CancelledError("compression was cancelled");
    }
    if (lzma.stream.avail_in == 0) {
      lzma.stream.avail_in = std::min(kStepSizeBytes, raw.size() - done);
      done += lzma.stream.avail_in;
    }
    const lzma_ret result =
        lzma_code(&lzma.stream, done == raw.size() ? LZMA_FINISH : LZMA_RUN);
    if (result == LZMA_STREAM_END) {
      out.resize(lzma.stream.total_out);
      return out;
    }
    if (result == LZMA_MEM_ERROR) {
      return absl::ResourceExhaustedError(
          "the system gives liblzma no memory or no thread");
    }
    if (result != LZMA_OK || lzma.stream.avail_out == 0) {
      return std::nullopt;
    }
  }
}

absl::StatusOr<std::optional<std::string>> CompressZstd(
    ByteView raw, int level, const std::atomic<bool>* cancel) {
  const std::unique_ptr<ZSTD_CCtx, FreeZstd> context(ZSTD_createCCtx());
  QUIRE_CHECK(context != nullptr, "zstd is out of memory");
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  if (raw.size() > kZstdWorthTryingSizeBytes) {
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_windowLog, kZstdWindowLogMax);
  }
  ZSTD_CCtx_setPledgedSrcSize(context.get(), raw.size());
  std::string out(raw.size(), '\0');
  ZSTD_outBuffer buffer = {out.data(), out.size(), 0};
  for (size_t done = 0; true;) {
    if (IsCancelled(cancel)) {
      return absl::CancelledError("compression was cancelled");
    }
    const size_t step = std::min(kGrowthSizeBytes, raw.size() - done);
    ZSTD_inBuffer in = {raw.data() + done, step, 0};
    done += step;
    const bool is_last = done == raw.size();
    size_t rest = 0;
    do {
      rest = ZSTD_compressStream2(context.get(), &buffer, &in,
                                  is_last ? ZSTD_e_end : ZSTD_e_continue);
      QUIRE_CHECK(!ZSTD_isError(rest), ZSTD_getErrorName(rest));
      if (buffer.pos == buffer.size) {
        return std::nullopt;
      }
    } while (in.pos < in.size || (is_last && rest != 0));
    if (is_last) {
      out.resize(buffer.pos);
      return out;
    }
  }
}

// Makes space for the next piece of output, of at least `more_bytes_min` and in
// proportion to the output so far.
// The space is exact: archives are planned by the size of their dictionary, and
// resize() of a string with contents may take nearly twice as much.
// Huge pages before the first write save page faults, and a copy into huge
// pages after it: blocks read dictionaries at random.
void Grow(std::string& out, uint64_t size_bytes,
          uint64_t more_bytes_min = kGrowthSizeBytes) {
  const uint64_t more = std::max<uint64_t>(more_bytes_min, out.size());
  const uint64_t grown_size = std::min<uint64_t>(size_bytes, out.size() + more);
  std::string grown;
  grown.reserve(grown_size);
  PreferHugePages({reinterpret_cast<const uint8_t*>(grown.data()), grown_size});
  grown.append(out);
  grown.resize(grown_size);
  out = std::move(grown);
}

// Returns the size of `raw` in parts, each compressed alone by a quick method.
absl::StatusOr<uint64_t> QuickSizeInParts(ByteView raw, size_t part_count,
                                          const std::atomic<bool>* cancel) {
  const size_t part_size = (raw.size() + part_count - 1) / part_count;
  uint64_t size_bytes = 0;
  for (; !raw.empty(); raw = raw.subspan(std::min(part_size, raw.size()))) {
    const ByteView part = raw.first(std::min(part_size, raw.size()));
    QUIRE_ASSIGN_OR_RETURN(const std::optional<std::string> compressed,
                           CompressZstd(part, kPartsTrialLevel, cancel));
    size_bytes += compressed.has_value() ? compressed->size() : part.size();
  }
  return size_bytes;
}

// Returns the number of parts for xz. zstd at the trial level shows it: where
// parts make its output smaller, they make that of xz at most 0.7 % larger,
// elsewhere 2 to 5 %.
absl::StatusOr<size_t> PartCountFor(ByteView raw,
                                    const std::atomic<bool>* cancel) {
  size_t part_count = 1;
  if (raw.size() < 2 * kPartSizeBytesMin) {
    return part_count;
  }
  QUIRE_ASSIGN_OR_RETURN(uint64_t size_bytes, QuickSizeInParts(raw, 1, cancel));
  while (raw.size() / part_count >= 2 * kPartSizeBytesMin) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t in_parts_bytes,
                           QuickSizeInParts(raw, 2 * part_count, cancel));
    if (in_parts_bytes > size_bytes) {
      break;
    }
    size_bytes = in_parts_bytes;
    part_count *= 2;
  }
  return part_count;
}

absl::Status WrongSize(absl::string_view comparison, uint64_t size_bytes) {
  return absl::DataLossError(absl::StrCat("decompresses to ", comparison,
                                          " than ", size_bytes, " bytes"));
}

absl::StatusOr<std::string> DecompressXz(ByteView stored, uint64_t size_bytes,
                                         const std::atomic<bool>* cancel) {
  LzmaStream lzma;
  QUIRE_CHECK(lzma_stream_decoder(&lzma.stream, kXzDecoderMemoryBytesMax,
                                  LZMA_TELL_UNSUPPORTED_CHECK) == LZMA_OK,
              "liblzma cannot start a decoder");
  lzma.stream.next_in = stored.data();
  lzma.stream.avail_in = stored.size();
  std::string out;
  uint8_t beyond = 0;
  while (true) {
    if (IsCancelled(cancel)) {
      return Cancelled();
    }
    if (lzma.stream.avail_out == 0) {
      const size_t done = lzma.stream.total_out;
      if (done > size_bytes) {
        return WrongSize("more", size_bytes);
      }
      if (done == size_bytes) {
        lzma.stream.next_out = &beyond;
        lzma.stream.avail_out = 1;
      } else {
        if (done == out.size()) {
          Grow(out, size_bytes);
        }
        lzma.stream.next_out = reinterpret_cast<uint8_t*>(out.data()) + done;
        lzma.stream.avail_out = std::min(kGrowthSizeBytes, out.size() - done);
      }
    }
    const lzma_ret result = lzma_code(&lzma.stream, LZMA_FINISH);
    if (result == LZMA_STREAM_END) {
      break;
    }
    QUIRE_CHECK(result != LZMA_MEM_ERROR, "liblzma is out of memory");
    if (result != LZMA_OK) {
      return absl::DataLossError(absl::StrCat(
          "is not valid xz (liblzma's error ", static_cast<int>(result), ")"));
    }
  }
  if (lzma.stream.total_out != size_bytes || lzma.stream.avail_in != 0) {
    return WrongSize(lzma.stream.total_out > size_bytes ? "more" : "other",
                     size_bytes);
  }
  return out;
}

absl::StatusOr<std::string> DecompressZstd(ByteView stored, uint64_t size_bytes,
                                           const std::atomic<bool>* cancel) {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context(ZSTD_createDCtx());
  QUIRE_CHECK(context != nullptr, "zstd is out of memory");
  ZSTD_DCtx_setParameter(context.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  ZSTD_inBuffer in = {stored.data(), stored.size(), 0};
  const uint64_t step_bytes =
      std::clamp<uint64_t>(stored.size() * kAtOnceExpansionMax,
                           kGrowthSizeBytes, kAtOnceSizeBytesMax);
  std::string out;
  size_t done = 0;
  size_t hint = 1;
  // A frame is complete when the hint is 0; there is only one frame.
  while (hint != 0) {
    if (IsCancelled(cancel)) {
      return Cancelled();
    }
    if (done == out.size()) {
      Grow(out, size_bytes, step_bytes);
    }
    ZSTD_outBuffer buffer = {
        out.data(), std::min<size_t>(out.size(), done + step_bytes), done};
    const size_t in_before = in.pos;
    hint = ZSTD_decompressStream(context.get(), &buffer, &in);
    if (ZSTD_isError(hint)) {
      return absl::DataLossError(
          absl::StrCat("is not valid zstd (", ZSTD_getErrorName(hint), ")"));
    }
    if (hint != 0 && buffer.pos == done && in.pos == in_before) {
      return WrongSize(done == size_bytes ? "more" : "less", size_bytes);
    }
    done = buffer.pos;
  }
  if (done != size_bytes || in.pos != in.size) {
    return WrongSize("other", size_bytes);
  }
  return out;
}

}  // namespace

absl::StatusOr<CompressedBytes> CompressStrongly(
    ByteView raw, const CompressionEffort& effort,
    const std::atomic<bool>* cancel) {
  CompressedBytes best = {CompressionMethod::kNone,
                          std::string(AsText(raw).data(), raw.size())};
  const bool is_small = raw.size() <= kZstdWorthTryingSizeBytes;
  const bool is_large = raw.size() > effort.xz_size_bytes_max;
  const auto offer = [&](CompressionMethod method, std::string bytes) {
    if (bytes.size() < best.bytes.size()) {
      best = {method, std::move(bytes)};
    }
  };
  if (!is_large) {
    size_t part_count = 1;
    if (effort.is_text) {
      QUIRE_ASSIGN_OR_RETURN(part_count, PartCountFor(raw, cancel));
    }
    QUIRE_ASSIGN_OR_RETURN(std::optional<std::string> xz,
                           CompressXz(raw, effort.is_text, part_count, cancel));
    if (xz.has_value()) {
      offer(CompressionMethod::kXz, *std::move(xz));
    }
  }
  if (is_large && !is_small && effort.text_frame.has_value()) {
    QUIRE_ASSIGN_OR_RETURN(
        std::string frame,
        CompressTextFrame(raw, *effort.text_frame, cancel, WorkersOf(2).run));
    offer(CompressionMethod::kZstd, std::move(frame));
  } else if (is_small || is_large) {
    QUIRE_ASSIGN_OR_RETURN(
        std::optional<std::string> zstd,
        CompressZstd(raw,
                     is_small ? effort.small_zstd_level : effort.zstd_level,
                     cancel));
    if (zstd.has_value()) {
      offer(CompressionMethod::kZstd, *std::move(zstd));
    }
  }
  return best;
}

absl::StatusOr<std::string> Decompress(CompressionMethod method,
                                       ByteView stored, uint64_t size_bytes,
                                       const std::atomic<bool>* cancel) {
  switch (method) {
    case CompressionMethod::kNone:
      if (stored.size() != size_bytes) {
        return WrongSize("other", size_bytes);
      }
      return std::string(AsText(stored).data(), stored.size());
    case CompressionMethod::kZstd:
      return DecompressZstd(stored, size_bytes, cancel);
    case CompressionMethod::kXz:
      return DecompressXz(stored, size_bytes, cancel);
  }
  return absl::InternalError("unknown compression method");
}

uint64_t DecompressionBytes(uint64_t size_bytes) {
  // The decoder's history, and half of the output while it grows.
  constexpr uint64_t kHistorySizeBytesMax = uint64_t{1} << kZstdWindowLogMax;
  return std::min(size_bytes, kHistorySizeBytesMax) + size_bytes / 2;
}

}  // namespace quire
