// SPDX-License-Identifier: Apache-2.0
//
// paper_extraction: the measurements of "Random Read Speedup in Compression
// Enabled Storage Systems" on pieces of the given files, next to the paper's
// figures. A piece of 256,000 bytes is one block. Links sdsl-lite (GPLv3),
// which loadtest/papers/lz77 uses; it is not installed.
#include <algorithm>
#include <array>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/bytes.h"
#include "codecs/base/check.h"
#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/zlib/deflate_decoder.h"
#include "codecs/zlib/zlib_stream.h"
#include "loadtest/papers/coded_text.h"
#include "loadtest/papers/lz77/phrase.h"
#include "loadtest/papers/lz77/phrase_index.h"
#include "loadtest/papers/lz77/recursive_extractor.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

constexpr size_t kPieceSizeBytes = 256'000;
// Candidates for each measured piece.
constexpr uint64_t kCandidates = 8;
constexpr uint32_t kPartitionSizeBytes = 32 << 10;
constexpr std::array<size_t, 6> kOffsetsKib = {32, 64, 100, 140, 180, 215};
constexpr std::array<size_t, 4> kLongSizes = {4096, 8192, 16384, 32768};
constexpr std::array<size_t, 10> kShortSizes = {8,   16,  32,   64,   128,
                                                256, 512, 1024, 2048, 4096};
// Figure 3: sums over kLongSizes for one file, in microseconds.
constexpr std::array<int, 6> kPaperRecursion = {155, 163, 197, 249, 294, 399};
constexpr std::array<int, 6> kPaperStart = {453, 678, 1014, 1290, 1615, 1898};

enum Way { kStart, kPartitions, kPlainStart, kPlainRecursion, kWayCount };

// Microseconds by method; sums over pieces.
using Times = std::array<double, kWayCount>;

struct Sums {
  std::array<Times, kOffsetsKib.size()> long_ranges = {};
  Times short_ranges = {};
  // Stored bytes without and with partitions, at levels 1 and 6.
  std::array<double, 2> whole_bytes = {};
  std::array<double, 2> partition_bytes = {};
  double plain_bytes = 0;
};

struct Arguments {
  std::vector<std::string> files;
  uint64_t pieces = 34;
  double round_us = 50;
};

// A block as `zlib:LEVEL` stores it.
struct ZlibBlock {
  std::unique_ptr<PayloadCodec> codec;
  std::unique_ptr<PayloadCodec::Scratch> scratch;
  CodedText text;

  static absl::StatusOr<ZlibBlock> Make(ByteView piece, int level,
                                        uint32_t partition_size_bytes) {
    const CodecSpec spec = {.id = CodecId::kZlib,
                            .level = level,
                            .partition_size_bytes = partition_size_bytes};
    QUIRE_ASSIGN_OR_RETURN(
        std::unique_ptr<PayloadCodec> codec,
        MakePayloadCodec(spec, nullptr, CodecUse::kEncodeAndDecode));
    QUIRE_ASSIGN_OR_RETURN(CodedText text,
                           CodedText::Encode(*codec, piece, piece.size()));
    std::unique_ptr<PayloadCodec::Scratch> scratch = codec->NewScratch();
    return ZlibBlock{std::move(codec), std::move(scratch), std::move(text)};
  }

  void Read(size_t offset, MutableByteView out) const {
    QUIRE_CHECK(text.Read(*codec, offset, out, *scratch).ok());
  }
};

// Returns zlib's parse at its default level, without the Huffman codes.
absl::StatusOr<std::vector<uint8_t>> PlainPhrases(ByteView piece) {
  std::vector<uint8_t> stream(DeflateSizeMax(piece.size()));
  DeflateStream zlib(6);
  QUIRE_ASSIGN_OR_RETURN(const size_t size, zlib.Compress(piece, stream));
  std::vector<uint8_t> output(piece.size());
  std::vector<TextMatch> matches;
  DeflateDecoder decoder;
  decoder.Start(ByteView(stream).first(size), output);
  decoder.RecordMatches(matches);
  QUIRE_RETURN_IF_ERROR(decoder.DecodeTo(output.size()).status());
  return StorePhrases(output, matches);
}

