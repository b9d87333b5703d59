// SPDX-License-Identifier: Apache-2.0
#include "codecs/deflate/deflate_state.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"

#include "codecs/base/endian.h"

namespace quire {
namespace {

// Maximum number of bytes that a search examines from its position on.
constexpr size_t kAheadMin = kDeflateMatchMax + kDeflateMatchMin + 1;
// Matches of the shortest length cost more than their bytes if they are further
// away than this.
constexpr size_t kShortDistanceMax = 4096;
// The longest match that the strategy `filtered` rejects.
constexpr size_t kFilteredLengthMax = 5;
constexpr uint8_t kGzipEarlyLevelMin = 3;
// Maximum number of bytes that a comparison reads past its end.
constexpr size_t kWindowSlack = kDeflateMatchMax + 16;
// Number of symbols after which the symbols of the first block are compared
// with the expected ones, repeatedly.
constexpr size_t kExpectedPeriod = 256;
// Number of symbols of a block after which its limits are checked.
constexpr size_t kLimitsPeriod = 1024;

// Search effort of a level. From a match of `good` bytes on, a quarter of the
// chain is followed. At `lazy` bytes, no better match is searched for at the
// next byte; for levels that take the first match, `lazy` is the longest match
// whose positions are all inserted. A match of `nice` bytes ends the search.
struct Effort {
  uint16_t good;
  uint16_t lazy;
  uint16_t nice;
  uint16_t chain;
};

constexpr uint8_t kLazyLevelMin = 4;
// From this level on the search can be by four bytes, once it takes more steps
// per byte than this.
constexpr uint8_t kByFourLevelMin = 8;
constexpr uint64_t kByFourStepsMin = 8;
constexpr uint32_t kHashOfFourBits = 15;
constexpr std::array<Effort, 10> kEfforts = {{{0, 0, 0, 0},
                                              {4, 4, 8, 4},
                                              {4, 5, 16, 8},
                                              {4, 6, 32, 32},
                                              {4, 4, 16, 16},
                                              {8, 16, 32, 32},
                                              {8, 16, 128, 128},
                                              {8, 32, 128, 256},
                                              {32, 128, 258, 1024},
                                              {32, 258, 258, 4096}}};

inline uint32_t HashOfFour(uint32_t bytes) {
  return (bytes * 0x9E3779B1U) >> (32 - kHashOfFourBits);
}

// Returns the number of equal bytes at `a` and `b`, at most kDeflateMatchMax.
// Reads up to 7 bytes past that maximum.
inline size_t EqualSize(const uint8_t* a, const uint8_t* b) {
  size_t size = 0;
  while (size < kDeflateMatchMax) {
    const uint64_t difference = LoadLittleEndian<uint64_t>(a + size) ^
                                LoadLittleEndian<uint64_t>(b + size);
    if (difference != 0) {
      size += static_cast<size_t>(std::countr_zero(difference)) / 8;
      return std::min(size, kDeflateMatchMax);
    }
    size += sizeof(uint64_t);
  }
  return kDeflateMatchMax;
}

}  // namespace

absl::Status DeflateState::Encode(const DeflateParameters& parameters,
                                  ByteView text, DeflateEncoder::Sink sink,
                                  const DeflateLimits& limits,
                                  std::span<const DeflateSymbol> expected) {
  return EncodePieces(
      parameters, text.size(), [&] { return absl::StatusOr<ByteView>(text); },
      sink, limits, expected);
}

absl::Status DeflateState::EncodePieces(
    const DeflateParameters& parameters, uint64_t text_size,
    DeflateEncoder::Source source, DeflateEncoder::Sink sink,
    const DeflateLimits& limits, std::span<const DeflateSymbol> expected) {
  work_ = text_size;
  if (!AreValid(parameters)) {
    return absl::InvalidArgumentError("not parameters of a DEFLATE encoder");
  }
  if (text_size > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        "a text of 4 GiB or more cannot be encoded as one member");
  }
  source_ = &source;
  limits_ = &limits;
  expected_ = expected;
  status_ = absl::OkStatus();
  Start(parameters, static_cast<size_t>(text_size));
  bool goes_on = false;
  switch (parameters.strategy) {
    case DeflateStrategy::kHuffmanOnly:
      goes_on = FindNothing(sink);
      break;
    case DeflateStrategy::kRle:
      goes_on = FindRuns(sink);
      break;
    default:
      goes_on = parameters.level < kLazyLevelMin ? FindGreedily(sink)
                                                 : FindLazily(sink);
  }
  if (goes_on && IsExpected()) {
    goes_on = Flush(/*is_last=*/true, sink);
  }
  if (!status_.ok()) {
    return status_;
  }
  return goes_on ? absl::OkStatus()
                 : absl::CancelledError("the rest is not wanted");
}

