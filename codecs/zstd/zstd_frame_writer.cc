// SPDX-License-Identifier: Apache-2.0
#include "codecs/zstd/zstd_frame_writer.h"

#include <zstd.h>

#include <utility>

#include "absl/strings/str_cat.h"

#include "codecs/base/check.h"
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

ZstdFrameWriter::ZstdFrameWriter(int level) : level_(level) {}

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
  // It fails only without memory.
  QUIRE_CHECK(context != nullptr);
  for (const auto& [parameter, value] :
       {std::pair{ZSTD_c_compressionLevel, level_},
        std::pair{ZSTD_c_contentSizeFlag, 0}, std::pair{ZSTD_c_checksumFlag, 0},
        std::pair{ZSTD_c_dictIDFlag, 0}}) {
    QUIRE_RETURN_IF_ERROR(
        Accepted(ZSTD_CCtx_setParameter(context.get(), parameter, value)));
  }
  context_ = std::move(context);
  return absl::OkStatus();
}

}  // namespace quire
