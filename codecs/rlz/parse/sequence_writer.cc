// SPDX-License-Identifier: Apache-2.0
//
// Uses ZSTD_compressSequences(), which is in the experimental section of zstd's
// header, hence the static library.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/rlz/parse/sequence_writer.h"

#include <zstd.h>

#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
#include "codecs/base/status_macros.h"

namespace quire {

struct SequenceWriter::Steps {
  std::vector<ZSTD_Sequence> list;
};

SequenceWriter::SequenceWriter(int window_log)
    : window_log_(window_log), steps_(std::make_unique<Steps>()) {}

SequenceWriter::~SequenceWriter() = default;

void SequenceWriter::Free::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

size_t SequenceWriter::StoredSizeMax(size_t raw_size) {
  return ZSTD_compressBound(raw_size);
}

// The strategy sets the effort of the entropy coders, as at level 19. No
// matches are searched, and the tables for that are minimal. The window covers
// only the block: distances beyond it reach the decoder's dictionary, which
// counts as a whole while the block is within the window (RFC 8878, section 5).
absl::Status SequenceWriter::MakeContext() {
  context_.reset(ZSTD_createCCtx());
  // It fails only without memory.
  QUIRE_CHECK(context_ != nullptr);
  for (const auto& [parameter, value] :
       {std::pair{ZSTD_c_compressionLevel, 19},
        std::pair{ZSTD_c_strategy, static_cast<int>(ZSTD_btultra2)},
        std::pair{ZSTD_c_hashLog, ZSTD_HASHLOG_MIN},
        std::pair{ZSTD_c_chainLog, ZSTD_CHAINLOG_MIN},
        std::pair{ZSTD_c_minMatch, ZSTD_MINMATCH_MIN},
        std::pair{ZSTD_c_contentSizeFlag, 1}, std::pair{ZSTD_c_checksumFlag, 0},
        std::pair{ZSTD_c_dictIDFlag, 0},
        std::pair{ZSTD_c_literalCompressionMode,
                  static_cast<int>(ZSTD_ps_enable)},
        std::pair{ZSTD_c_blockDelimiters,
                  static_cast<int>(ZSTD_sf_explicitBlockDelimiters)},
        std::pair{ZSTD_c_validateSequences, 0},
        std::pair{ZSTD_c_windowLog, window_log_}}) {
    const size_t result =
        ZSTD_CCtx_setParameter(context_.get(), parameter, value);
    if (ZSTD_isError(result)) {
      return absl::InternalError(absl::StrCat("zstd refused a parameter: ",
                                              ZSTD_getErrorName(result)));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> SequenceWriter::Write(ByteView raw,
                                             const SequenceList& sequences,
                                             MutableByteView stored) {
  if (context_ == nullptr) {
    QUIRE_RETURN_IF_ERROR(MakeContext());
  }
  steps_->list.clear();
  for (const Sequence& sequence : sequences) {
    steps_->list.push_back({.offset = sequence.distance,
                            .litLength = sequence.literal_run,
                            .matchLength = sequence.match_length,
                            .rep = 0});
  }
  const size_t size = ZSTD_compressSequences(
      context_.get(), stored.data(), stored.size(), steps_->list.data(),
      steps_->list.size(), raw.data(), raw.size());
  if (ZSTD_isError(size)) {
    return absl::InternalError(
        absl::StrCat("zstd refused a parse of ", raw.size(),
                     " bytes: ", ZSTD_getErrorName(size)));
  }
  return size;
}

}  // namespace quire
