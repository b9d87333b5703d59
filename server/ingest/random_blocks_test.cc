// SPDX-License-Identifier: GPL-3.0-or-later
//
// Tests random texts in random combinations of codec, level, partitions,
// layout, block sizes and inflating, decoded whole and by ranges and compared.
//
//   random_blocks_test [--seed S] [--blocks N] [--minutes M]
//
// Ends after N blocks (2000 by default), or after M minutes if that is given. A
// failure prints the seed of its trial, which `--seed S --blocks 1` repeats.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "server/archive/archive.h"
#include "server/ingest/build_pipeline.h"
#include "server/ingest/recompress.h"
#include "server/ingest/testing/ingest_testing.h"
#include "server/ingest/testing/memory_source.h"
#include "testing/codecs/codec_test_inputs.h"
#include "testing/codecs/deflate_test_streams.h"

namespace quire {
namespace {

constexpr size_t kTextSizeMax = 64 << 10;
constexpr int kBlocksOfCodecTrial = 100;

// Returns 0 to `max`; all orders of magnitude are equally likely.
size_t RandomSize(TestRandom& random, size_t max) {
  size_t bits = 0;
  while (max >> bits != 0) {
    ++bits;
  }
  return std::min(
      max, RandomBelow(random, size_t{1} << RandomBelow(random, bits + 1)));
}

template <typename T>
const T& OneOf(TestRandom& random, const std::vector<T>& values) {
  return values[RandomBelow(random, values.size())];
}

// Generates texts of all kinds, cheaply.
class TextMaker {
 public:
  explicit TextMaker(TestRandom& random) : random_(random) {
    words_ = RandomText(random_, 150'000, 1 + RandomSize(random_, 5000));
  }

  // `known` is earlier text.
  std::string Make(size_t size, const std::string& known) {
    switch (RandomBelow(random_, 8)) {
      case 0:
        return RandomBytes(random_, size);
      case 1:
        return std::string(size, static_cast<char>(random_()));
      case 2:
        return Repeated(size);
      case 3:
        return Numbers(size);
      case 4:
        return MixedText(random_, size);
      case 5:
        return known.empty() ? Words(size) : EditedPieces(random_, known, size);
      case 6:
        return Members(size);
      default:
        return Words(size);
    }
  }

 private:
  std::string Words(size_t size) {
    return words_.substr(RandomBelow(random_, words_.size() - size), size);
  }

  std::string Repeated(size_t size) {
    const std::string period =
        RandomBytes(random_, 1 + RandomSize(random_, 99));
    std::string text;
    while (text.size() < size) {
      text += period;
    }
    text.resize(size);
    return text;
  }

  // Numbers of 1 to 8 bytes each, with steps of up to 255.
  std::string Numbers(size_t size) {
    const size_t width = 1 + RandomBelow(random_, 8);
    const size_t step_max = 1 + RandomBelow(random_, 255);
    std::string text;
    for (uint64_t value = random_() >> 40; text.size() < size;
         value += RandomBelow(random_, step_max)) {
      for (size_t i = 0; i < width; ++i) {
        text += static_cast<char>(value >> (8 * i));
      }
    }
    text.resize(size);
    return text;
  }

  // Compressed members with text between them; the last may be truncated.
  std::string Members(size_t size) {
    std::string text;
    while (text.size() < size) {
      std::string plain = Words(RandomSize(random_, kTextSizeMax));
      if (RandomBelow(random_, 4) == 0) {
        plain = MixedText(random_, plain.size());
      }
      text +=
          ZlibStream(RandomZlibParameters(random_), plain,
                     static_cast<DeflateContainer>(RandomBelow(random_, 3)));
      text += Words(RandomSize(random_, 500));
    }
    text.resize(size);
    return text;
  }

  TestRandom& random_;
  std::string words_;
};

CodecSpec RandomSpec(TestRandom& random) {
  const CodecInfo& info = AllCodecs()[RandomBelow(random, AllCodecs().size())];
  CodecSpec spec = DefaultCodecSpec(info);
  spec.level =
      info.level_min +
      static_cast<int>(RandomBelow(
          random, static_cast<size_t>(info.level_max - info.level_min) + 1));
  if (info.takes_partitions && RandomBelow(random, 2) == 0) {
    spec.partition_size_bytes = kPartitionSizeBytesMin
                                << RandomBelow(random, 9);
  }
  return spec;
}

const std::shared_ptr<const CodecContext>& RandomContext(TestRandom& random) {
  static auto* const contexts =
      new std::vector<std::shared_ptr<const CodecContext>>{
          MakeTestContext(1), MakeTestContext(300), MakeTestContext(9000),
          MakeTestContext(70'000), MakeTestContext(400'000)};
  return OneOf(random, *contexts);
}

absl::Status Differs(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(what, " differs"));
}

// Counters of the trials. Thread-compatible.
struct Totals {
  uint64_t blocks = 0;
  uint64_t text_bytes = 0;
  uint64_t ranges = 0;
  uint64_t archives = 0;
  uint64_t layouts = 0;
  uint64_t varying = 0;
  uint64_t recipes = 0;
  std::map<std::string, uint64_t> blocks_by_codec;
};

// --- A codec alone: blocks of any size ---

absl::Status CheckRanges(const PayloadCodec& codec, const Payload& payload,
                         const std::string& text, TestRandom& random,
                         PayloadCodec::Scratch& scratch, Totals& totals) {
  for (int i = 0; i < 4; ++i) {
    const size_t offset = RandomBelow(random, text.size() + 1);
    std::string range(RandomSize(random, text.size() - offset), '?');
    QUIRE_RETURN_IF_ERROR(codec.DecodeRange(payload, text.size(), offset,
                                            AsMutableBytes(range), scratch));
    if (range != text.substr(offset, range.size())) {
      return Differs(absl::StrCat("a range of ", range.size(), " bytes at ",
                                  offset, " of ", text.size()));
    }
    const TextRange decoded =
        codec.DecodedRange(text.size(), {offset, range.size()});
    if (!range.empty() &&
        (decoded.offset > offset ||
         decoded.offset + decoded.size > text.size() ||
         decoded.offset + decoded.size < offset + range.size())) {
      return Differs("the text that a range decodes");
    }
    ++totals.ranges;
  }
  return absl::OkStatus();
}

absl::Status RunCodecTrial(TestRandom& random, Totals& totals) {
  const CodecSpec spec = RandomSpec(random);
  const auto& context = RandomContext(random);
  const size_t inflated_text_size_max =
      RandomBelow(random, 2) == 0 ? 0 : 1 + RandomSize(random, 2 << 20);
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<PayloadCodec> codec,
      MakePayloadCodec(spec, context, CodecUse::kEncodeAndDecode,
                       inflated_text_size_max));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<PayloadCodec> decoder,
                         MakePayloadCodec(spec, context, CodecUse::kDecode,
                                          inflated_text_size_max));
  const auto scratch = codec->NewScratch();
  const auto decoder_scratch = decoder->NewScratch();
  TextMaker maker(random);
  for (int i = 0; i < kBlocksOfCodecTrial; ++i) {
    const std::string text =
        maker.Make(std::max<size_t>(1, RandomSize(random, kTextSizeMax)),
                   context->dictionary);
    std::vector<uint8_t> buffer(codec->StoredSizeMax(text.size()));
    QUIRE_ASSIGN_OR_RETURN(Payload payload,
                           codec->Encode(AsBytes(text), buffer, *scratch));
    // A copy of the exact size lets AddressSanitizer see over-reads.
    const std::vector<uint8_t> stored(payload.bytes.begin(),
                                      payload.bytes.end());
    payload.bytes = stored;
    totals.recipes += payload.has_recipe ? 1 : 0;
    std::string decoded(text.size(), '?');
    QUIRE_RETURN_IF_ERROR(
        decoder->Decode(payload, AsMutableBytes(decoded), *decoder_scratch));
    if (decoded != text) {
      return Differs(absl::StrCat("block ", i, " of ", text.size(), " bytes, ",
                                  FormatCodecSpec(spec)));
    }
    QUIRE_RETURN_IF_ERROR(
        CheckRanges(*decoder, payload, text, random, *decoder_scratch, totals));
    totals.text_bytes += text.size();
    ++totals.blocks;
    ++totals.blocks_by_codec[std::string(codec->info().name)];
  }
  return absl::OkStatus();
}

