// SPDX-License-Identifier: Apache-2.0
//
// The search for matches, as zlib and gzip do it. DeflateEncoder hides it;
// DeflateFinder looks into it.
#ifndef QUIRE_CODECS_DEFLATE_DEFLATE_STATE_H_
#define QUIRE_CODECS_DEFLATE_DEFLATE_STATE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"
#include "codecs/deflate/deflate_block_writer.h"
#include "codecs/deflate/deflate_encoder.h"
#include "codecs/deflate/deflate_parameters.h"

namespace quire {

// Number of symbols after which gzip checks whether the block should end, and
// the most in a block.
inline constexpr size_t kGzipPeriod = 4096;
inline constexpr size_t kGzipBlockSymbols = 32767;

// A sliding window of twice the maximum distance of matches. The text passes
// through it: once its upper half is nearly used up, that half moves down. Hash
// chains link positions whose next three bytes have the same hash. Position 0
// ends a chain, so it is never found as a match. Which byte of the text that is
// depends on when the window moves, and so does the output.
//
// Where these chains turn out to be long, chains of positions whose next four
// bytes have the same hash are followed instead: they hold all matches of four
// bytes and more, and fewer positions. Each position stores its rank in its
// chain of three bytes. With it a search by four ends where a search by three
// would, and the matches are the same.
//
// Thread-compatible.
class DeflateState {
 public:
  // Same as DeflateEncoder::Encode(), whose REQUIRES and errors hold. Ends soon
  // with Cancelled if the first symbols differ from `expected`, which may end
  // earlier or later than the first block.
  absl::Status Encode(const DeflateParameters& parameters, ByteView text,
                      DeflateEncoder::Sink sink, const DeflateLimits& limits,
                      std::span<const DeflateSymbol> expected = {});

  // Same for DeflateEncoder::EncodePieces().
  absl::Status EncodePieces(const DeflateParameters& parameters,
                            uint64_t text_size, DeflateEncoder::Source source,
                            DeflateEncoder::Sink sink,
                            const DeflateLimits& limits,
                            std::span<const DeflateSymbol> expected = {});

  uint64_t work() const { return work_; }

  // Bytes of the text that the last Encode() did not reach because it ended
  // early; work() counts them all.
  size_t unread_size() const { return left_size_ + ahead_; }

 private:
  void Start(const DeflateParameters& parameters, size_t text_size);
  bool FindGreedily(DeflateEncoder::Sink sink);
  bool FindLazily(DeflateEncoder::Sink sink);
  bool FindRuns(DeflateEncoder::Sink sink);
  bool FindNothing(DeflateEncoder::Sink sink);

  void Fill();
  bool NextPiece();
  void Move();

  void Refill(size_t wanted) {
    if (ahead_ < wanted && !at_end_) {
      Fill();
    }
  }

  uint32_t HashOfThree(size_t position) const;
  uint32_t Insert(size_t position);
  void StartFours();
  void InsertFours();
  size_t LongestMatch(uint32_t candidate, size_t best);
  size_t LongestMatchByFour(uint32_t candidate, size_t best);

  // Called after each symbol; false if the work is to end. `symbol_at` is the
  // position whose search led to the symbol.
  bool AfterSymbol(size_t symbol_at, DeflateEncoder::Sink sink) {
    return block_.size() != stop_ || AtStop(symbol_at, sink);
  }

  bool AtStop(size_t symbol_at, DeflateEncoder::Sink sink);
  void SetStop();
  bool IsExpected();
  bool EndsEarly(size_t symbol_at);
  bool Flush(bool is_last, DeflateEncoder::Sink sink);

  DeflateBlockWriter block_;
  const DeflateLimits* limits_ = nullptr;
  const DeflateEncoder::Source* source_ = nullptr;
  std::span<const DeflateSymbol> expected_;
  absl::Status status_;
  uint64_t work_ = 0;

  // Derived from the parameters.
  bool is_gzip_ = false;
  bool may_end_early_ = false;
  bool only_long_ = false;
  size_t block_symbols_max_ = 0;
  uint32_t good_length_ = 0;
  uint32_t lazy_length_max_ = 0;
  uint32_t nice_length_ = 0;
  uint32_t chain_max_ = 0;
  uint32_t hash_shift_ = 0;
  uint32_t hash_mask_ = 0;
  size_t window_size_ = 0;
  size_t distance_max_ = 0;
  // No search starts after this position.
  size_t search_end_ = 0;

  size_t text_size_ = 0;
  // Size of the text that is not in the window yet, and the front of that text.
  size_t left_size_ = 0;
  ByteView piece_;
  std::vector<uint8_t> window_;
  std::vector<uint16_t> head_;
  std::vector<uint16_t> previous_;
  // For the search by four bytes: the rank of each position in its chain of
  // three, modulo 2^16, and the size of each of these chains.
  bool may_use_fours_ = false;
  bool starts_fours_ = false;
  bool by_four_ = false;
  std::vector<uint16_t> number_;
  std::vector<uint16_t> numbers_;
  // Chains by four bytes, of all positions before `fours_end_`.
  std::vector<uint16_t> head_of_four_;
  std::vector<uint16_t> previous_of_four_;
  size_t fours_end_ = 0;
  // Position in the window of the next byte to encode; size of the text from
  // there on; positions of the last match and of the block's start, which is
  // negative once that has left the window.
  size_t at_ = 0;
  size_t ahead_ = 0;
  size_t match_at_ = 0;
  int64_t block_at_ = 0;
  bool at_end_ = false;
  // Size of the block at which it is next checked.
  size_t stop_ = 0;
  // Number of expected symbols compared so far.
  size_t compared_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_STATE_H_
