// SPDX-License-Identifier: Apache-2.0
//
// Compresses a file in members, each of which can be decoded alone.
#ifndef QUIRE_CLIENT_CLI_MEMBER_COMPRESSOR_H_
#define QUIRE_CLIENT_CLI_MEMBER_COMPRESSOR_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

// Thread-compatible.
class MemberCompressor {
 public:
  // Takes compressed bytes. An error of the sink is the call's result.
  using Sink = absl::FunctionRef<absl::Status(ByteView)>;

  virtual ~MemberCompressor() = default;

  // Adds bytes to the current member, which begins with the first of them.
  virtual absl::Status Write(ByteView bytes, Sink sink) = 0;

  // Ends the current member; does nothing if it has no bytes.
  virtual absl::Status EndMember(Sink sink) = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_MEMBER_COMPRESSOR_H_