void DeflateState::Start(const DeflateParameters& parameters,
                         size_t text_size) {
  is_gzip_ = parameters.encoder == DeflateEncoderId::kGzip;
  may_end_early_ = is_gzip_ && parameters.level >= kGzipEarlyLevelMin;
  only_long_ = parameters.strategy == DeflateStrategy::kFiltered;
  block_symbols_max_ = is_gzip_
                           ? kGzipBlockSymbols
                           : (size_t{1} << (parameters.memory_level + 6)) - 1;
  const Effort& effort = kEfforts[parameters.level];
  good_length_ = effort.good;
  lazy_length_max_ = effort.lazy;
  nice_length_ = effort.nice;
  chain_max_ = effort.chain;
  // Three shifts drop the first of four bytes from the hash.
  const uint32_t hash_bits = parameters.memory_level + 7U;
  hash_shift_ = (hash_bits + 2) / 3;
  hash_mask_ = (uint32_t{1} << hash_bits) - 1;
  window_size_ = size_t{1} << parameters.window_bits;
  distance_max_ = window_size_ - kAheadMin;
  search_end_ = is_gzip_ ? 2 * window_size_ - kAheadMin : 2 * window_size_;

  // gzip compares bytes past the text; its window begins as zeros.
  window_.resize(2 * window_size_ + kWindowSlack);
  if (is_gzip_ && text_size < window_.size()) {
    std::fill(window_.begin() + static_cast<ptrdiff_t>(text_size),
              window_.end(), uint8_t{0});
  }
  head_.assign(size_t{hash_mask_} + 1, 0);
  previous_.resize(window_size_);
  may_use_fours_ = parameters.level >= kByFourLevelMin;
  starts_fours_ = false;
  by_four_ = false;
  head_of_four_.clear();
  previous_of_four_.clear();
  text_size_ = text_size;
  left_size_ = text_size;
  piece_ = {};
  at_ = 0;
  ahead_ = 0;
  match_at_ = 0;
  block_at_ = 0;
  at_end_ = false;
  compared_ = 0;
  block_.Start(parameters.strategy == DeflateStrategy::kFixed);
  SetStop();
}

// Moves the window's upper half to the lower one.
void DeflateState::Move() {
  std::memcpy(window_.data(), window_.data() + window_size_, window_size_);
  at_ -= window_size_;
  match_at_ -= window_size_;
  block_at_ -= static_cast<int64_t>(window_size_);
  const auto size = static_cast<uint16_t>(window_size_);
  fours_end_ -= std::min(fours_end_, window_size_);
  for (std::vector<uint16_t>* const places :
       {&head_, &previous_, &head_of_four_, &previous_of_four_}) {
    for (uint16_t& place : *places) {
      place = place >= size ? static_cast<uint16_t>(place - size) : uint16_t{0};
    }
  }
}

// False if the source failed: the text then ends here.
bool DeflateState::NextPiece() {
  absl::StatusOr<ByteView> piece = (*source_)();
  if (piece.ok() && !piece->empty()) {
    piece_ = *piece;
    return true;
  }
  status_ = piece.ok() ? absl::InternalError("a piece of a text is empty")
                       : piece.status();
  left_size_ = 0;
  return false;
}

void DeflateState::Fill() {
  do {
    if (at_ >= window_size_ + distance_max_) {
      Move();
    }
    size_t room = std::min(2 * window_size_ - ahead_ - at_, left_size_);
    left_size_ -= room;
    while (room > 0) {
      if (piece_.empty() && !NextPiece()) {
        return;
      }
      const size_t size = std::min(room, piece_.size());
      std::copy_n(piece_.begin(), size,
                  window_.begin() + static_cast<ptrdiff_t>(at_ + ahead_));
      piece_ = piece_.subspan(size);
      ahead_ += size;
      room -= size;
    }
  } while (ahead_ < kAheadMin && left_size_ != 0);
  // gzip reads past the end of its input only once, and then clears enough
  // bytes for a hash. zlib may still move its window.
  if (is_gzip_ && ahead_ < kAheadMin) {
    at_end_ = true;
    std::fill_n(window_.begin() + static_cast<ptrdiff_t>(at_ + ahead_),
                kDeflateMatchMin - 1, uint8_t{0});
  }
}

