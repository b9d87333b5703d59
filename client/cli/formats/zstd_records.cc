// SPDX-License-Identifier: Apache-2.0
//
// Attached dictionaries are in the experimental section of libzstd's headers,
// hence the static library: by default libzstd copies the index of a dictionary
// for each record.
#define ZSTD_STATIC_LINKING_ONLY
#include "client/cli/formats/zstd_records.h"

#include <zdict.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#include "codecs/base/check.h"
#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/reorder/content_chunker.h"

namespace quire {
namespace {

constexpr uint32_t kDictionaryFrameMagic = 0x184D2A5D;
// Fewer bytes of text are stored better without a dictionary.
constexpr size_t kSampleSizeBytesMin = size_t{64} << 10;
// Part of the text that a dictionary may be: it is stored, too.
constexpr size_t kSampleShare = 2;
constexpr size_t kEntropyTablesSizeBytesMax = size_t{16} << 10;
constexpr size_t kEntropySamplesSizeBytes = size_t{8} << 20;
constexpr int kLevel = 22;
// Affects only the statistics of a dictionary, and the time to collect them.
constexpr int kEntropyLevel = 3;
// Libzstd chooses parameters by the sizes of the text and of the dictionary.
constexpr uint64_t kUsualRecordSizeBytes = uint64_t{64} << 10;

size_t CheckZstd(size_t result) {
  QUIRE_CHECK(ZSTD_isError(result) == 0, ZSTD_getErrorName(result));
  return result;
}

struct FreeZstdWriter {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }

  void operator()(ZSTD_CDict* dictionary) const { ZSTD_freeCDict(dictionary); }
};

using ContextPtr = std::unique_ptr<ZSTD_CCtx, FreeZstdWriter>;

ContextPtr NewContext(int level) {
  ContextPtr context(ZSTD_createCCtx());
  QUIRE_CHECK(context != nullptr, "no memory for zstd");
  CheckZstd(
      ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level));
  CheckZstd(ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1));
  return context;
}

// Appends the frame of `text` to `frame`.
void AppendFrame(ZSTD_CCtx* context, ByteView text, std::string& frame) {
  const size_t offset = frame.size();
  frame.resize(offset + ZSTD_compressBound(text.size()));
  frame.resize(offset + CheckZstd(ZSTD_compress2(context, frame.data() + offset,
                                                 frame.size() - offset,
                                                 text.data(), text.size())));
}

// A part of a sample.
struct Chunk {
  absl::string_view text;
  uint64_t checksum = 0;
};

// Number of samples that have a chunk, and the last one of them.
struct ChunkUse {
  size_t sample_count = 0;
  size_t sample = SIZE_MAX;
  bool is_taken = false;
};

// Returns up to `size_bytes_max` of distinct chunks: those of several samples
// at the end, as distances to it are cheaper, and before them others.
std::string ChooseContent(std::span<const std::string> samples,
                          size_t size_bytes_max) {
  const ContentChunker chunker(kChunkSizeBytesMin);
  std::vector<Chunk> chunks;
  absl::flat_hash_map<uint64_t, ChunkUse> uses;
  for (size_t i = 0; i < samples.size(); ++i) {
    for (absl::string_view rest = samples[i]; !rest.empty();) {
      const absl::string_view text =
          rest.substr(0, chunker.Next(AsBytes(rest)));
      rest.remove_prefix(text.size());
      const uint64_t checksum = Checksum64(AsBytes(text));
      chunks.push_back({.text = text, .checksum = checksum});
      ChunkUse& use = uses[checksum];
      use.sample_count += std::exchange(use.sample, i) == i ? 0 : 1;
    }
  }
  size_t size_bytes = 0;
  const auto take = [&](size_t sample_count_min) {
    std::string taken;
    for (const Chunk& chunk : chunks) {
      ChunkUse& use = uses[chunk.checksum];
      if (!use.is_taken && use.sample_count >= sample_count_min &&
          chunk.text.size() <= size_bytes_max - size_bytes) {
        use.is_taken = true;
        size_bytes += chunk.text.size();
        taken.append(chunk.text.data(), chunk.text.size());
      }
    }
    return taken;
  };
  const std::string repeated = take(2);
  return absl::StrCat(take(1), repeated);
}

}  // namespace