// --- Archives: layouts, varying sizes, segments ---

IdsAndContents RandomDocuments(TestRandom& random) {
  TextMaker maker(random);
  IdsAndContents documents;
  std::string known;
  const size_t count = 1 + RandomBelow(random, 120);
  for (size_t i = 0; i < count; ++i) {
    std::string text = maker.Make(RandomSize(random, kTextSizeMax), known);
    // A whole earlier document, or nearly.
    if (!documents.empty() && RandomBelow(random, 5) == 0) {
      text = OneOf(random, documents).second;
      if (!text.empty() && RandomBelow(random, 2) == 0) {
        text[RandomBelow(random, text.size())] ^= 1;
      }
    }
    if (known.size() < 300'000) {
      known += text;
    }
    documents.emplace_back(absl::StrCat("document-", i), std::move(text));
  }
  return documents;
}

BuildOptions RandomOptions(TestRandom& random) {
  BuildOptions options;
  options.archive.codec = RandomSpec(random);
  // A codec for which it matters.
  if (RandomBelow(random, 4) == 0) {
    options.archive.codec = *ParseCodecSpec("rlz");
  }
  options.archive.block_size_bytes =
      4096U << std::min(RandomBelow(random, 5), RandomBelow(random, 5));
  FitPartitions(options.archive.block_size_bytes, options.archive.codec);
  options.archive.replace = true;
  options.dictionary_size_bytes = 1 + RandomSize(random, 200'000);
  options.dictionary_method = RandomBelow(random, 2) == 0
                                  ? DictionaryMethod::kCoverage
                                  : DictionaryMethod::kUniform;
  options.reorder = OneOf<ReorderMode>(
      random, {ReorderMode::kOff, ReorderMode::kAuto, ReorderMode::kDuplicates,
               ReorderMode::kFull});
  options.inflate = RandomBelow(random, 2) == 0;
  if (RandomBelow(random, 3) == 0) {
    options.inflate_member_size_bytes_max = 1 + RandomSize(random, 200'000);
  }
  options.segment_size_bytes = 20'000 + RandomSize(random, 4 << 20);
  options.threads = static_cast<uint32_t>(1 + RandomBelow(random, 2));
  return options;
}

// Decodes only the part of each block that a range touches.
absl::Status CheckRange(const Archive& archive, LogicalRange range,
                        absl::string_view expected,
                        PayloadCodec::Scratch& scratch) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive.Plan(range));
  std::vector<uint8_t> frame;
  std::string text;
  for (const BlockSlice& slice : slices) {
    QUIRE_RETURN_IF_ERROR(archive.ReadPayload(slice.block, frame).status());
    std::string part(slice.size_bytes, '?');
    const BlockPart parts[] = {{.offset_in_block = slice.offset_in_block,
                                .text = AsMutableBytes(part)}};
    QUIRE_RETURN_IF_ERROR(
        archive.DecodeBlock(slice.block, frame, parts, scratch));
    text += part;
  }
  return text == expected
             ? absl::OkStatus()
             : Differs(absl::StrCat("the range of ", range.size_bytes,
                                    " bytes at ", range.offset.value));
}

