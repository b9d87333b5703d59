// SPDX-License-Identifier: Apache-2.0
#include "loadtest/codec_bench/chosen_dictionary.h"

#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/status_macros.h"
#include "codecs/rlz/coverage_dictionary.h"
#include "codecs/rlz/dictionary_builder.h"
#include "codecs/rlz/uniform_dictionary.h"
#include "loadtest/codec_bench/stored_text.h"

namespace quire {
namespace {

absl::StatusOr<std::unique_ptr<DictionaryBuilder>> MakeBuilder(
    absl::string_view method, uint64_t size_bytes, uint64_t text_size_bytes) {
  if (method == "uniform") {
    return MakeUniformDictionaryBuilder({.dictionary_size_bytes = size_bytes},
                                        text_size_bytes);
  }
  if (method == "coverage") {
    return MakeCoverageDictionaryBuilder({.dictionary_size_bytes = size_bytes},
                                         text_size_bytes);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no way to choose a dictionary: ", method,
                   "; there are coverage and uniform"));
}

}  // namespace

absl::StatusOr<ChosenDictionary> ChooseDictionary(const SourceText& text,
                                                  absl::string_view method,
                                                  uint64_t size_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DictionaryBuilder> builder,
                         MakeBuilder(method, size_bytes, text.size_bytes()));
  ChosenDictionary chosen;
  std::vector<uint8_t> buffer(kMiB);
  for (int pass = 0; pass < builder->pass_count(); ++pass) {
    for (uint64_t offset = 0; offset < text.size_bytes();
         offset += buffer.size()) {
      const MutableByteView piece =
          MutableByteView(buffer).first(static_cast<size_t>(
              std::min<uint64_t>(buffer.size(), text.size_bytes() - offset)));
      QUIRE_RETURN_IF_ERROR(text.Read(offset, piece));
      const double started = ThreadCpuSeconds();
      QUIRE_RETURN_IF_ERROR(builder->Add(piece));
      chosen.choose_cpu_seconds += ThreadCpuSeconds() - started;
    }
    const double started = ThreadCpuSeconds();
    QUIRE_RETURN_IF_ERROR(builder->FinishPass());
    chosen.choose_cpu_seconds += ThreadCpuSeconds() - started;
  }
  chosen.text = builder->Take();
  return chosen;
}

absl::StatusOr<size_t> XzSizeBytes(absl::string_view text) {
  std::vector<uint8_t> packed(lzma_stream_buffer_bound(text.size()));
  size_t size = 0;
  if (lzma_easy_buffer_encode(9 | LZMA_PRESET_EXTREME, LZMA_CHECK_NONE, nullptr,
                              AsBytes(text).data(), text.size(), packed.data(),
                              &size, packed.size()) != LZMA_OK) {
    return absl::InternalError("liblzma does not compress the dictionary");
  }
  return size;
}

absl::StatusOr<size_t> ZlibSizeBytes(absl::string_view text) {
  uLongf size = compressBound(text.size());
  std::vector<uint8_t> packed(size);
  if (compress2(packed.data(), &size, AsBytes(text).data(), text.size(),
                Z_BEST_COMPRESSION) != Z_OK) {
    return absl::InternalError("zlib does not compress the dictionary");
  }
  return size;
}

}  // namespace quire
