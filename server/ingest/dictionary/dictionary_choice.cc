// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/dictionary/dictionary_choice.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "codecs/rlz/coverage_dictionary.h"
#include "codecs/rlz/uniform_dictionary.h"
#include "server/ingest/dictionary/dictionary_filler.h"

namespace quire {
namespace {

absl::StatusOr<std::unique_ptr<DictionaryBuilder>> MakeDictionaryBuilder(
    const DictionaryChoice& choice, uint64_t text_size_bytes) {
  switch (choice.method) {
    case DictionaryMethod::kCoverage:
      return MakeCoverageDictionaryBuilder(
          {.dictionary_size_bytes = choice.dictionary_size_bytes,
           .block_size_bytes = choice.block_size_bytes,
           .worth_bits_min = choice.worth_bits_min,
           .workers = choice.workers},
          text_size_bytes);
    case DictionaryMethod::kUniform:
      return MakeUniformDictionaryBuilder(
          {.dictionary_size_bytes = choice.dictionary_size_bytes},
          text_size_bytes);
  }
  return absl::InvalidArgumentError("unknown dictionary method");
}

}  // namespace

CodecSpec TrialCodec(CodecSpec codec) {
  if (codec.id == CodecId::kRlz) {
    codec.level = FindCodec(codec.id)->level_min;
  }
  return codec;
}

absl::StatusOr<std::string> ChooseDictionary(const DictionaryChoice& choice,
                                             uint64_t text_size_bytes,
                                             const TextPass& pass) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<DictionaryBuilder> builder,
                         MakeDictionaryBuilder(choice, text_size_bytes));
  for (int i = 0; i < builder->pass_count(); ++i) {
    QUIRE_RETURN_IF_ERROR(
        pass([&](ByteView piece) { return builder->Add(piece); }));
    const absl::Status status = builder->FinishPass();
    if (!status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("the inputs became smaller while the archive was being "
                       "built from them; build it again (",
                       status.message(), ")"));
    }
  }
  return builder->Take();
}

absl::StatusOr<std::string> FillDictionary(std::string dictionary,
                                           const DictionaryChoice& choice,
                                           uint64_t text_size_bytes,
                                           const TextPass& pass) {
  const uint64_t size_bytes =
      std::min(choice.dictionary_size_bytes, text_size_bytes);
  // A small part is not worth a pass.
  if (size_bytes - dictionary.size() <= size_bytes / 8 ||
      size_bytes == text_size_bytes) {
    return dictionary;
  }
  QUIRE_ASSIGN_OR_RETURN(
      const std::unique_ptr<DictionaryFiller> filler,
      DictionaryFiller::Create(size_bytes - dictionary.size(), text_size_bytes,
                               choice.block_size_bytes));
  QUIRE_RETURN_IF_ERROR(
      pass([&](ByteView piece) { return filler->Add(piece); }));
  QUIRE_RETURN_IF_ERROR(filler->Finish());
  // In the unit of worth_bits_min, 32 bytes.
  const double worth_min = choice.worth_bits_min / (8.0 * 32);
  return filler->Fill(std::move(dictionary), TrialCodec(choice.codec),
                      worth_min, choice.workers);
}

}  // namespace quire
