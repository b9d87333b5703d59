// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/phrase.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"

namespace quire {
namespace {

absl::Status Damaged(size_t stored_offset, absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("phrase at stored byte ", stored_offset, ": ", what));
}

// Adds the bytes that continue a size of 15. Returns false if they are
// truncated or the sum exceeds `size_max`.
bool AddContinuation(ByteView stored, size_t& at, uint64_t size_max,
                     uint64_t& size) {
  uint8_t more = 0;
  do {
    if (at == stored.size()) {
      return false;
    }
    more = stored[at++];
    size += more;
  } while (more == 255 && size <= size_max);
  return size <= size_max;
}

void StoreSize(uint32_t beyond_token, std::vector<uint8_t>& stored) {
  for (; beyond_token >= 255; beyond_token -= 255) {
    stored.push_back(255);
  }
  stored.push_back(static_cast<uint8_t>(beyond_token));
}

// A `match` of size 0 means none.
void StorePhrase(ByteView literals, const TextMatch& match,
                 std::vector<uint8_t>& stored) {
  const auto count = static_cast<uint32_t>(literals.size());
  const uint32_t size = match.size == 0 ? 0 : match.size - kDeflateMatchSizeMin;
  stored.push_back(
      static_cast<uint8_t>(std::min(count, 15u) << 4 | std::min(size, 15u)));
  if (count >= 15) {
    StoreSize(count - 15, stored);
  }
  stored.insert(stored.end(), literals.begin(), literals.end());
  if (match.size == 0) {
    return;
  }
  stored.push_back(static_cast<uint8_t>(match.distance & 255));
  stored.push_back(static_cast<uint8_t>(match.distance >> 8));
  if (size >= 15) {
    StoreSize(size - 15, stored);
  }
}

}  // namespace

absl::StatusOr<PhraseBlock> PhraseBlock::Check(ByteView stored,
                                               size_t text_size,
                                               uint32_t match_size_min) {
  if (text_size > kPhraseTextSizeMax || stored.size() > kPhraseTextSizeMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", text_size, " bytes, ", stored.size(),
                     " stored; at most ", kPhraseTextSizeMax));
  }
  size_t at = 0;
  uint64_t text_offset = 0;
  while (true) {
    const size_t begin = at;
    if (at == stored.size()) {
      return Damaged(begin, "missing: the block ends behind a match");
    }
    const uint8_t token = stored[at++];
    uint64_t literal_count = token >> 4;
    if (literal_count == 15 &&
        !AddContinuation(stored, at, stored.size(), literal_count)) {
      return Damaged(begin, "the number of literals");
    }
    if (literal_count > stored.size() - at) {
      return Damaged(begin, "literals beyond the end of the block");
    }
    at += literal_count;
    text_offset += literal_count;
    if (text_offset > text_size) {
      return Damaged(begin, "literals beyond the end of the text");
    }
    if (at == stored.size()) {
      if ((token & 15) != 0) {
        return Damaged(begin, "the last one has a match");
      }
      break;
    }
    if (stored.size() - at < 2) {
      return Damaged(begin, "its distance is cut short");
    }
    const uint16_t distance = LoadLittleEndian<uint16_t>(&stored[at]);
    at += 2;
    if (distance == 0 || distance > text_offset) {
      return Damaged(begin, absl::StrCat("distance ", distance, " at byte ",
                                         text_offset, " of the text"));
    }
    uint64_t match_size = (token & 15) + uint64_t{match_size_min};
    if ((token & 15) == 15 &&
        !AddContinuation(stored, at, text_size, match_size)) {
      return Damaged(begin, "the size of its match");
    }
    text_offset += match_size;
    if (text_offset > text_size) {
      return Damaged(begin, "its match goes beyond the end of the text");
    }
  }
  if (text_offset != text_size) {
    return absl::DataLossError(absl::StrCat("the phrases make ", text_offset,
                                            " bytes of text rather than ",
                                            text_size));
  }
  return PhraseBlock(stored, static_cast<uint32_t>(text_size), match_size_min);
}

std::vector<PhrasePlace> PhraseBlock::Places() const {
  std::vector<PhrasePlace> places;
  PhrasePlace place;
  do {
    places.push_back(place);
    const Phrase phrase = Read(place.stored_offset);
    place.text_offset += phrase.text_size();
    place.stored_offset = phrase.next_stored_offset;
  } while (place.stored_offset < stored_.size());
  return places;
}

std::vector<uint8_t> StorePhrases(ByteView text,
                                  const std::vector<TextMatch>& matches) {
  std::vector<uint8_t> stored;
  stored.reserve(text.size() / 2 + 16);
  size_t done = 0;
  for (const TextMatch& match : matches) {
    QUIRE_CHECK(match.offset >= done && match.size >= kDeflateMatchSizeMin &&
                match.distance >= 1 && match.distance <= 0xFFFF &&
                match.offset <= text.size() &&
                match.size <= text.size() - match.offset);
    StorePhrase(text.subspan(done, match.offset - done), match, stored);
    done = match.offset + size_t{match.size};
  }
  StorePhrase(text.subspan(done), {}, stored);
  return stored;
}

void DecodePhrases(const PhraseBlock& block, MutableByteView out) {
  size_t done = 0;
  uint32_t stored_offset = 0;
  while (done < out.size()) {
    const Phrase phrase = block.Read(stored_offset);
    const size_t literals =
        std::min<size_t>(phrase.literal_count, out.size() - done);
    std::copy_n(block.stored().data() + phrase.literal_offset, literals,
                out.data() + done);
    done += literals;
    const size_t size = std::min<size_t>(phrase.match_size, out.size() - done);
    uint8_t* const to = out.data() + done;
    const uint8_t* const from = to - phrase.distance;
    if (phrase.distance >= size) {
      std::memcpy(to, from, size);
    } else {
      for (size_t i = 0; i < size; ++i) {
        to[i] = from[i];
      }
    }
    done += size;
    stored_offset = phrase.next_stored_offset;
  }
}

}  // namespace quire
