// SPDX-License-Identifier: Apache-2.0
//
// codec_figures: sizes and speeds of codecs over a text, in memory; scripts run
// it. Prints one line of JSON for each codec and block size: sizes in bytes,
// speeds per second of one thread's CPU time while --threads threads do the
// same. Every decoded byte is compared with the text before it is timed.
#include <lzma.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/check.h"
#include "codecs/base/number_range.h"
#include "codecs/base/program_main.h"
#include "codecs/base/status_macros.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "codecs/payload/payload_codec.h"
#include "codecs/rlz/coverage_dictionary.h"
#include "codecs/rlz/dictionary_builder.h"
#include "codecs/rlz/uniform_dictionary.h"
#include "loadtest/papers/coded_text.h"
#include "loadtest/requests/source_text.h"

namespace quire {
namespace {

struct Arguments {
  std::string text;
  std::string index;
  std::vector<std::string> codecs;
  std::vector<std::string> block_sizes = {"64KiB"};
  std::string dictionary_method = "coverage";
  std::string dictionary_size = "16MiB";
  std::string range_size = "16KiB";
  size_t threads = 1;
  double seconds = 0.3;
};

// The text, and the inputs of its codecs.
struct Input {
  std::string text;
  std::vector<SourceRow> documents;
  std::shared_ptr<CodecContext> context;
  uint64_t dictionary_xz_bytes = 0;
  uint64_t dictionary_zlib_bytes = 0;
};

// Size under xz -9e, the form in which archives store dictionaries.
absl::StatusOr<uint64_t> XzSizeBytes(ByteView text) {
  std::vector<uint8_t> packed(lzma_stream_buffer_bound(text.size()));
  size_t size = 0;
  if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_NONE, nullptr,
                              text.data(), text.size(), packed.data(), &size,
                              packed.size()) != LZMA_OK) {
    return absl::InternalError("liblzma does not compress the dictionary");
  }
  return size;
}

absl::Status ChooseDictionary(const Arguments& arguments, Input& input) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t size,
                         ParseByteSize(arguments.dictionary_size));
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<DictionaryBuilder> builder,
      arguments.dictionary_method == "uniform"
          ? MakeUniformDictionaryBuilder({.dictionary_size_bytes = size},
                                         input.text.size())
          : MakeCoverageDictionaryBuilder({.dictionary_size_bytes = size},
                                          input.text.size()));
  for (int pass = 0; pass < builder->pass_count(); ++pass) {
    QUIRE_RETURN_IF_ERROR(builder->Add(AsBytes(input.text)));
    QUIRE_RETURN_IF_ERROR(builder->FinishPass());
  }
  input.context->dictionary = builder->Take();
  const ByteView dictionary = AsBytes(input.context->dictionary);
  QUIRE_ASSIGN_OR_RETURN(input.dictionary_xz_bytes, XzSizeBytes(dictionary));
  QUIRE_ASSIGN_OR_RETURN(input.dictionary_zlib_bytes,
                         ZlibSizeBytes(dictionary));
  return absl::OkStatus();
}

// Trains a symbol table on 256 pieces of the text, evenly spread.
std::string TrainTable(ByteView text) {
  constexpr size_t kPieceCount = 256;
  constexpr size_t kPieceSizeBytes = 4096;
  std::vector<ByteView> pieces;
  for (size_t i = 0; i < kPieceCount; ++i) {
    const ByteView rest = text.subspan(text.size() / kPieceCount * i);
    pieces.push_back(rest.first(std::min(kPieceSizeBytes, rest.size())));
  }
  return TrainSymbolTable(pieces).Serialise();
}