// Decodes each block as a whole, wherever documents are in it.
absl::Status CheckWhole(const Archive& archive, absl::string_view expected,
                        PayloadCodec::Scratch& scratch) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                         archive.Plan({{0}, expected.size()}));
  std::map<BlockAddress, std::string> blocks;
  size_t offset = 0;
  for (const BlockSlice& slice : slices) {
    std::string& block = blocks[slice.block];
    if (block.empty()) {
      block.resize(archive.BlockSizeBytes(slice.block));
      QUIRE_RETURN_IF_ERROR(
          archive.ReadBlock(slice.block, AsMutableBytes(block), scratch));
    }
    if (absl::string_view(block).substr(slice.offset_in_block,
                                        slice.size_bytes) !=
        expected.substr(offset, slice.size_bytes)) {
      return Differs(absl::StrCat("the text at ", offset));
    }
    offset += slice.size_bytes;
  }
  return offset == expected.size() ? absl::OkStatus()
                                   : Differs("the size of the text");
}

absl::Status CheckArchive(const std::string& path, const BuildSummary& summary,
                          const std::string& text, TestRandom& random,
                          Totals& totals) {
  if (summary.mismatched_block_count != 0) {
    return Differs(absl::StrCat(summary.mismatched_block_count,
                                " blocks, which the build noticed,"));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::Open(path));
  const ArchiveInfo& info = archive->info();
  if (info.size_bytes != text.size()) {
    return Differs("the size of the archive");
  }
  const auto scratch = archive->codec().NewScratch();
  QUIRE_RETURN_IF_ERROR(CheckWhole(*archive, text, *scratch));
  const uint64_t range_count = std::min<uint64_t>(info.block_count, 100);
  for (uint64_t i = 0; i < range_count; ++i) {
    const size_t offset = RandomBelow(random, text.size() + 1);
    const size_t size = RandomSize(random, text.size() - offset);
    QUIRE_RETURN_IF_ERROR(
        CheckRange(*archive, {{offset}, size},
                   absl::string_view(text).substr(offset, size), *scratch));
  }
  totals.ranges += range_count;
  totals.blocks += info.block_count;
  totals.text_bytes += info.stored_text_size_bytes;
  ++totals.archives;
  totals.layouts += archive->has_layout() ? 1 : 0;
  totals.varying += info.has_varying_blocks ? 1 : 0;
  totals.blocks_by_codec[std::string(FindCodec(info.codec.id)->name)] +=
      info.block_count;
  return absl::OkStatus();
}

