// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/codec_figures.h"

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/status_macros.h"
#include "codecs/choose/wire_cost.h"

namespace quire {
namespace {

constexpr int kCheckedRangeCount = 100;
constexpr uint32_t kCheckedRangeBytes = 4096;

struct Decoded {
  absl::Status status = absl::OkStatus();
  uint64_t size_bytes = 0;
  double cpu_seconds = 0;
};

// Every n-th block, again and again.
Decoded DecodeEveryNth(const StoredText& stored, const BlockCodec& decoder,
                       size_t first, size_t n, double seconds,
                       std::vector<uint8_t>& raw) {
  Decoded decoded;
  const std::unique_ptr<BlockCodec::Scratch> scratch = decoder.NewScratch();
  const double started = ThreadCpuSeconds();
  do {
    for (size_t i = first; i < stored.block_count(); i += n) {
      const absl::StatusOr<size_t> size =
          stored.DecodeBlock(decoder, i, raw, *scratch);
      if (!size.ok()) {
        decoded.status = size.status();
        return decoded;
      }
      decoded.size_bytes += *size;
    }
    decoded.cpu_seconds = ThreadCpuSeconds() - started;
  } while (decoded.cpu_seconds < seconds && decoded.size_bytes > 0);
  return decoded;
}

absl::StatusOr<double> DecodeBytesPerSecond(const StoredText& stored,
                                            const BlockCodec& decoder,
                                            uint32_t block_size_bytes,
                                            size_t job_count, double seconds) {
  std::vector<Decoded> decoded(job_count);
  std::vector<std::vector<uint8_t>> buffers(
      job_count, std::vector<uint8_t>(block_size_bytes));
  {
    std::vector<std::jthread> threads;
    threads.reserve(job_count);
    for (size_t i = 0; i < job_count; ++i) {
      threads.emplace_back([&, i] {
        decoded[i] =
            DecodeEveryNth(stored, decoder, i, job_count, seconds, buffers[i]);
      });
    }
  }
  double size_bytes = 0;
  double cpu_seconds = 0;
  for (const Decoded& one : decoded) {
    QUIRE_RETURN_IF_ERROR(one.status);
    size_bytes += static_cast<double>(one.size_bytes);
    cpu_seconds += one.cpu_seconds;
  }
  return size_bytes / std::max(cpu_seconds, 1e-9);
}

}  // namespace

absl::StatusOr<CodecFigures> MeasureFigures(const BlockCodec& encoder,
                                            const BlockCodec& decoder,
                                            const TextSample& sample,
                                            uint32_t block_size_bytes,
                                            size_t job_count, double seconds) {
  CodecFigures figures;
  double encode_cpu_seconds = 0;
  double encoded_bytes = 0;
  const auto size_bytes = static_cast<double>(sample.size_bytes());
  do {
    QUIRE_ASSIGN_OR_RETURN(
        const StoredText stored,
        StoredText::Encode(encoder, sample, block_size_bytes, job_count));
    encode_cpu_seconds += stored.encode_cpu_seconds();
    encoded_bytes += size_bytes;
    if (figures.decode_bytes_per_second > 0) {
      continue;
    }
    QUIRE_RETURN_IF_ERROR(
        stored.Check(decoder, sample, kCheckedRangeCount,
                     static_cast<uint32_t>(std::min<uint64_t>(
                         kCheckedRangeBytes, sample.size_bytes()))));
    figures.ratio = size_bytes / static_cast<double>(std::max<uint64_t>(
                                     stored.payload_bytes(), 1));
    QUIRE_ASSIGN_OR_RETURN(
        figures.decode_bytes_per_second,
        DecodeBytesPerSecond(stored, decoder, block_size_bytes, job_count,
                             seconds));
  } while (encode_cpu_seconds < seconds * static_cast<double>(job_count));
  figures.encode_bytes_per_second =
      encoded_bytes / std::max(encode_cpu_seconds, 1e-9);
  return figures;
}

std::string FormatTables(const std::vector<NamedFigures>& codecs,
                         size_t core_count) {
  std::string text =
      absl::StrFormat("%-14s %14s %16s %8s\n", "codec", "compress MB/s",
                      "decompress MB/s", "ratio");
  for (const auto& [codec, figures] : codecs) {
    absl::StrAppendFormat(&text, "%-14s %14.0f %16.0f %8.3f\n", codec,
                          figures.encode_bytes_per_second / 1e6,
                          figures.decode_bytes_per_second / 1e6, figures.ratio);
  }
  absl::StrAppendFormat(
      &text,
      "\nCompression pays on links slower than, in MB/s (pipelined: sender and "
      "receiver work while bytes travel)\n%-14s %10s %10s %16s %16s\n",
      "codec", "1 core", "pipelined", absl::StrCat(core_count, " cores"),
      "pipelined");
  for (const auto& [codec, figures] : codecs) {
    const double plain = PaysBelowBytesPerSecond(
        figures.encode_bytes_per_second, figures.decode_bytes_per_second,
        1 / figures.ratio);
    const double pipelined = PaysPipelinedBelowBytesPerSecond(
        figures.encode_bytes_per_second, figures.decode_bytes_per_second,
        1 / figures.ratio);
    const auto cores = static_cast<double>(core_count);
    absl::StrAppendFormat(&text, "%-14s %10.0f %10.0f %16.0f %16.0f\n", codec,
                          plain / 1e6, pipelined / 1e6, cores * plain / 1e6,
                          cores * pipelined / 1e6);
  }
  return text;
}

}  // namespace quire