absl::StatusOr<Input> Load(const Arguments& arguments,
                           const std::vector<CodecSpec>& codecs) {
  Input input;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<SourceText> source,
                         SourceText::Open(arguments.text, arguments.index));
  if (source->size_bytes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(arguments.text, ": is empty"));
  }
  input.text.resize(source->size_bytes());
  QUIRE_RETURN_IF_ERROR(source->Read(0, AsMutableBytes(input.text)));
  input.documents = source->documents();
  input.context = std::make_shared<CodecContext>();
  for (const CodecSpec& spec : codecs) {
    const CodecInfo& codec = *FindCodec(spec.id);
    if (codec.needs_dictionary && input.context->dictionary.empty()) {
      QUIRE_RETURN_IF_ERROR(ChooseDictionary(arguments, input));
    }
    if (codec.needs_symbol_table && input.context->symbol_table.empty()) {
      input.context->symbol_table = TrainTable(AsBytes(input.text));
    }
  }
  return input;
}

// Offset and size of each read, in bytes.
using Reads = std::vector<std::pair<uint64_t, size_t>>;

// Returns the reads per second of a thread's CPU time: the mean of the threads,
// each of which starts elsewhere in `reads`.
double ReadRate(const Arguments& arguments, const CodedText& coded,
                const PayloadCodec& codec, const Reads& reads) {
  std::vector<double> rates(arguments.threads, 0.0);
  {
    std::vector<std::jthread> threads;
    for (size_t thread = 0; thread < arguments.threads; ++thread) {
      threads.emplace_back([&, thread] {
        const std::unique_ptr<PayloadCodec::Scratch> scratch =
            codec.NewScratch();
        std::vector<uint8_t> out(
            std::ranges::max(reads, {}, &Reads::value_type::second).second);
        const size_t start = thread * reads.size() / arguments.threads;
        rates[thread] = BestRate(arguments.seconds, [&](uint64_t number) {
          const auto& [offset, size] = reads[(start + number) % reads.size()];
          QUIRE_CHECK(coded
                          .Read(codec, offset, MutableByteView(out).first(size),
                                *scratch)
                          .ok(),
                      "a read that succeeded fails");
        });
      });
    }
  }
  double sum = 0;
  for (const double rate : rates) {
    sum += rate;
  }
  return sum / static_cast<double>(rates.size());
}

Reads RandomRanges(uint64_t text_size, uint64_t range_size) {
  constexpr size_t kCount = 1 << 14;
  const uint64_t size = std::min(text_size, range_size);
  std::mt19937_64 random(1);
  Reads reads;
  for (size_t i = 0; i < kCount; ++i) {
    reads.emplace_back(random() % (text_size - size + 1), size);
  }
  return reads;
}

Reads RandomDocuments(const std::vector<SourceRow>& documents) {
  Reads reads;
  for (const SourceRow& row : documents) {
    reads.emplace_back(row.offset, row.size_bytes);
  }
  std::ranges::shuffle(reads, std::mt19937_64(1));
  return reads;
}

