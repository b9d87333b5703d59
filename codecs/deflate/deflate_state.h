// SPDX-License-Identifier: Apache-2.0
//
// The search for matches, as zlib and gzip do it; what DeflateEncoder hides,
// and DeflateFinder looks into.
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

// A window of two times the distance that matches may have, through which the
// text passes: when its upper half is nearly used up it moves down. Chains of
// places whose next three bytes have the same hash lead back through it. Place
// 0 ends a chain, so what lies there is never found: which place that is
// depends on when the window moves, and so do the bytes.
//
// Where these turn out to be long, chains of places whose next four bytes have
// the same hash are followed instead: they have all matches of four bytes and
// more, and fewer places. As each place knows which one in its chain of three
// bytes it is, how far the search would have gone there is known, and the
// matches are the same.
//
// Thread-compatible.
class DeflateState {
 public:
  // As DeflateEncoder::Encode(), whose REQUIRES and errors hold. The first
  // symbols must be `expected`, as far as it and the first block go: another
  // ends the work soon, Cancelled.
  absl::Status Encode(const DeflateParameters& parameters, ByteView text,
                      DeflateEncoder::Sink sink, const DeflateLimits& limits,
                      std::span<const DeflateSymbol> expected = {});

  // As DeflateEncoder::EncodePieces(), and as Encode().
  absl::Status EncodePieces(const DeflateParameters& parameters,
                            uint64_t text_size, DeflateEncoder::Source source,
                            DeflateEncoder::Sink sink,
                            const DeflateLimits& limits,
                            std::span<const DeflateSymbol> expected = {});

  uint64_t work() const { return work_; }

  // What the last Encode() that was ended early has not come to. Bytes of the
  // text; work() counts them all.
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

  // After each symbol: false if the work is to end. The symbol is what the
  // search at `symbol_at` led to.
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

  // What the parameters mean.
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
  // No match is looked for behind this place.
  size_t search_end_ = 0;

  size_t text_size_ = 0;
  // How much of the text is not in the window yet, and the front of that.
  size_t left_size_ = 0;
  ByteView piece_;
  std::vector<uint8_t> window_;
  std::vector<uint16_t> head_;
  std::vector<uint16_t> previous_;
  // While the search is by four bytes: which one in its chain of three each
  // place is, modulo 2^16, and how many places each of these has had.
  bool may_use_fours_ = false;
  bool starts_fours_ = false;
  bool by_four_ = false;
  std::vector<uint16_t> number_;
  std::vector<uint16_t> numbers_;
  // Chains of places whose next four bytes have the same hash, of all places
  // before `fours_end_`.
  std::vector<uint16_t> head_of_four_;
  std::vector<uint16_t> previous_of_four_;
  size_t fours_end_ = 0;
  // Places in the window: what is encoded next, how much of the text follows
  // there, where the last match that was found begins, and where the block
  // does: below 0 once that has left the window.
  size_t at_ = 0;
  size_t ahead_ = 0;
  size_t match_at_ = 0;
  int64_t block_at_ = 0;
  bool at_end_ = false;
  // How many symbols of the block call for a look at it.
  size_t stop_ = 0;
  // How many of the expected symbols have come.
  size_t compared_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_DEFLATE_DEFLATE_STATE_H_