inline uint32_t DeflateState::HashOfThree(size_t position) const {
  const uint8_t* const bytes = window_.data() + position;
  return (uint32_t{bytes[0]} << (2 * hash_shift_) ^
          uint32_t{bytes[1]} << hash_shift_ ^ uint32_t{bytes[2]}) &
         hash_mask_;
}

// Adds a position to its chain. Returns the last position with the same hash.
inline uint32_t DeflateState::Insert(size_t position) {
  const uint32_t hash = HashOfThree(position);
  const uint16_t last = head_[hash];
  previous_[position & (window_size_ - 1)] = last;
  head_[hash] = static_cast<uint16_t>(position);
  if (by_four_) {
    number_[position & (window_size_ - 1)] = ++numbers_[hash];
  }
  return last;
}

// Switches to the search by four bytes, from `at_` on.
// REQUIRES: all earlier positions have been inserted.
void DeflateState::StartFours() {
  starts_fours_ = false;
  by_four_ = true;
  number_.resize(window_size_);
  numbers_.resize(head_.size());
  head_of_four_.assign(size_t{1} << kHashOfFourBits, 0);
  previous_of_four_.resize(window_size_);
  fours_end_ = at_ - std::min(at_, window_size_);
  for (size_t i = fours_end_; i < at_; ++i) {
    number_[i & (window_size_ - 1)] = ++numbers_[HashOfThree(i)];
  }
}

inline void DeflateState::InsertFours() {
  const uint8_t* const window = window_.data();
  const size_t mask = window_size_ - 1;
  for (; fours_end_ < at_; ++fours_end_) {
    uint16_t& head = head_of_four_[HashOfFour(
        LoadLittleEndian<uint32_t>(window + fours_end_))];
    previous_of_four_[fours_end_ & mask] = head;
    head = static_cast<uint16_t>(fours_end_);
  }
}

// Returns the size of the longest match at `at_` that is longer than `best`,
// along the chain from `candidate` on, and sets match_at_; takes the nearest of
// equally long ones. Without such a match returns `best`, or the size of the
// remaining text if that is smaller.
size_t DeflateState::LongestMatch(uint32_t candidate, size_t best) {
  const uint8_t* const window = window_.data();
  const uint8_t* const next = window + at_;
  const uint16_t* const previous = previous_.data();
  const size_t mask = window_size_ - 1;
  const size_t limit = at_ > distance_max_ ? at_ - distance_max_ : 0;
  const size_t enough =
      is_gzip_ ? nice_length_ : std::min<size_t>(nice_length_, ahead_);
  const uint32_t chain_begin =
      best >= good_length_ ? chain_max_ / 4 : chain_max_;
  uint32_t chain = chain_begin;
  const auto advance = [&] {
    candidate = previous[candidate & mask];
    --chain;
    return candidate > limit && chain != 0;
  };
  // Follows the chain to a position whose match may be longer than `best`, by
  // comparing the last bytes of the text up to there. Bytes with the same hash
  // are equal except for collisions: up to a size of 6, or 10, these are
  // therefore all bytes.
  const auto seek = [&]<typename Word>(Word all) {
    const size_t at = best < sizeof(Word) - 1 ? 0 : best + 1 - sizeof(Word);
    const Word wanted = LoadLittleEndian<Word>(next + at) & all;
    while ((LoadLittleEndian<Word>(window + candidate + at) & all) != wanted) {
      if (!advance()) {
        return false;
      }
    }
    return true;
  };
  do {
    if (!(best < 3   ? seek(uint32_t{0xFFFFFF})
          : best < 7 ? seek(~uint32_t{0})
                     : seek(~uint64_t{0}))) {
      break;
    }
    const size_t size = EqualSize(next, window + candidate);
    if (size > best) {
      match_at_ = candidate;
      best = size;
      if (size >= enough) {
        --chain;
        break;
      }
    }
  } while (advance());
  work_ += chain_begin - chain;
  return std::min(best, ahead_);
}

