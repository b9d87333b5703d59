// SPDX-License-Identifier: Apache-2.0
//
// codec_bench: what a codec makes of a text, and how fast. codec_bench.py runs
// it over codecs, block sizes and dictionaries; each line it prints is one JSON
// object.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "loadtest/codec_bench/chosen_dictionary.h"
#include "loadtest/codec_bench/codec_figures.h"
#include "loadtest/codec_bench/reading_times.h"
#include "loadtest/codec_bench/stored_text.h"
#include "loadtest/codec_bench/text_sample.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

constexpr int kCheckedRangeCount = 500;

struct Arguments {
  std::string text;
  // dictionary
  std::string method = "coverage";
  std::string size = "16MiB";
  std::string output;
  // measure
  std::string codec;
  std::vector<std::string> block_sizes = {"64KiB"};
  std::string dictionary;
  std::string documents;
  std::string range_size = "16KiB";
  double encode_seconds = 0;
  size_t encode_threads = 1;
  double decode_seconds = 0.3;
  int repetitions = 3;
  // table2
  std::vector<std::string> codecs = {"lz4:-8", "lz4",  "lz4:9",
                                     "xz",     "zlib", "zstd"};
  std::string sample_size = "64MiB";
  size_t jobs = std::max(1U, std::thread::hardware_concurrency());
};

// VmHWM of this process; 0 if the system does not say.
uint64_t PeakMemoryBytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmHWM:") {
      uint64_t kibibytes = 0;
      status >> kibibytes;
      return kibibytes * kKiB;
    }
  }
  return 0;
}

absl::Status WriteDictionary(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> text,
                         SourceText::Open(arguments.text, ""));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size, ParseByteSize(arguments.size));
  QUIRE_ASSIGN_OR_RETURN(const ChosenDictionary dictionary,
                         ChooseDictionary(*text, arguments.method, size));
  const uint64_t peak_memory_bytes = PeakMemoryBytes();
  QUIRE_ASSIGN_OR_RETURN(const size_t xz_size, XzSizeBytes(dictionary.text));
  QUIRE_ASSIGN_OR_RETURN(const size_t zlib_size,
                         ZlibSizeBytes(dictionary.text));
  std::ofstream out(arguments.output, std::ios::binary | std::ios::trunc);
  out.write(dictionary.text.data(),
            static_cast<std::streamsize>(dictionary.text.size()));
  out.close();
  if (!out) {
    return absl::UnavailableError(
        absl::StrCat(arguments.output, ": cannot be written"));
  }
  absl::PrintF(
      "{\"dictionary_bytes\": %d, \"dictionary_xz_bytes\": %d, "
      "\"dictionary_zlib_bytes\": %d, \"choose_cpu_seconds\": %.3f, "
      "\"peak_memory_bytes\": %d}\n",
      dictionary.text.size(), xz_size, zlib_size, dictionary.choose_cpu_seconds,
      peak_memory_bytes);
  return absl::OkStatus();
}

// One codec over one dictionary, both for encoding and as a reader has it.
struct Subject {
  CodecSpec spec;
  uint64_t dictionary_bytes = 0;
  double prepare_cpu_seconds = 0;
  std::unique_ptr<BlockCodec> encoder;
  std::unique_ptr<BlockCodec> decoder;
};

// A symbol table for 256 pieces of the text, evenly spread.
absl::StatusOr<std::string> TrainTable(const SourceText& text) {
  constexpr uint64_t kPieceCount = 256;
  constexpr uint64_t kPieceSizeBytes = 4096;
  std::vector<std::vector<uint8_t>> pieces;
  for (uint64_t i = 0; i < kPieceCount; ++i) {
    const uint64_t offset = text.size_bytes() / kPieceCount * i;
    auto& piece = pieces.emplace_back(
        std::min(kPieceSizeBytes, text.size_bytes() - offset));
    QUIRE_RETURN_IF_ERROR(text.Read(offset, piece));
  }
  const std::vector<ByteView> views(pieces.begin(), pieces.end());
  return TrainSymbolTable(views).Serialise();
}

absl::StatusOr<Subject> MakeSubject(const Arguments& arguments,
                                    const SourceText& text) {
  Subject subject;
  QUIRE_ASSIGN_OR_RETURN(subject.spec, ParseCodecSpec(arguments.codec));
  std::shared_ptr<CodecContext> context;
  if (FindCodec(subject.spec.id)->needs_dictionary) {
    context = std::make_shared<CodecContext>();
    std::ifstream file(arguments.dictionary, std::ios::binary);
    std::ostringstream contents;
    contents << file.rdbuf();
    if (!file) {
      return absl::NotFoundError(absl::StrCat(
          "codec ", arguments.codec, " needs --dictionary; cannot read \"",
          arguments.dictionary, "\""));
    }
    context->dictionary = std::move(contents).str();
    subject.dictionary_bytes = context->dictionary.size();
  }
  if (FindCodec(subject.spec.id)->needs_symbol_table) {
    context = std::make_shared<CodecContext>();
    QUIRE_ASSIGN_OR_RETURN(context->symbol_table, TrainTable(text));
  }
  const double started = ThreadCpuSeconds();
  QUIRE_ASSIGN_OR_RETURN(
      subject.encoder,
      MakeBlockCodec(subject.spec, context, CodecUse::kEncodeAndDecode));
  subject.prepare_cpu_seconds = ThreadCpuSeconds() - started;
  QUIRE_ASSIGN_OR_RETURN(subject.decoder, MakeBlockCodec(subject.spec, context,
                                                         CodecUse::kDecode));
  return subject;
}

