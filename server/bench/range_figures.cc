// SPDX-License-Identifier: GPL-3.0-or-later
//
// Ranges of single blocks by every way of decoding them, without archive, cache
// or network: the experiments of "Random Read Speedup in Compression Enabled
// Storage Systems". loadtest/range_bench.py calls it, draws and sums up.
//
//   range_figures FILE PIECE_SIZE ROUND_US
//
// FILE is cut into pieces of PIECE_SIZE bytes, each of them a block. Each
// figure is CPU time on one thread, the best of several rounds of at least
// ROUND_US. Prints JSON: a list with an object for each piece,
//   stored   bytes of the piece, as "zlib:LEVEL" and "zlib-pex:LEVEL/SIZE"
//   whole    microseconds to decode all of it, by codec
//   ranges   objects of offset (null: mean of random ones), size and, by way,
//            microseconds
// Every way's first answer is compared with the text; a difference ends the
// run.
#include <algorithm>
#include <array>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/lz77/phrase.h"
#include "codecs/lz77/phrase_index.h"
#include "codecs/lz77/recursive_extractor.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/zlib_stream.h"

namespace quire {
namespace {

constexpr int kRounds = 5;
constexpr size_t kRandomOffsets = 16;
constexpr std::array<size_t, 6> kOffsets = {32, 64, 100, 140, 180, 215};
constexpr size_t kKib = 1024;
// The range that starts last must end within a piece.
constexpr size_t kPieceSizeMin = (215 + 32) * kKib;

double CpuMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) +
         1e-3 * static_cast<double>(now.tv_nsec);
}

// For one call of `work`, whose calls have the numbers 0, 1, 2... A round has
// `count` of them, or that times a power of two.
double TimeOf(const std::function<void(size_t)>& work, size_t count,
              double round_us) {
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    double used = 0;
    while (true) {
      const double begin = CpuMicroseconds();
      for (size_t i = 0; i < count; ++i) {
        work(i);
      }
      used = CpuMicroseconds() - begin;
      if (used >= round_us) {
        break;
      }
      count *= 2;
    }
    const double each = used / static_cast<double>(count);
    best = round == 0 ? each : std::min(best, each);
  }
  return best;
}

// A block as a codec of the registry stores it.
class CodedBlock {
 public:
  static absl::StatusOr<CodedBlock> Make(absl::string_view name, ByteView text,
                                         uint32_t partition_size = 0) {
    QUIRE_ASSIGN_OR_RETURN(CodecSpec spec, ParseCodecSpec(name));
    spec.partition_size_bytes = partition_size;
    CodedBlock block;
    QUIRE_ASSIGN_OR_RETURN(
        block.codec_,
        MakeBlockCodec(spec, nullptr, CodecUse::kEncodeAndDecode));
    block.scratch_ = block.codec_->NewScratch();
    block.text_size_ = text.size();
    block.stored_.resize(block.codec_->StoredSizeMax(text.size()));
    QUIRE_ASSIGN_OR_RETURN(
        const size_t size,
        block.codec_->Encode(text, block.stored_, *block.scratch_));
    block.stored_.resize(size);
    return block;
  }

  ByteView stored() const { return stored_; }

  void DecodeWhole(MutableByteView out) {
    QUIRE_CHECK(codec_->Decode(stored_, out, *scratch_).ok());
  }

  void DecodeRange(size_t offset, MutableByteView out) {
    QUIRE_CHECK(
        codec_->DecodeRange(stored_, text_size_, offset, out, *scratch_).ok());
  }

 private:
  std::unique_ptr<BlockCodec> codec_;
  std::unique_ptr<BlockCodec::Scratch> scratch_;
  std::vector<uint8_t> stored_;
  size_t text_size_ = 0;
};

// A block as phrases with the index that leads to them.
class PhrasedBlock {
 public:
  static absl::StatusOr<PhrasedBlock> Make(std::vector<uint8_t> stored,
                                           size_t text_size,
                                           uint32_t match_size_min) {
    PhrasedBlock made;
    made.stored_ = std::make_unique<std::vector<uint8_t>>(std::move(stored));
    QUIRE_ASSIGN_OR_RETURN(
        const PhraseBlock block,
        PhraseBlock::Check(*made.stored_, text_size, match_size_min));
    made.block_ = std::make_unique<PhraseBlock>(block);
    made.index_ = std::make_unique<GridPhraseIndex>(block.Places(), text_size,
                                                    made.stored_->size());
    made.extractor_ = std::make_unique<RecursiveExtractor>();
    return made;
  }