// Same, by the chains of four bytes. REQUIRES: ahead_ >= kAheadMin.
size_t DeflateState::LongestMatchByFour(uint32_t candidate, size_t best) {
  InsertFours();
  const uint8_t* const window = window_.data();
  const uint8_t* const next = window + at_;
  const size_t mask = window_size_ - 1;
  const size_t limit = at_ > distance_max_ ? at_ - distance_max_ : 0;
  const uint32_t chain = best >= good_length_ ? chain_max_ / 4 : chain_max_;
  const uint16_t number = number_[at_ & mask];
  const uint16_t* const previous = previous_of_four_.data();
  const uint32_t bytes = LoadLittleEndian<uint32_t>(next);
  size_t longest = std::max(best, kDeflateMatchMin);
  uint32_t steps = 0;
  uint32_t place = head_of_four_[HashOfFour(bytes)];
  // Only the first position of the chain of three bytes may be at the limit.
  for (; place > limit || (place == limit && place == candidate);
       place = previous[place & mask]) {
    if (++steps > chain) {
      // The chain mostly holds other bytes with the same hash.
      work_ += steps;
      return LongestMatch(candidate, best);
    }
    if (static_cast<uint16_t>(number - number_[place & mask]) > chain &&
        LoadLittleEndian<uint32_t>(window + place) == bytes) {
      break;
    }
    const size_t last = longest - (sizeof(uint32_t) - 1);
    if (LoadLittleEndian<uint32_t>(window + place + last) !=
        LoadLittleEndian<uint32_t>(next + last)) {
      continue;
    }
    const size_t size = EqualSize(next, window + place);
    if (size > longest) {
      match_at_ = place;
      longest = size;
      if (size >= nice_length_) {
        break;
      }
    }
  }
  if (longest == kDeflateMatchMin && best < kDeflateMatchMin) {
    // No match of four bytes: the nearest of three is the longest.
    longest = best;
    const uint32_t three = LoadLittleEndian<uint32_t>(next) << 8;
    uint32_t left = chain;
    do {
      ++steps;
      if (at_ - candidate > kShortDistanceMax) {
        break;
      }
      if (LoadLittleEndian<uint32_t>(window + candidate) << 8 == three) {
        match_at_ = candidate;
        longest = kDeflateMatchMin;
        break;
      }
      candidate = previous_[candidate & mask];
    } while (candidate > limit && --left != 0);
  }
  work_ += steps;
  return longest;
}

bool DeflateState::FindGreedily(DeflateEncoder::Sink sink) {
  for (;;) {
    Refill(kAheadMin);
    if (ahead_ == 0) {
      return true;
    }
    const uint32_t candidate = ahead_ >= kDeflateMatchMin ? Insert(at_) : 0;
    size_t length = 0;
    if (candidate != 0 && at_ - candidate <= distance_max_ &&
        at_ <= search_end_) {
      length = LongestMatch(candidate, kDeflateMatchMin - 1);
    }
    const size_t symbol_at = at_;
    if (length >= kDeflateMatchMin) {
      block_.AddMatch(at_ - match_at_, length);
      ahead_ -= length;
      if (length <= lazy_length_max_ && ahead_ >= kDeflateMatchMin) {
        for (size_t i = 1; i < length; ++i) {
          Insert(at_ + i);
        }
      }
      at_ += length;
    } else {
      block_.AddLiteral(window_[at_]);
      --ahead_;
      ++at_;
    }
    if (!AfterSymbol(symbol_at, sink)) {
      return false;
    }
  }
}

// Takes a match only if the match at the next byte is no longer.
bool DeflateState::FindLazily(DeflateEncoder::Sink sink) {
  constexpr size_t kNoMatch = kDeflateMatchMin - 1;
  size_t length = kNoMatch;
  bool has_literal = false;
  for (;;) {
    Refill(kAheadMin);
    if (ahead_ == 0) {
      break;
    }
    if (starts_fours_) {
      StartFours();
    }
    const uint32_t candidate = ahead_ >= kDeflateMatchMin ? Insert(at_) : 0;
    const size_t last_length = length;
    const size_t last_match_at = match_at_;
    length = kNoMatch;
    // No match can be longer than the rest of the text. A search for one would
    // compare bytes after it, which an earlier text may have left there, and
    // its steps would depend on them.
    if (candidate != 0 && last_length < lazy_length_max_ &&
        last_length < ahead_ && at_ - candidate <= distance_max_ &&
        at_ <= search_end_) {
      length = by_four_ && ahead_ >= kAheadMin
                   ? LongestMatchByFour(candidate, last_length)
                   : LongestMatch(candidate, last_length);
      if ((only_long_ && length <= kFilteredLengthMax) ||
          (length == kDeflateMatchMin && at_ - match_at_ > kShortDistanceMax)) {
        length = kNoMatch;
      }
    }
    if (last_length >= kDeflateMatchMin && length <= last_length) {
      // Starts at the previous byte.
      block_.AddMatch(at_ - 1 - last_match_at, last_length);
      const size_t insert_end =
          std::min(at_ + last_length - 1,
                   at_ + ahead_ - std::min(ahead_, kDeflateMatchMin - 1));
      for (size_t i = at_ + 1; i < insert_end; ++i) {
        Insert(i);
      }
      const size_t symbol_at = at_;
      ahead_ -= last_length - 1;
      at_ += last_length - 1;
      has_literal = false;
      length = kNoMatch;
      if (!AfterSymbol(symbol_at, sink)) {
        return false;
      }
      continue;
    }
    if (has_literal) {
      block_.AddLiteral(window_[at_ - 1]);
      if (!AfterSymbol(at_, sink)) {
        return false;
      }
    }
    has_literal = true;
    ++at_;
    --ahead_;
  }
  if (has_literal) {
    block_.AddLiteral(window_[at_ - 1]);
  }
  return true;
}