absl::Status MeasureBlockSize(const Arguments& arguments,
                              const Subject& subject, const SourceText& text,
                              const TextSample& sample,
                              uint32_t block_size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t range_size,
                         ParseByteSize(arguments.range_size));
  QUIRE_ASSIGN_OR_RETURN(
      const StoredText stored,
      StoredText::Encode(*subject.encoder, sample, block_size_bytes,
                         arguments.encode_threads));
  const uint64_t range_size_bytes =
      std::min<uint64_t>(range_size, sample.size_bytes());
  QUIRE_RETURN_IF_ERROR(stored.Check(*subject.decoder, sample,
                                     kCheckedRangeCount,
                                     static_cast<uint32_t>(range_size_bytes)));
  QUIRE_ASSIGN_OR_RETURN(const ReadingTimes times,
                         TimeReading(stored, *subject.decoder, text.documents(),
                                     {.range_size_bytes = range_size_bytes,
                                      .seconds = arguments.decode_seconds,
                                      .repetitions = arguments.repetitions}));
  const double scale = sample.ScaleToText();
  const auto sample_size = static_cast<double>(sample.size_bytes());
  absl::PrintF(
      "{\"codec\": \"%s\", \"block_size_bytes\": %d, \"dictionary_bytes\": %d, "
      "\"text_bytes\": %d, \"encoded_bytes\": %d, \"payload_bytes\": %.0f, "
      "\"index_bytes\": %.0f, \"prepare_cpu_seconds\": %.3f, "
      "\"encode_mb_per_second\": %.3f, \"decode_mb_per_second\": %.1f, "
      "\"range_size_bytes\": %d, \"ranges_per_second\": %.1f, "
      "\"documents_per_second\": %.1f, \"encoder_bytes\": %d, "
      "\"decoder_bytes\": %d, \"peak_memory_bytes\": %d}\n",
      FormatCodecSpec(subject.spec), block_size_bytes, subject.dictionary_bytes,
      text.size_bytes(), sample.size_bytes(),
      static_cast<double>(stored.payload_bytes()) * scale,
      static_cast<double>(stored.index_bytes()) * scale,
      subject.prepare_cpu_seconds,
      sample_size / 1e6 / std::max(1e-9, stored.encode_cpu_seconds()),
      times.decoded_bytes / 1e6, range_size_bytes, times.ranges,
      times.documents, subject.encoder->MemoryBytes(),
      subject.decoder->MemoryBytes(), PeakMemoryBytes());
  std::fflush(stdout);
  return absl::OkStatus();
}

// A power of two, so that codecs of like speed meet the same sample.
uint64_t StrideFor(double seconds, double seconds_max) {
  return seconds_max <= 0 || seconds <= seconds_max
             ? 1
             : std::bit_ceil(static_cast<uint64_t>(seconds / seconds_max));
}

absl::Status Measure(const Arguments& arguments) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> text,
                         SourceText::Open(arguments.text, arguments.documents));
  if (text->size_bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.text, ": is empty"));
  }
  std::vector<uint32_t> block_sizes;
  for (const std::string& word : arguments.block_sizes) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, ParseByteSize(word));
    if (size == 0 || size > kBlockSizeBytesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("--block-sizes ", word, ": must be 1 byte to 1MiB"));
    }
    block_sizes.push_back(static_cast<uint32_t>(size));
  }
  QUIRE_ASSIGN_OR_RETURN(const Subject subject, MakeSubject(arguments, *text));
  uint64_t stride = 1;
  if (arguments.encode_seconds > 0 && text->documents().empty()) {
    QUIRE_ASSIGN_OR_RETURN(
        const double seconds_per_byte,
        EstimateEncodeSecondsPerByte(*subject.encoder, TextSample(*text, 1),
                                     block_sizes.front()));
    stride =
        StrideFor(seconds_per_byte * static_cast<double>(text->size_bytes()),
                  arguments.encode_seconds);
  }
  const TextSample sample(*text, stride);
  for (const uint32_t block_size : block_sizes) {
    QUIRE_RETURN_IF_ERROR(
        MeasureBlockSize(arguments, subject, *text, sample, block_size));
  }
  return absl::OkStatus();
}

