// SPDX-License-Identifier: GPL-3.0-or-later
//
// The codec that a build encodes with.
#ifndef QUIRE_SERVER_INGEST_ENCODER_CODEC_H_
#define QUIRE_SERVER_INGEST_ENCODER_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/payload/payload_codec.h"
#include "server/ingest/build_pipeline.h"

namespace quire {

// Returns the codec of `options.archive.codec`. It inflates members as
// `options` says if `inflates`; auto chooses by the speeds of `options`.
// Errors: as MakeBlockCodec().
absl::StatusOr<std::unique_ptr<PayloadCodec>> MakeEncoder(
    const BuildOptions& options, bool inflates,
    const std::shared_ptr<const CodecContext>& context);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_ENCODER_CODEC_H_