bool DeflateState::FindRuns(DeflateEncoder::Sink sink) {
  for (;;) {
    Refill(kDeflateMatchMax + 1);
    if (ahead_ == 0) {
      return true;
    }
    size_t length = 0;
    if (ahead_ >= kDeflateMatchMin && at_ > 0) {
      const uint8_t* const next = window_.data() + at_;
      length = std::min(EqualSize(next, next - 1), ahead_);
    }
    if (length >= kDeflateMatchMin) {
      block_.AddMatch(1, length);
    } else {
      block_.AddLiteral(window_[at_]);
      length = 1;
    }
    ahead_ -= length;
    at_ += length;
    if (!AfterSymbol(at_, sink)) {
      return false;
    }
  }
}

bool DeflateState::FindNothing(DeflateEncoder::Sink sink) {
  for (;;) {
    Refill(1);
    if (ahead_ == 0) {
      return true;
    }
    block_.AddLiteral(window_[at_]);
    --ahead_;
    ++at_;
    if (!AfterSymbol(at_, sink)) {
      return false;
    }
  }
}

void DeflateState::SetStop() {
  const size_t size = block_.size();
  stop_ =
      std::min(block_symbols_max_, size - size % kLimitsPeriod + kLimitsPeriod);
  if (compared_ < expected_.size()) {
    stop_ = std::min(stop_, size - size % kExpectedPeriod + kExpectedPeriod);
  }
}

// True if the first block equals the expected symbols so far.
bool DeflateState::IsExpected() {
  const std::span<const DeflateSymbol> symbols = block_.symbols();
  const size_t end = std::min(symbols.size(), expected_.size());
  if (compared_ >= end) {
    return true;
  }
  const bool is_equal =
      std::ranges::equal(symbols.subspan(compared_, end - compared_),
                         expected_.subspan(compared_, end - compared_));
  compared_ = end;
  return is_equal;
}

// True if gzip would end the block here: matches are few and, by gzip's
// estimate, save much.
bool DeflateState::EndsEarly(size_t symbol_at) {
  const size_t symbols = block_.size();
  if (!may_end_early_ || symbols % kGzipPeriod != 0) {
    return false;
  }
  const DeflateBlockWriter::DistanceCost cost = block_.CountDistances();
  const auto in = static_cast<int64_t>(symbol_at) - block_at_;
  const size_t out = (symbols * 8 + cost.bits) / 8;
  return cost.matches < symbols / 2 && out < static_cast<size_t>(in) / 2;
}

bool DeflateState::AtStop(size_t symbol_at, DeflateEncoder::Sink sink) {
  if (!IsExpected()) {
    return false;
  }
  if (limits_->cancelled()) {
    status_ = absl::CancelledError("the caller has ended the work");
    return false;
  }
  if (work_ > limits_->work_max) {
    status_ = absl::ResourceExhaustedError(absl::StrCat(
        "the text takes more than ", limits_->work_max, " steps to encode"));
    return false;
  }
  if ((block_.size() == block_symbols_max_ || EndsEarly(symbol_at)) &&
      !Flush(/*is_last=*/false, sink)) {
    return false;
  }
  SetStop();
  starts_fours_ =
      !by_four_ && may_use_fours_ &&
      work_ - text_size_ > kByFourStepsMin * (text_size_ - unread_size());
  return true;
}

bool DeflateState::Flush(bool is_last, DeflateEncoder::Sink sink) {
  std::optional<ByteView> text;
  if (block_at_ >= 0) {
    const auto begin = static_cast<size_t>(block_at_);
    text = ByteView(window_).subspan(begin, at_ - begin);
  }
  block_at_ = static_cast<int64_t>(at_);
  expected_ = {};
  return block_.EndBlock(text, is_last, sink);
}

}  // namespace quire
