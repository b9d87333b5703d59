// SPDX-License-Identifier: Apache-2.0
#include "codecs/rlz/text_frame.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "codecs/base/memory/huge_pages.h"
#include "codecs/base/status_macros.h"
#include "codecs/rlz/parse/dictionary_index.h"
#include "codecs/rlz/parse/lazy_parser.h"
#include "codecs/rlz/parse/optimal_parser.h"
#include "codecs/rlz/parse/sequence_writer.h"

namespace quire {
namespace {

constexpr int kWindowLogMax = 27;
constexpr size_t kWindowSizeBytesMax = size_t{1} << kWindowLogMax;
// Text that is parsed at once. Up to its start all text is in the index.
constexpr size_t kPieceSizeBytes = size_t{64} << 10;

// Most of a dictionary's text is in long copies from far before it: little is
// searched in the piece, and long copies are hardly cut.
constexpr OptimalParserOptions kStrongOptions = {
    .finder = {.chain_depth_max = 4,
               .good_length = 32,
               .long_length = 48,
               .longest_length = 48},
    .rounds = 1,
    .rounds_max = 1,
    .rival_margin = 0,
    .long_length = 48,
    .cut_length_max = 32,
    .settled_after = 32};

// A parse in inner blocks of kFrameBlockSizeBytesMax, of pieces that are parsed
// one by one.
class FrameParse {
 public:
  // Appends the parse of the next piece, of `size` bytes. REQUIRES: no piece
  // extends beyond an inner block.
  void Append(const SequenceList& parse, size_t size) {
    const size_t first = sequences_.size();
    sequences_.insert(sequences_.end(), parse.begin(), parse.end());
    sequences_[first].literal_run += literal_run_;
    literal_run_ = 0;
    size_ += size;
    if (size_ % kFrameBlockSizeBytesMax != 0) {
      // The step without a copy would end the inner block.
      literal_run_ = sequences_.back().literal_run;
      sequences_.pop_back();
    }
  }

  SequenceList Take() && {
    if (literal_run_ > 0 || sequences_.empty() ||
        sequences_.back().match_length > 0) {
      sequences_.push_back({.literal_run = literal_run_});
    }
    return std::move(sequences_);
  }

 private:
  SequenceList sequences_;
  // Text after the last copy.
  uint32_t literal_run_ = 0;
  size_t size_ = 0;
};

// A piece, and the parser that has found its copies.
struct FoundPiece {
  OptimalParser parser = OptimalParser(kStrongOptions);
  std::optional<BlockText> text;
  SequenceList sequences;
};

// Appends the parse of `text`, which refers to nothing before it.
absl::Status AppendParse(ByteView text, TextFrameEffort effort,
                         const std::atomic<bool>* cancel,
                         const RunNumberedWork& run, FrameParse& parse) {
  const bool is_quick = effort == TextFrameEffort::kQuick;
  PreferHugePages(text);
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DictionaryIndex> index,
                         DictionaryIndex::MakeEmpty(
                             text, is_quick ? DictionaryIndex::Detail::kCoarse
                                            : DictionaryIndex::Detail::kDense));
  constexpr auto kParsedSize = static_cast<uint32_t>(kPieceSizeBytes);
  LazyParser quick_parser = LazyParser(LazyParserOptions());
  SequenceList sequences;
  // In turn: the copies of one are found while the one before is parsed.
  std::array<FoundPiece, 2> pieces;
  FoundPiece* next = &pieces[0];
  FoundPiece* found = &pieces[1];
  const auto parse_found = [&] {
    if (found->text.has_value()) {
      found->parser.ParseFound(kParsedSize, found->sequences);
    }
  };
  const auto append_found = [&] {
    if (found->text.has_value()) {
      parse.Append(found->sequences, found->text->size());
    }
  };
  for (size_t begin = 0; begin < text.size(); begin += kPieceSizeBytes) {
    if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
      return absl::CancelledError("compression was cancelled");
    }
    const BlockText piece(
        text.first(begin),
        text.subspan(begin, std::min(kPieceSizeBytes, text.size() - begin)));
    const auto search = [&] {
      index->EnterUpTo(begin);
      if (is_quick) {
        quick_parser.Parse(*index, piece, kParsedSize, sequences);
      } else {
        next->parser.FindCopies(*index, next->text.emplace(piece));
      }
    };
    if (is_quick) {
      search();
      parse.Append(sequences, piece.size());
      continue;
    }
    run(2, [&](const NextNumber& next_number) {
      while (const std::optional<uint64_t> number = next_number()) {
        *number == 0 ? search() : parse_found();
      }
    });
    append_found();
    std::swap(next, found);
  }
  parse_found();
  append_found();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> CompressTextFrame(ByteView text,
                                              TextFrameEffort effort,
                                              const std::atomic<bool>* cancel,
                                              const RunNumberedWork& run) {
  FrameParse parse;
  for (ByteView rest = text; !rest.empty();) {
    const ByteView part =
        rest.first(std::min<size_t>(kWindowSizeBytesMax, rest.size()));
    QUIRE_RETURN_IF_ERROR(AppendParse(part, effort, cancel, run, parse));
    rest = rest.subspan(part.size());
  }
  SequenceWriter writer(
      std::clamp(static_cast<int>(std::bit_width(text.size())),
                 SequenceWriter::kBlockWindowLog, kWindowLogMax));
  std::string frame(SequenceWriter::StoredSizeMax(text.size()), '\0');
  QUIRE_ASSIGN_OR_RETURN(
      const size_t size,
      writer.Write(text, std::move(parse).Take(), AsMutableBytes(frame)));
  frame.resize(size);
  frame.shrink_to_fit();
  return frame;
}

}  // namespace quire
