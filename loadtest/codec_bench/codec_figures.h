// SPDX-License-Identifier: Apache-2.0
//
// Tables 1 and 2 of "Data Compression for Climate Data" (Kuhn, Kunkel, Ludwig),
// for any text on this machine: what each codec makes of it while all cores do
// the same, and the throughput of a link below which that pays.
#ifndef QUIRE_LOADTEST_CODEC_BENCH_CODEC_FIGURES_H_
#define QUIRE_LOADTEST_CODEC_BENCH_CODEC_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "codecs/choose/compression_cost.h"
#include "loadtest/codec_bench/stored_text.h"
#include "loadtest/codec_bench/text_sample.h"

namespace quire {

struct NamedFigures {
  std::string codec;
  CodecFigures figures;
};

// Encodes the sample on `job_count` threads at once, decodes it likewise, for
// at least `seconds` of CPU time each, and compares. Speeds are of one thread,
// by its CPU time, while the others work. REQUIRES: sample.size_bytes() > 0,
// job_count > 0, and what StoredText::Encode() requires.
// Errors: those of StoredText::Encode() and Check().
absl::StatusOr<CodecFigures> MeasureFigures(const BlockCodec& encoder,
                                            const BlockCodec& decoder,
                                            const TextSample& sample,
                                            uint32_t block_size_bytes,
                                            size_t job_count, double seconds);

// Both tables as text; thresholds are of one core and of `core_count`.
std::string FormatTables(const std::vector<NamedFigures>& codecs,
                         size_t core_count);

}  // namespace quire

#endif  // QUIRE_LOADTEST_CODEC_BENCH_CODEC_FIGURES_H_