using Decode = std::function<void(size_t offset, MutableByteView out)>;

// Adds the microseconds of a range by each method; compares each answer with
// the text.
void AddTimes(const std::array<Decode, kWayCount>& ways, ByteView piece,
              size_t offset, size_t size, double round_us, Times& times) {
  std::vector<uint8_t> out(size);
  for (size_t way = 0; way < kWayCount; ++way) {
    ways[way](offset, out);
    QUIRE_CHECK(std::ranges::equal(out, piece.subspan(offset, size)), way);
    times[way] += 1e6 / BestRate(round_us / 1e6,
                                 [&](uint64_t) { ways[way](offset, out); });
  }
}

absl::Status Measure(ByteView piece, double round_us, Sums& sums) {
  for (size_t i = 0; i < 2; ++i) {
    const int level = i == 0 ? 1 : 6;
    QUIRE_ASSIGN_OR_RETURN(const ZlibBlock whole,
                           ZlibBlock::Make(piece, level, 0));
    QUIRE_ASSIGN_OR_RETURN(const ZlibBlock divided,
                           ZlibBlock::Make(piece, level, kPartitionSizeBytes));
    sums.whole_bytes[i] += static_cast<double>(whole.text.payload_bytes());
    sums.partition_bytes[i] +=
        static_cast<double>(divided.text.payload_bytes());
  }
  QUIRE_ASSIGN_OR_RETURN(const ZlibBlock start, ZlibBlock::Make(piece, 6, 0));
  QUIRE_ASSIGN_OR_RETURN(const ZlibBlock partitions,
                         ZlibBlock::Make(piece, 6, kPartitionSizeBytes));
  QUIRE_ASSIGN_OR_RETURN(const std::vector<uint8_t> phrases,
                         PlainPhrases(piece));
  QUIRE_ASSIGN_OR_RETURN(
      const PhraseBlock plain,
      PhraseBlock::Check(phrases, piece.size(), kDeflateMatchSizeMin));
  sums.plain_bytes += static_cast<double>(phrases.size());
  const GridPhraseIndex index(plain.Places(), piece.size(), phrases.size());
  RecursiveExtractor extractor;
  std::vector<uint8_t> text(piece.size());
  const std::array<Decode, kWayCount> ways = {
      [&](size_t at, MutableByteView out) { start.Read(at, out); },
      [&](size_t at, MutableByteView out) { partitions.Read(at, out); },
      [&](size_t at, MutableByteView out) {
        DecodePhrases(plain, MutableByteView(text).first(at + out.size()));
        std::copy_n(text.begin() + static_cast<ptrdiff_t>(at), out.size(),
                    out.begin());
      },
      [&](size_t at, MutableByteView out) {
        QUIRE_CHECK(
            extractor.Extract(plain, index, static_cast<uint32_t>(at), out));
      }};
  for (size_t i = 0; i < kOffsetsKib.size(); ++i) {
    for (const size_t size : kLongSizes) {
      AddTimes(ways, piece, kOffsetsKib[i] << 10, size, round_us,
               sums.long_ranges[i]);
    }
    for (const size_t size : kShortSizes) {
      AddTimes(ways, piece, kOffsetsKib[i] << 10, size, round_us,
               sums.short_ranges);
    }
  }
  return absl::OkStatus();
}

struct Piece {
  size_t zlib_bytes = 0;
  std::string text;
};

// Returns pieces from all files, of evenly spaced compressibility.
absl::StatusOr<std::vector<Piece>> ChoosePieces(const Arguments& arguments) {
  const uint64_t per_file = std::max<uint64_t>(
      1, kCandidates * arguments.pieces / arguments.files.size());
  std::vector<Piece> candidates;
  for (const std::string& file : arguments.files) {
    QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> source,
                           SourceText::Open(file, ""));
    const uint64_t count =
        std::min(per_file, source->size_bytes() / kPieceSizeBytes);
    for (uint64_t i = 0; i < count; ++i) {
      Piece piece;
      piece.text.resize(kPieceSizeBytes);
      QUIRE_RETURN_IF_ERROR(source->Read(source->size_bytes() / count * i,
                                         AsMutableBytes(piece.text)));
      QUIRE_ASSIGN_OR_RETURN(piece.zlib_bytes,
                             ZlibSizeBytes(AsBytes(piece.text)));
      candidates.push_back(std::move(piece));
    }
  }
  if (candidates.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no file has ", kPieceSizeBytes, " bytes; give larger files"));
  }
  std::ranges::sort(candidates, {}, &Piece::zlib_bytes);
  const size_t count = std::min<size_t>(arguments.pieces, candidates.size());
  std::vector<Piece> pieces;
  for (size_t i = 0; i < count; ++i) {
    pieces.push_back(candidates[i * (candidates.size() - 1) /
                                std::max<size_t>(1, count - 1)]);
  }
  return pieces;
}

