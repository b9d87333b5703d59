// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/index/id_bucket.h"

#include <algorithm>
#include <array>

#include "codecs/base/check.h"
#include "codecs/base/endian.h"

namespace quire {
namespace {

// The low bits of the flags are the width of sizes in bytes.
constexpr uint8_t kWidthMask = 0x07;
constexpr uint8_t kAreCodes = 0x80;

size_t WidthFor(size_t size_max) {
  return size_max < (1 << 8) ? 1 : size_max < (1 << 16) ? 2 : 4;
}

void AppendSize(size_t size, size_t width, std::string& out) {
  for (size_t i = 0; i < width; ++i) {
    out.push_back(static_cast<char>(size >> (8 * i)));
  }
}

bool AreCodes(uint8_t flags) {
  return (flags & kAreCodes) != 0;
}

// `coding` is null for plain texts.
IdOrder CompareIdText(const IdCoding* coding, ByteView text,
                      absl::string_view key, IdPlace& place) {
  if (coding != nullptr) {
    return coding->Compare(text, key, place);
  }
  IdOrder compared = ComparePlainId(text, key.substr(place.key_offset));
  compared.shared_size_bytes += place.key_offset;
  return compared;
}

}  // namespace

uint32_t IdBucket::Sizes::operator[](size_t index) const {
  const uint8_t* const place = sizes_ + index * width_;
  return width_ == 1   ? *place
         : width_ == 2 ? LoadLittleEndian<uint16_t>(place)
                       : LoadLittleEndian<uint32_t>(place);
}

size_t IdBucket::Sizes::Sum(size_t begin, size_t end) const {
  size_t sum = 0;
  if (width_ == 1) {
    // A separate loop, which compilers vectorise.
    for (size_t i = begin; i < end; ++i) {
      sum += sizes_[i];
    }
    return sum;
  }
  for (size_t i = begin; i < end; ++i) {
    sum += (*this)[i];
  }
  return sum;
}

IdBucket::IdBucket(const IdCoding* coding, ByteView head, const uint8_t* body,
                   size_t count)
    : coding_(AreCodes(head[0]) ? coding : nullptr),
      head_(head.subspan(1)),
      count_(count),
      shared_sizes_(body, head[0] & kWidthMask),
      text_sizes_(body + (count - 1) * (head[0] & kWidthMask),
                  head[0] & kWidthMask),
      texts_(body + 2 * (count - 1) * (head[0] & kWidthMask)) {}

size_t IdBucket::Sizes::NextUpTo(size_t size, size_t begin, size_t end) const {
  if (width_ == 1) {
    while (begin < end && sizes_[begin] > size) {
      ++begin;
    }
    return begin;
  }
  while (begin < end && (*this)[begin] > size) {
    ++begin;
  }
  return begin;
}

size_t IdBucket::FirstAbove(absl::string_view key, size_t shared, int order_max,
                            int* order) const {
  // The previous string is not above the key; `shared` bytes of it equal the
  // key. A string that shares more with it differs from the key in the same
  // byte; one that shares less differs earlier, by a higher byte.
  size_t summed = 1;
  size_t text_begin = 0;
  for (size_t i = 1;; ++i) {
    i = shared_sizes_.NextUpTo(shared, i, count_);
    if (i == count_) {
      return count_;
    }
    if (shared_sizes_[i] < shared) {
      *order = 1;
      return i;
    }
    text_begin += text_sizes_.Sum(summed, i);
    summed = i;
    IdPlace place = {.key_offset = shared};
    const IdOrder compared = CompareIdText(
        coding_, {texts_ + text_begin, text_sizes_[i]}, key, place);
    if (compared.order > order_max) {
      *order = compared.order;
      return i;
    }
    shared = compared.shared_size_bytes;
  }
}

size_t IdBucket::Read(size_t index, IdBuffer& id) const {
  if (index == 0) {
    Decode(head_, 0, id);
    return 0;
  }
  // Only those of the preceding strings matter whose bytes no later string
  // replaces. They are few, except for unusual ids.
  std::array<uint8_t, kIdBucketSize> sources;
  size_t source_count = 0;
  const size_t front_size = shared_sizes_[index];
  size_t missing = front_size;
  for (size_t i = index - 1; missing > 0 && i > 0; --i) {
    if (shared_sizes_[i] < missing) {
      sources[source_count++] = static_cast<uint8_t>(i);
      missing = shared_sizes_[i];
    }
  }
  char* const front_begin = id.Cut(0, front_size);
  id.EndAt(front_begin + front_size);
  const MutableByteView front(reinterpret_cast<uint8_t*>(front_begin),
                              front_size);
  DecodeFront(head_, front.first(missing));
  size_t text_begin = 0;
  size_t summed = 1;
  while (source_count > 0) {
    const size_t i = sources[--source_count];
    text_begin += text_sizes_.Sum(summed, i);
    summed = i;
    const size_t begin = shared_sizes_[i];
    const size_t end = source_count == 0
                           ? front_size
                           : shared_sizes_[sources[source_count - 1]];
    DecodeFront({texts_ + text_begin, text_sizes_[i]},
                front.subspan(begin, end - begin));
  }
  text_begin += text_sizes_.Sum(summed, index);
  return ReadNext(index, text_begin, id);
}

size_t IdBucket::ReadNext(size_t index, size_t texts_begin,
                          IdBuffer& id) const {
  const ByteView text(texts_ + texts_begin, text_sizes_[index]);
  Decode(text, shared_sizes_[index], id);
  return texts_begin + text.size();
}

void IdBucket::Decode(ByteView text, size_t offset, IdBuffer& id) const {
  if (coding_ != nullptr) {
    char* const begin = id.Cut(offset, IdCoding::DecodedSizeMax(text.size()));
    id.EndAt(coding_->Decode(text, begin));
  } else {
    id.EndAt(std::ranges::copy(text, id.Cut(offset, text.size())).out);
  }
}

void IdBucket::DecodeFront(ByteView text, MutableByteView out) const {
  if (coding_ != nullptr) {
    coding_->DecodeFront(text, out);
    return;
  }
  std::ranges::copy(text.first(out.size()), out.begin());
}

void IdBucket::Append(std::span<const uint32_t> shared_sizes,
                      std::span<const ByteView> texts, bool are_codes,
                      std::string& heads, std::string& bodies) {
  QUIRE_CHECK(texts.size() == shared_sizes.size() && !texts.empty());
  size_t size_max = 0;
  for (size_t i = 1; i < texts.size(); ++i) {
    size_max = std::max({size_max, size_t{shared_sizes[i]}, texts[i].size()});
  }
  const size_t width = WidthFor(size_max);
  heads.push_back(static_cast<char>(width | (are_codes ? kAreCodes : 0)));
  heads.append(AsText(texts[0]).data(), texts[0].size());
  for (size_t i = 1; i < texts.size(); ++i) {
    AppendSize(shared_sizes[i], width, bodies);
  }
  for (size_t i = 1; i < texts.size(); ++i) {
    AppendSize(texts[i].size(), width, bodies);
  }
  for (const ByteView text : texts.subspan(1)) {
    bodies.append(AsText(text).data(), text.size());
  }
}

ByteView IdBuckets::Head(uint64_t bucket) const {
  const uint64_t begin = head_begins[bucket];
  return AsBytes(heads).subspan(begin, head_begins[bucket + 1] - begin);
}

IdBucket IdBuckets::At(uint64_t bucket, uint64_t size) const {
  const uint64_t count = size - bucket * kIdBucketSize;
  return {coding.get(), Head(bucket),
          AsBytes(bodies).data() + body_begins[bucket],
          static_cast<size_t>(std::min<uint64_t>(count, kIdBucketSize))};
}

IdOrder IdBuckets::CompareHead(uint64_t bucket, absl::string_view key,
                               IdPlace& place) const {
  const ByteView head = Head(bucket);
  if (AreCodes(head[0])) {
    return coding->Compare(head.subspan(1), key, place);
  }
  // Says nothing about codes.
  place = {};
  return ComparePlainId(head.subspan(1), key);
}

uint64_t IdBuckets::MemoryBytes() const {
  return (coding == nullptr ? 0 : sizeof(*coding)) + heads.capacity() +
         bodies.capacity() + head_begins.MemoryBytes() +
         body_begins.MemoryBytes();
}

}  // namespace quire