// Adds the trial's parameters to an error.
absl::Status Explain(const absl::Status& status, absl::string_view verb,
                     const BuildOptions& options) {
  return absl::Status(
      status.code(),
      absl::StrCat(verb, " with codec ", FormatCodecSpec(options.archive.codec),
                   ", partitions of ",
                   options.archive.codec.partition_size_bytes, ", blocks of ",
                   options.archive.block_size_bytes, ", segments of ",
                   options.segment_size_bytes, ", dictionary of ",
                   *options.dictionary_size_bytes, ", reorder mode ",
                   static_cast<int>(options.reorder), ", inflate ",
                   options.inflate ? options.inflate_member_size_bytes_max : 0,
                   ": ", status.message()));
}

absl::Status RunArchiveTrial(const TemporaryDirectory& directory,
                             TestRandom& random, Totals& totals) {
  const IdsAndContents documents = RandomDocuments(random);
  std::string text;
  for (const auto& [id, contents] : documents) {
    text += contents;
  }
  const std::string path = directory / "built";
  const BuildOptions options = RandomOptions(random);
  const auto built = BuildArchive(path, OneSource(documents), options);
  const absl::Status checked =
      built.ok() ? CheckArchive(path, *built, text, random, totals)
                 : built.status();
  if (!checked.ok()) {
    return Explain(checked, "built", options);
  }
  if (RandomBelow(random, 3) != 0) {
    return absl::OkStatus();
  }
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<const Archive> archive,
                         Archive::Open(path));
  const std::string other = directory / "recompressed";
  const BuildOptions other_options = RandomOptions(random);
  const auto recompressed = RecompressArchive(other, archive, other_options);
  const absl::Status rechecked =
      recompressed.ok()
          ? CheckArchive(other, *recompressed, text, random, totals)
          : recompressed.status();
  return rechecked.ok() ? rechecked
                        : Explain(rechecked, "recompressed", other_options);
}

// --- The program ---

struct Arguments {
  uint64_t seed = 1;
  uint64_t blocks = 2000;
  std::optional<uint64_t> minutes;
};

// Returns nullopt if they are malformed.
std::optional<Arguments> ParseArguments(int count, char** values) {
  Arguments arguments;
  for (int i = 1; i < count; i += 2) {
    const absl::string_view name = values[i];
    uint64_t value = 0;
    if (i + 1 == count || !absl::SimpleAtoi(values[i + 1], &value)) {
      return std::nullopt;
    }
    if (name == "--seed") {
      arguments.seed = value;
    } else if (name == "--blocks") {
      arguments.blocks = value;
    } else if (name == "--minutes") {
      arguments.minutes = value;
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

void Print(const Totals& totals, double seconds) {
  std::cout << totals.blocks << " blocks of " << totals.text_bytes
            << " bytes and " << totals.ranges << " ranges in " << seconds
            << " s, " << totals.archives << " archives (" << totals.layouts
            << " with a layout, " << totals.varying << " with varying blocks), "
            << totals.recipes << " blocks with recipes; by codec:";
  for (const auto& [name, count] : totals.blocks_by_codec) {
    std::cout << " " << name << " " << count;
  }
  std::cout << std::endl;
}

int Main(int argument_count, char** argument_values) {
  const auto arguments = ParseArguments(argument_count, argument_values);
  if (!arguments.has_value()) {
    std::cerr
        << "usage: random_blocks_test [--seed S] [--blocks N] [--minutes M]\n";
    return 2;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [&start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start)
        .count();
  };
  Totals totals;
  double printed = 0;
  for (uint64_t seed = arguments->seed;
       arguments->minutes.has_value()
           ? seconds() < 60.0 * static_cast<double>(*arguments->minutes)
           : totals.blocks < arguments->blocks;
       ++seed) {
    TestRandom random(seed);
    // Its directory is removed with all files of the trial.
    const TemporaryDirectory directory;
    const absl::Status status =
        RandomBelow(random, 2) == 0
            ? RunCodecTrial(random, totals)
            : RunArchiveTrial(directory, random, totals);
    if (!status.ok()) {
      std::cerr << "FAILED: " << status
                << "\nrepeat it with random_blocks_test "
                << "--seed " << seed << " --blocks 1\n";
      return 1;
    }
    if (seconds() > printed + 60) {
      printed = seconds();
      Print(totals, printed);
    }
  }
  Print(totals, seconds());
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  return quire::Main(argc, argv);
}
