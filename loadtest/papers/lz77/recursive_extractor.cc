// SPDX-License-Identifier: GPL-3.0-or-later
#include "loadtest/papers/lz77/recursive_extractor.h"

#include <algorithm>
#include <cstring>

#include "codecs/base/check.h"
#include "loadtest/papers/lz77/phrase_index.h"

namespace quire {

constexpr uint32_t kWideCopy = 16;

inline bool RecursiveExtractor::Push(const Task& task) {
  if (depth_ == kDepthMax) {
    return false;
  }
  stack_[depth_++] = task;
  return true;
}

inline void RecursiveExtractor::AppendLiterals(ByteView stored, uint32_t offset,
                                               uint32_t size) {
  uint8_t* const to = out_.data() + done_;
  const uint8_t* const from = stored.data() + offset;
  if (size <= kWideCopy && out_.size() - done_ >= kWideCopy &&
      stored.size() - offset >= kWideCopy) [[likely]] {
    std::memcpy(to, from, kWideCopy);
  } else {
    std::memcpy(to, from, size);
  }
  done_ += size;
}

// `output_offset` is before done_; the ranges may overlap.
inline void RecursiveExtractor::AppendFromOutput(uint32_t output_offset,
                                                 uint32_t size) {
  uint8_t* const to = out_.data() + done_;
  const uint8_t* const from = out_.data() + output_offset;
  const uint32_t distance = done_ - output_offset;
  if (distance >= kWideCopy && size <= kWideCopy &&
      out_.size() - done_ >= kWideCopy) [[likely]] {
    std::memcpy(to, from, kWideCopy);
  } else if (distance >= size) {
    std::memcpy(to, from, size);
  } else if (distance == 1) {
    std::memset(to, *from, size);
  } else {
    for (uint32_t i = 0; i < size; ++i) {
      to[i] = from[i];
    }
  }
  done_ += size;
}

template <class Index>
bool RecursiveExtractor::Extract(const PhraseBlock& block, const Index& index,
                                 uint32_t text_offset, MutableByteView out,
                                 uint32_t step_budget) {
  QUIRE_CHECK(text_offset <= block.text_size() &&
              out.size() <= block.text_size() - text_offset);
  out_ = out;
  done_ = 0;
  steps_ = 0;
  depth_ = 0;
  if (++epoch_ == 0) {
    memo_ = {};
    epoch_ = 1;
  }
  if (!out.empty()) {
    stack_[depth_++] = {
        text_offset, static_cast<uint32_t>(out.size()), {0, kUnknown}, 0};
  }
  while (depth_ > 0) {
    if (steps_++ == step_budget) {
      return false;
    }
    Task& task = stack_[depth_ - 1];
    if (task.output_distance != 0) {
      AppendFromOutput(done_ - task.output_distance, task.size);
      --depth_;
      continue;
    }
    PhrasePlace place = task.place.stored_offset == kUnknown
                            ? index.Find(task.offset)
                            : task.place;
    Phrase phrase = block.Read(place.stored_offset);
    while (task.offset - place.text_offset >= phrase.text_size()) {
      place.text_offset += phrase.text_size();
      place.stored_offset = phrase.next_stored_offset;
      phrase = block.Read(place.stored_offset);
    }
    uint32_t within = task.offset - place.text_offset;
    if (within < phrase.literal_count) {
      const uint32_t size = std::min(task.size, phrase.literal_count - within);
      AppendLiterals(block.stored(), phrase.literal_offset + within, size);
      if (size == task.size) {
        --depth_;
        continue;
      }
      task.offset += size;
      task.size -= size;
      task.place = place;
      within = phrase.literal_count;
      if (phrase.match_size == 0) {
        continue;
      }
    }
    // A piece of the match; `task` keeps the rest.
    const uint32_t match_begin = place.text_offset + phrase.literal_count;
    const uint32_t into = within - phrase.literal_count;
    const uint32_t size = std::min(task.size, phrase.match_size - into);
    const uint32_t from = task.offset;
    if (size == task.size) {
      --depth_;
    } else {
      task.offset += size;
      task.size -= size;
      task.place = {place.text_offset + phrase.text_size(),
                    phrase.next_stored_offset};
    }
    // The source, beginning at its offset within the period.
    uint32_t period_at = into;
    if (phrase.distance < phrase.match_size) {
      period_at %= phrase.distance;
    }
    const uint32_t period_begin = match_begin - phrase.distance;
    const uint32_t source = period_begin + period_at;
    if (source >= text_offset) {
      // Inside the range: it is written, since everything before this is.
      const uint32_t distance = phrase.distance;
      if (size <= distance - period_at) {
        AppendFromOutput(source - text_offset, size);
        continue;
      }
    }
    Memo& memo = memo_[MemoSlot(place.text_offset)];
    if (memo.epoch == epoch_ && memo.phrase_offset == place.text_offset &&
        from >= memo.text_offset &&
        from - memo.text_offset + size <= memo.size &&
        memo.output_offset + (from - memo.text_offset) + size <= done_) {
      AppendFromOutput(memo.output_offset + (from - memo.text_offset), size);
      continue;
    }
    memo = {epoch_, place.text_offset, from, size, done_};
    const uint32_t first = std::min(size, phrase.distance - period_at);
    const uint32_t second = std::min(size - first, period_at);
    const uint32_t rest = size - first - second;
    // The stack pops the last push first.
    if ((rest != 0 && !Push({0, rest, {}, phrase.distance})) ||
        (second != 0 && !Push({period_begin, second, {0, kUnknown}, 0})) ||
        !Push({source, first, {0, kUnknown}, 0})) {
      return false;
    }
  }
  return true;
}

template bool RecursiveExtractor::Extract(const PhraseBlock&,
                                          const PlainPhraseIndex&, uint32_t,
                                          MutableByteView, uint32_t);
template bool RecursiveExtractor::Extract(const PhraseBlock&,
                                          const SparsePhraseIndex&, uint32_t,
                                          MutableByteView, uint32_t);
template bool RecursiveExtractor::Extract(const PhraseBlock&,
                                          const SampledPhraseIndex&, uint32_t,
                                          MutableByteView, uint32_t);
template bool RecursiveExtractor::Extract(const PhraseBlock&,
                                          const GridPhraseIndex&, uint32_t,
                                          MutableByteView, uint32_t);

}  // namespace quire