void Print(const Sums& sums, double count) {
  Times all = {};
  absl::PrintF("| what | paper | here |\n|---|---|---|\n");
  for (size_t i = 0; i < kOffsetsKib.size(); ++i) {
    const Times& times = sums.long_ranges[i];
    absl::PrintF(
        "| at %d KiB: recursion / from the start, µs | %d / %d | %.0f / %.0f "
        "|\n",
        kOffsetsKib[i], kPaperRecursion[i], kPaperStart[i],
        times[kPlainRecursion] / count, times[kPlainStart] / count);
    for (size_t way = 0; way < kWayCount; ++way) {
      all[way] += times[way];
    }
  }
  const auto points = [&](size_t level) {
    return 100 * (sums.partition_bytes[level] - sums.whole_bytes[level]) /
           (count * kPieceSizeBytes);
  };
  absl::PrintF(
      "| 4 to 32 KiB at all offsets: recursion, as a multiple of the start | "
      "above 1 | %.2f |\n"
      "| 8 B to 4 KiB: the same | below 1 | %.2f |\n"
      "| 4 to 32 KiB: zlib in partitions of 32 KiB, as a multiple of zlib from "
      "the start | below 1 | %.2f |\n"
      "| points of size that partitions of 32 KiB cost, fastest / default "
      "level | 2 / 5 | %.2f / %.2f |\n"
      "| size without Huffman codes, as a multiple of zlib's | \"quite large\" "
      "| %.2f |\n",
      all[kPlainRecursion] / all[kPlainStart],
      sums.short_ranges[kPlainRecursion] / sums.short_ranges[kPlainStart],
      all[kPartitions] / all[kStart], points(0), points(1),
      sums.plain_bytes / sums.whole_bytes[1]);
}

absl::Status Run(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<Piece> pieces,
                         ChoosePieces(arguments));
  Sums sums;
  for (const Piece& piece : pieces) {
    QUIRE_RETURN_IF_ERROR(
        Measure(AsBytes(piece.text), arguments.round_us, sums));
  }
  absl::PrintF(
      "Four ranges of 4, 8, 16 and 32 KiB at each offset: one file of the "
      "paper "
      "(Figure 3), and the mean of %d pieces of %d bytes, which zlib stores in "
      "%.0f to %.0f %% of their size. Recursion and its start have no Huffman "
      "codes here.\n\n",
      pieces.size(), kPieceSizeBytes,
      100.0 * static_cast<double>(pieces.front().zlib_bytes) / kPieceSizeBytes,
      100.0 * static_cast<double>(pieces.back().zlib_bytes) / kPieceSizeBytes);
  Print(sums, static_cast<double>(pieces.size()));
  return absl::OkStatus();
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.add_option("FILE", arguments.files)->required();
  app.add_option("--pieces", arguments.pieces, "Number of pieces to measure")
      ->check(CountInRange(1, 10'000))
      ->capture_default_str();
  app.add_option("--round-us", arguments.round_us,
                 "CPU time of each of three rounds for a range, microseconds")
      ->check(NumberInRange(1, 1e6))
      ->capture_default_str();
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Arguments arguments;
  return quire::RunProgram(
      "paper_extraction", "ranges of blocks by each way of decoding them", 1,
      [&](CLI::App& app) {
        quire::Declare(app, arguments);
        app.parse(argc, argv);
        const absl::Status status = quire::Run(arguments);
        if (!status.ok()) {
          std::cerr << "paper_extraction: " << status.message() << "\n";
        }
        return status.ok() ? 0 : 1;
      });
}
