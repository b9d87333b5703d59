// SPDX-License-Identifier: Apache-2.0
//
// Base class of the codecs in the subdirectories; their users see BlockCodec.
#ifndef QUIRE_CODECS_CODEC_BASE_H_
#define QUIRE_CODECS_CODEC_BASE_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/block_codec.h"

namespace quire {

// Holds a codec's entry in the registry and refuses to encode where the codec
// was made for decoding only. Codecs implement EncodeBlock() in place of
// Encode(), and may rely on its requirements.
class CodecBase : public BlockCodec {
 public:
  const CodecInfo& info() const final { return info_; }

  absl::StatusOr<size_t> Encode(ByteView raw, MutableByteView stored,
                                Scratch& scratch) const final;

 protected:
  // `info` must be an entry of the registry, which lives for ever.
  CodecBase(const CodecInfo& info, CodecUse use) : info_(info), use_(use) {}

  virtual absl::StatusOr<size_t> EncodeBlock(ByteView raw,
                                             MutableByteView stored,
                                             Scratch& scratch) const = 0;

  // The DataLoss of a block whose stored form is wrong; `what` says how.
  absl::Status Damaged(ByteView stored, absl::string_view what) const;

  // The same, for a decoder that gave `found` bytes of text or more.
  absl::Status WrongSize(ByteView stored, size_t found, size_t expected) const;

 private:
  const CodecInfo& info_;
  const CodecUse use_;
};

}  // namespace quire

#endif  // QUIRE_CODECS_CODEC_BASE_H_