absl::Status Measure(const Arguments& arguments, const Input& input,
                     const CodecSpec& spec, size_t block_size) {
  const ByteView text = AsBytes(input.text);
  const bool has_dictionary = FindCodec(spec.id)->needs_dictionary;
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<PayloadCodec> codec,
      MakePayloadCodec(spec, input.context, CodecUse::kEncodeAndDecode));
  QUIRE_ASSIGN_OR_RETURN(
      const CodedText coded,
      CodedText::Encode(*codec, text, block_size, arguments.threads));
  QUIRE_RETURN_IF_ERROR(coded.Check(*codec, text));
  QUIRE_ASSIGN_OR_RETURN(const uint64_t index_bytes, coded.IndexBytes());
  QUIRE_ASSIGN_OR_RETURN(const uint64_t range_size,
                         ParseByteSize(arguments.range_size));
  Reads blocks;
  for (uint64_t offset = 0; offset < text.size(); offset += block_size) {
    blocks.emplace_back(offset,
                        std::min<uint64_t>(block_size, text.size() - offset));
  }
  const double block_bytes =
      static_cast<double>(text.size()) / static_cast<double>(blocks.size());
  absl::PrintF(
      "{\"codec\": \"%s\", \"block_size_bytes\": %d, \"text_bytes\": %d, "
      "\"payload_bytes\": %d, \"index_bytes\": %d, "
      "\"dictionary_xz_bytes\": %d, \"dictionary_zlib_bytes\": %d, "
      "\"encode_mb_per_second\": %.3f, \"decode_mb_per_second\": %.1f, "
      "\"ranges_per_second\": %.1f, \"documents_per_second\": %.1f}\n",
      FormatCodecSpec(spec), block_size, text.size(), coded.payload_bytes(),
      index_bytes, has_dictionary ? input.dictionary_xz_bytes : 0,
      has_dictionary ? input.dictionary_zlib_bytes : 0,
      static_cast<double>(text.size()) / 1e6 /
          std::max(1e-9, coded.encode_cpu_seconds()),
      ReadRate(arguments, coded, *codec, blocks) * block_bytes / 1e6,
      ReadRate(arguments, coded, *codec, RandomRanges(text.size(), range_size)),
      input.documents.empty() ? 0
                              : ReadRate(arguments, coded, *codec,
                                         RandomDocuments(input.documents)));
  std::fflush(stdout);
  return absl::OkStatus();
}

absl::Status MeasureAll(const Arguments& arguments) {
  std::vector<CodecSpec> codecs;
  for (const std::string& word : arguments.codecs) {
    QUIRE_ASSIGN_OR_RETURN(codecs.emplace_back(), ParseCodecSpec(word));
  }
  std::vector<size_t> block_sizes;
  for (const std::string& word : arguments.block_sizes) {
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size, ParseByteSize(word));
    if (size == 0 || size > kBlockSizeBytesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--block-sizes must be 1 byte to 1MiB each, got \"", word, "\""));
    }
    block_sizes.push_back(static_cast<size_t>(size));
  }
  QUIRE_ASSIGN_OR_RETURN(const Input input, Load(arguments, codecs));
  for (const CodecSpec& spec : codecs) {
    for (const size_t block_size : block_sizes) {
      QUIRE_RETURN_IF_ERROR(Measure(arguments, input, spec, block_size));
    }
  }
  return absl::OkStatus();
}

void Declare(CLI::App& app, Arguments& arguments) {
  app.add_option("TEXT", arguments.text, "File to encode")->required();
  app.add_option("--codecs", arguments.codecs, "NAME[:LEVEL],...")
      ->delimiter(',')
      ->required();
  app.add_option("--block-sizes", arguments.block_sizes, "SIZE,...")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--dictionary-size", arguments.dictionary_size)
      ->capture_default_str();
  app.add_option("--dictionary-method", arguments.dictionary_method)
      ->check(CLI::IsMember({"coverage", "uniform"}))
      ->capture_default_str();
  app.add_option("--index", arguments.index,
                 "Time whole documents, too: lines of OFFSET<tab>SIZE<tab>ID");
  app.add_option("--range-size", arguments.range_size, "Size of timed ranges")
      ->capture_default_str();
  app.add_option("--threads", arguments.threads,
                 "Threads that encode, and that decode the same, at once")
      ->check(CountInRange(1, 1024))
      ->capture_default_str();
  app.add_option("--seconds", arguments.seconds,
                 "CPU time of each of three rounds of a loop")
      ->check(NumberInRange(1e-6, 3600))
      ->capture_default_str();
}

}  // namespace
}  // namespace quire

int main(int argc, char** argv) {
  quire::Arguments arguments;
  return quire::RunProgram(
      "codec_figures", "sizes and speeds of codecs over a text", 1,
      [&](CLI::App& app) {
        quire::Declare(app, arguments);
        app.parse(argc, argv);
        const absl::Status status = quire::MeasureAll(arguments);
        if (!status.ok()) {
          std::cerr << "codec_figures: " << status.message() << "\n";
        }
        return status.ok() ? 0 : 1;
      });
}