  void Extract(size_t offset, MutableByteView out) {
    QUIRE_CHECK(extractor_->Extract(*block_, *index_,
                                    static_cast<uint32_t>(offset), out));
  }

  const PhraseBlock& block() const { return *block_; }

 private:
  std::unique_ptr<std::vector<uint8_t>> stored_;
  std::unique_ptr<PhraseBlock> block_;
  std::unique_ptr<GridPhraseIndex> index_;
  std::unique_ptr<RecursiveExtractor> extractor_;
};

// zlib's parse at its default level, without the Huffman codes.
absl::StatusOr<std::vector<uint8_t>> DeflatePhrases(ByteView text) {
  std::vector<uint8_t> stream(DeflateSizeMax(text.size()));
  DeflateStream zlib(6);
  QUIRE_ASSIGN_OR_RETURN(const size_t size, zlib.Compress(text, stream));
  std::vector<uint8_t> output(text.size());
  std::vector<TextMatch> matches;
  DeflateDecoder decoder;
  decoder.Start(ByteView(stream).first(size), output);
  decoder.RecordMatches(matches);
  QUIRE_RETURN_IF_ERROR(decoder.DecodeTo(output.size()).status());
  return StorePhrases(output, matches);
}

// A way to decode the range at an offset.
struct Way {
  const char* name;
  std::function<void(size_t offset, MutableByteView out)> decode;
};

std::vector<size_t> RandomOffsets(size_t text_size, size_t size) {
  std::vector<size_t> offsets;
  uint64_t state = 1;
  for (size_t i = 0; i < kRandomOffsets; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    offsets.push_back((state >> 33) % (text_size - size + 1));
  }
  return offsets;
}

// One line of "ranges": the mean over the offsets.
std::string TimeWays(const std::vector<Way>& ways, ByteView text,
                     const std::vector<size_t>& offsets, size_t size,
                     absl::string_view shown_offset, double round_us) {
  std::vector<uint8_t> out(size);
  std::vector<std::string> times;
  for (const Way& way : ways) {
    for (const size_t offset : offsets) {
      std::fill(out.begin(), out.end(), uint8_t{0});
      way.decode(offset, out);
      QUIRE_CHECK(std::equal(out.begin(), out.end(),
                             text.begin() + static_cast<ptrdiff_t>(offset)),
                  way.name);
    }
    const double used =
        TimeOf([&](size_t i) { way.decode(offsets[i % offsets.size()], out); },
               offsets.size(), round_us);
    times.push_back(absl::StrCat("\"", way.name, "\": ", used));
  }
  return absl::StrCat("{\"offset\": ", shown_offset, ", \"size\": ", size,
                      ", \"us\": {", absl::StrJoin(times, ", "), "}}");
}

absl::StatusOr<std::string> StoredSizes(ByteView text) {
  std::vector<std::string> sizes;
  for (const int level : {1, 6}) {
    QUIRE_ASSIGN_OR_RETURN(
        const CodedBlock plain,
        CodedBlock::Make(absl::StrCat("zlib:", level), text));
    sizes.push_back(
        absl::StrCat("\"zlib:", level, "\": ", plain.stored().size()));
    for (uint32_t size = 8 * kKib; size <= kPartitionSizeBytesMax; size *= 2) {
      QUIRE_ASSIGN_OR_RETURN(
          const CodedBlock block,
          CodedBlock::Make(absl::StrCat("zlib-pex:", level), text, size));
      sizes.push_back(absl::StrCat("\"zlib-pex:", level, "/", size,
                                   "\": ", block.stored().size()));
    }
  }
  return absl::StrCat("{", absl::StrJoin(sizes, ", "), "}");
}