std::string MakeRecordDictionary(std::span<const std::string> samples) {
  size_t samples_size = 0;
  for (const std::string& sample : samples) {
    samples_size += sample.size();
  }
  if (samples_size < kSampleSizeBytesMin) {
    return "";
  }
  const std::string content = ChooseContent(
      samples,
      std::min(kRecordDictionarySizeBytesMax - kEntropyTablesSizeBytesMax,
               samples_size / kSampleShare));
  std::string texts;
  std::vector<size_t> sizes;
  for (const std::string& sample : samples) {
    sizes.push_back(
        std::min(sample.size(), kEntropySamplesSizeBytes - texts.size()));
    texts.append(sample, 0, sizes.back());
  }
  std::string dictionary(content.size() + kEntropyTablesSizeBytesMax, '\0');
  const size_t size = ZDICT_finalizeDictionary(
      dictionary.data(), dictionary.size(), content.data(), content.size(),
      texts.data(), sizes.data(), static_cast<unsigned>(sizes.size()),
      ZDICT_params_t{.compressionLevel = kEntropyLevel,
                     .notificationLevel = 0,
                     .dictID = 0});
  // Samples that zstd does not compress have no statistics.
  if (ZDICT_isError(size) != 0) {
    return "";
  }
  dictionary.resize(size);
  return dictionary;
}

class ZstdRecords::Library {
 public:
  explicit Library(ByteView dictionary) : context_(NewContext(kLevel)) {
    if (dictionary.empty()) {
      return;
    }
    dictionary_.reset(ZSTD_createCDict_advanced(
        dictionary.data(), dictionary.size(), ZSTD_dlm_byRef, ZSTD_dct_fullDict,
        ZSTD_getCParams(kLevel, kUsualRecordSizeBytes, dictionary.size()),
        ZSTD_customMem{}));
    QUIRE_CHECK(dictionary_ != nullptr, "zstd rejects its own dictionary");
    CheckZstd(ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_forceAttachDict,
                                     ZSTD_dictForceAttach));
    CheckZstd(ZSTD_CCtx_refCDict(context_.get(), dictionary_.get()));
  }

  void Append(ByteView text, std::string& frame) {
    AppendFrame(context_.get(), text, frame);
  }

 private:
  const ContextPtr context_;
  // Null without a dictionary, which it borrows.
  std::unique_ptr<ZSTD_CDict, FreeZstdWriter> dictionary_;
};

ZstdRecords::ZstdRecords(std::string dictionary)
    : dictionary_(std::move(dictionary)),
      library_(std::make_unique<Library>(AsBytes(dictionary_))) {}

ZstdRecords::~ZstdRecords() = default;

absl::Status ZstdRecords::Write(ByteView bytes, Sink sink) {
  while (!bytes.empty()) {
    const ByteView part = bytes.first(
        std::min(bytes.size(), kZstdFrameTextSizeBytesMax - text_.size()));
    bytes = bytes.subspan(part.size());
    text_.append(AsText(part).data(), part.size());
    if (text_.size() == kZstdFrameTextSizeBytesMax) {
      QUIRE_RETURN_IF_ERROR(WriteFrame(sink));
    }
  }
  return absl::OkStatus();
}

absl::Status ZstdRecords::EndMember(Sink sink) {
  return text_.empty() ? absl::OkStatus() : WriteFrame(sink);
}

absl::Status ZstdRecords::WriteFrame(Sink sink) {
  if (!std::exchange(has_begun_, true) && !dictionary_.empty()) {
    QUIRE_RETURN_IF_ERROR(WriteDictionary(sink));
  }
  frame_.clear();
  library_->Append(AsBytes(text_), frame_);
  text_.clear();
  return sink(AsBytes(frame_));
}

absl::Status ZstdRecords::WriteDictionary(Sink sink) {
  std::string frame;
  AppendFrame(NewContext(kLevel).get(), AsBytes(dictionary_), frame);
  std::array<uint8_t, 2 * sizeof(uint32_t)> header;
  StoreLittleEndian(kDictionaryFrameMagic, header.data());
  StoreLittleEndian(static_cast<uint32_t>(frame.size()),
                    header.data() + sizeof(uint32_t));
  QUIRE_RETURN_IF_ERROR(sink(header));
  return sink(AsBytes(frame));
}

}  // namespace quire
