// SPDX-License-Identifier: Apache-2.0
//
// How a dictionary is attached is set in the experimental section of libzstd's
// header: hence the static library.
#define ZSTD_STATIC_LINKING_ONLY
#include "codecs/zstd/zstd_frame_writer.h"

#include <zstd.h>

#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"

namespace quire {
namespace {

absl::Status Accepted(size_t result) {
  return ZSTD_isError(result)
             ? absl::InternalError(absl::StrCat("zstd refused a parameter: ",
                                                ZSTD_getErrorName(result)))
             : absl::OkStatus();
}

}  // namespace

void ZstdFrameWriter::FreeContext::operator()(ZSTD_CCtx_s* context) const {
  ZSTD_freeCCtx(context);
}

ZstdFrameWriter::ZstdFrameWriter(int level, const ZSTD_CDict_s* dictionary)
    : level_(level), dictionary_(dictionary) {}

ZstdFrameWriter::~ZstdFrameWriter() = default;

absl::StatusOr<size_t> ZstdFrameWriter::Write(ByteView raw,
                                              MutableByteView stored) {
  if (context_ == nullptr) {
    QUIRE_RETURN_IF_ERROR(MakeContext());
  }
  const size_t size = ZSTD_compress2(context_.get(), stored.data(),
                                     stored.size(), raw.data(), raw.size());
  if (ZSTD_isError(size)) {
    return absl::InternalError(
        absl::StrCat("zstd refused a block of ", raw.size(),
                     " bytes: ", ZSTD_getErrorName(size)));
  }
  return size;
}

absl::Status ZstdFrameWriter::MakeContext() {
  std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) {
    return absl::ResourceExhaustedError("not enough memory for zstd's context");
  }
  for (const auto& [parameter, value] :
       {std::pair{ZSTD_c_compressionLevel, level_},
        std::pair{ZSTD_c_contentSizeFlag, 0}, std::pair{ZSTD_c_checksumFlag, 0},
        std::pair{ZSTD_c_dictIDFlag, 0},
        // Otherwise the tables are copied for a block that is not small: of a
        // large dictionary, that takes longer than the block.
        std::pair{ZSTD_c_forceAttachDict, int{ZSTD_dictForceAttach}}}) {
    QUIRE_RETURN_IF_ERROR(
        Accepted(ZSTD_CCtx_setParameter(context.get(), parameter, value)));
  }
  QUIRE_RETURN_IF_ERROR(
      Accepted(ZSTD_CCtx_refCDict(context.get(), dictionary_)));
  context_ = std::move(context);
  return absl::OkStatus();
}

}  // namespace quire
