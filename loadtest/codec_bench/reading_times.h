// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_LOADTEST_CODEC_BENCH_READING_TIMES_H_
#define QUIRE_LOADTEST_CODEC_BENCH_READING_TIMES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "loadtest/codec_bench/stored_text.h"
#include "loadtest/requests/source_text.h"

namespace quire {

struct ReadingOptions {
  // Of the ranges; at most the size of the text.
  uint64_t range_size_bytes = 16 << 10;
  // CPU time of each repetition of each loop.
  double seconds = 0.3;
  // Of which the best counts: what else runs on the machine only ever takes
  // time away.
  int repetitions = 3;
};

// Per second of one thread's CPU time.
struct ReadingTimes {
  // Of text, all blocks in order, over and over.
  double decoded_bytes = 0;
  // Ranges at random, anywhere in the text, across blocks where they lie so.
  double ranges = 0;
  // Whole documents at random; 0 if there are none.
  double documents = 0;
};

// Times reading `stored` by Google Benchmark. `documents` are where it has
// them; may be empty. REQUIRES: stored is not empty; range_size_bytes <=
// stored.size_bytes();
//           documents lie within the text. One call at a time.
// Errors: DataLoss  the codec cannot decode.
absl::StatusOr<ReadingTimes> TimeReading(
    const StoredText& stored, const BlockCodec& decoder,
    const std::vector<SourceRow>& documents, const ReadingOptions& options);

}  // namespace quire

#endif  // QUIRE_LOADTEST_CODEC_BENCH_READING_TIMES_H_