// The object of one piece.
absl::StatusOr<std::string> Measure(ByteView text, double round_us) {
  QUIRE_ASSIGN_OR_RETURN(CodedBlock zlib, CodedBlock::Make("zlib:6", text));
  QUIRE_ASSIGN_OR_RETURN(CodedBlock pex32,
                         CodedBlock::Make("zlib-pex:6", text, 32 * kKib));
  QUIRE_ASSIGN_OR_RETURN(CodedBlock pex8,
                         CodedBlock::Make("zlib-pex:6", text, 8 * kKib));
  QUIRE_ASSIGN_OR_RETURN(CodedBlock lz4, CodedBlock::Make("lz4hc:9", text));
  QUIRE_ASSIGN_OR_RETURN(std::vector<uint8_t> phrases, DeflatePhrases(text));
  QUIRE_ASSIGN_OR_RETURN(PhrasedBlock deflate,
                         PhrasedBlock::Make(std::move(phrases), text.size(),
                                            kDeflateMatchSizeMin));
  QUIRE_ASSIGN_OR_RETURN(
      PhrasedBlock lz4_phrases,
      PhrasedBlock::Make({lz4.stored().begin(), lz4.stored().end()},
                         text.size(), kLz4MatchSizeMin));
  std::vector<uint8_t> whole(text.size());
  const auto from_whole = [&](size_t offset, MutableByteView out) {
    std::copy_n(whole.begin() + static_cast<ptrdiff_t>(offset), out.size(),
                out.begin());
  };

  const std::vector<Way> ways = {
      {"start",
       [&](size_t at, MutableByteView out) { zlib.DecodeRange(at, out); }},
      {"partition32",
       [&](size_t at, MutableByteView out) { pex32.DecodeRange(at, out); }},
      {"partition8",
       [&](size_t at, MutableByteView out) { pex8.DecodeRange(at, out); }},
      {"phrases_start",
       [&](size_t at, MutableByteView out) {
         DecodePhrases(deflate.block(),
                       MutableByteView(whole).first(at + out.size()));
         from_whole(at, out);
       }},
      {"phrases_recursive",
       [&](size_t at, MutableByteView out) { deflate.Extract(at, out); }},
      {"lz4_start",
       [&](size_t at, MutableByteView out) { lz4.DecodeRange(at, out); }},
      {"lz4_recursive",
       [&](size_t at, MutableByteView out) { lz4_phrases.Extract(at, out); }},
  };

  std::vector<std::string> wholes;
  for (const auto& [name, block] :
       {std::pair{"zlib", &zlib}, std::pair{"partition32", &pex32},
        std::pair{"partition8", &pex8}, std::pair{"lz4", &lz4}}) {
    wholes.push_back(absl::StrCat(
        "\"", name, "\": ",
        TimeOf([&whole, coded = block](size_t) { coded->DecodeWhole(whole); },
               /*count=*/1, round_us)));
    QUIRE_CHECK(std::equal(text.begin(), text.end(), whole.begin()), name);
  }

  std::vector<std::string> ranges;
  for (size_t size = 8; size <= 32 * kKib; size *= 2) {
    for (const size_t offset : kOffsets) {
      ranges.push_back(TimeWays(ways, text, {offset * kKib}, size,
                                absl::StrCat(offset * kKib), round_us));
    }
    ranges.push_back(TimeWays(ways, text, RandomOffsets(text.size(), size),
                              size, "null", round_us));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::string stored, StoredSizes(text));
  return absl::StrCat("{\"stored\": ", stored, ",\n \"whole\": {",
                      absl::StrJoin(wholes, ", "), "},\n \"ranges\": [\n  ",
                      absl::StrJoin(ranges, ",\n  "), "]}");
}

absl::Status Run(const std::vector<std::string>& words) {
  size_t piece_size = 0;
  double round_us = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &piece_size) ||
      !absl::SimpleAtod(words[2], &round_us) || piece_size < kPieceSizeMin ||
      piece_size > kBlockSizeBytesMax || round_us < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "usage: range_figures FILE PIECE_SIZE ROUND_US, with pieces of ",
        kPieceSizeMin, " to ", kBlockSizeBytesMax,
        " bytes and rounds of 1 µs or more"));
  }
  std::ifstream file(words[0], std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.good() && !file.eof()) {
    return absl::NotFoundError(absl::StrCat(words[0], ": cannot be read"));
  }
  if (text.empty() || text.size() % piece_size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(words[0], ": has ", text.size(),
                     " bytes, expected a multiple of ", piece_size));
  }
  std::cout << "[";
  for (size_t at = 0; at < text.size(); at += piece_size) {
    QUIRE_ASSIGN_OR_RETURN(
        const std::string figures,
        Measure(AsBytes(text).subspan(at, piece_size), round_us));
    std::cout << (at == 0 ? "\n" : ",\n") << figures;
  }
  std::cout << "\n]\n" << std::flush;
  return std::cout ? absl::OkStatus()
                   : absl::UnavailableError("standard output: cannot write");
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  const absl::Status status = quire::Run({argv + 1, argv + argc});
  if (!status.ok()) {
    std::cerr << "range_figures: " << status.message() << "\n";
    return 1;
  }
  return 0;
}