// Tables 1 and 2 of the paper that codec_figures.h names.
absl::Status PrintTables(Arguments arguments) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> text,
                         SourceText::Open(arguments.text, ""));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t block_size,
                         ParseByteSize(arguments.block_sizes.front()));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t sample_size,
                         ParseByteSize(arguments.sample_size));
  if (text->size_bytes() == 0 || sample_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        arguments.text, ": text and --sample-size must have a byte or more"));
  }
  if (block_size == 0 || block_size > kBlockSizeBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--block-size ", arguments.block_sizes.front(),
                     ": must be 1 byte to 1MiB"));
  }
  const TextSample sample(*text,
                          (text->size_bytes() + sample_size - 1) / sample_size);
  std::vector<NamedFigures> rows;
  for (const std::string& codec : arguments.codecs) {
    arguments.codec = codec;
    QUIRE_ASSIGN_OR_RETURN(const Subject subject,
                           MakeSubject(arguments, *text));
    QUIRE_ASSIGN_OR_RETURN(
        const CodecFigures figures,
        MeasureFigures(*subject.encoder, *subject.decoder, sample,
                       static_cast<uint32_t>(block_size), arguments.jobs,
                       arguments.decode_seconds));
    rows.push_back({FormatCodecSpec(subject.spec), figures});
  }
  absl::PrintF("%d bytes of %s in blocks of %s, %d jobs at once\n\n%s",
               sample.size_bytes(), arguments.text,
               arguments.block_sizes.front(), arguments.jobs,
               FormatTables(rows, arguments.jobs));
  return absl::OkStatus();
}

absl::Status List() {
  for (const CodecInfo& codec : AllCodecs()) {
    absl::PrintF(
        "{\"codec\": \"%s\", \"level_min\": %d, \"level_default\": %d, "
        "\"level_max\": %d, \"needs_dictionary\": %s}\n",
        codec.name, codec.level_min, codec.level_default, codec.level_max,
        codec.needs_dictionary ? "true" : "false");
  }
  return absl::OkStatus();
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.require_subcommand(1);
  app.add_subcommand("codecs", "Print the codecs there are");
  CLI::App* const choose =
      app.add_subcommand("dictionary", "Choose a dictionary out of a text");
  choose->add_option("TEXT", arguments.text)->required();
  choose->add_option("--method", arguments.method)->capture_default_str();
  choose->add_option("--size", arguments.size)->capture_default_str();
  choose->add_option("--output", arguments.output, "file to write")->required();
  CLI::App* const measure = app.add_subcommand(
      "measure", "Encode a text, check it, time encoding and decoding");
  measure->add_option("TEXT", arguments.text)->required();
  measure->add_option("--codec", arguments.codec, "NAME[:LEVEL]")->required();
  measure->add_option("--block-sizes", arguments.block_sizes, "A,B,...")
      ->delimiter(',');
  measure->add_option("--dictionary", arguments.dictionary, "file");
  measure->add_option("--documents", arguments.documents,
                      "lines of OFFSET<tab>SIZE<tab>ID; times these, too, and "
                      "encodes all of the text");
  measure->add_option("--range-size", arguments.range_size)
      ->capture_default_str();
  measure->add_option(
      "--encode-seconds", arguments.encode_seconds,
      "encode only pieces spread over the text, so many that it "
      "takes about so long; 0: the whole text");
  measure->add_option("--encode-threads", arguments.encode_threads)
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  measure
      ->add_option("--decode-seconds", arguments.decode_seconds,
                   "CPU time of each repetition of each loop")
      ->check(CLI::PositiveNumber);
  measure
      ->add_option("--repetitions", arguments.repetitions,
                   "of which the best counts")
      ->check(CountInRange(1, 100));
}

void DeclareTables(CLI::App& app, Arguments& arguments) {
  CLI::App* const tables = app.add_subcommand(
      "table2",
      "Print what codecs make of a text while all cores work, and the links on "
      "which each pays");
  tables->add_option("TEXT", arguments.text)->required();
  tables->add_option("--codecs", arguments.codecs, "NAME[:LEVEL],...")
      ->delimiter(',')
      ->capture_default_str();
  tables->add_option("--block-size", arguments.block_sizes)
      ->expected(1)
      ->capture_default_str();
  tables->add_option("--dictionary", arguments.dictionary,
                     "file, for codecs that need one");
  tables
      ->add_option("--sample-size", arguments.sample_size,
                   "pieces spread over the text, of about so much together")
      ->capture_default_str();
  tables->add_option("--jobs", arguments.jobs, "threads (default: cores)")
      ->check(CountInRange(1, 1024));
  tables
      ->add_option("--seconds", arguments.decode_seconds,
                   "CPU time at least of each job")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

int Run(const CLI::App& app, const Arguments& arguments) {
  const absl::Status status =
      app.got_subcommand("codecs")       ? List()
      : app.got_subcommand("dictionary") ? WriteDictionary(arguments)
      : app.got_subcommand("table2")     ? PrintTables(arguments)
                                         : Measure(arguments);
  if (!status.ok()) {
    std::cerr << "codec_bench: " << status << "\n";
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Arguments arguments;
  return quire::RunProgram("codec_bench",
                           "sizes and speeds of codecs over a text", 1,
                           [&](CLI::App& app) {
                             quire::Declare(app, arguments);
                             quire::DeclareTables(app, arguments);
                             app.parse(argc, argv);
                             return quire::Run(app, arguments);
                           });
}
