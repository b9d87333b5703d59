// SPDX-License-Identifier: GPL-3.0-or-later
//
// The codec that a build encodes with.
#ifndef QUIRE_SERVER_INGEST_ENCODER_CODEC_H_
#define QUIRE_SERVER_INGEST_ENCODER_CODEC_H_

#include <memory>

#include "absl/status/statusor.h"

#include "codecs/block_codec.h"
#include "server/ingest/build_pipeline.h"

namespace quire {

// That of `options.archive.codec`, with what MakeBlockCodec() takes by default
// as `options` have it: how much one that inflates inflates, by what speeds
// `auto` chooses.
// Errors: as MakeBlockCodec().
absl::StatusOr<std::unique_ptr<BlockCodec>> MakeEncoder(
    const BuildOptions& options,
    const std::shared_ptr<const CodecContext>& context);

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_ENCODER_CODEC_H_
