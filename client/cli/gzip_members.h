// SPDX-License-Identifier: Apache-2.0
//
// Bytes compressed by gzip, in one member or several.
#ifndef QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_
#define QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_

#include <zlib.h>

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

// Thread-compatible.
class GzipMembers {
 public:
  // Takes compressed bytes; what it returns, if not OK, is the call's result.
  using Sink = absl::FunctionRef<absl::Status(ByteView)>;

  GzipMembers();
  ~GzipMembers();
  GzipMembers(const GzipMembers&) = delete;
  GzipMembers& operator=(const GzipMembers&) = delete;

  // More bytes of the current member, which begins with the first.
  absl::Status Write(ByteView bytes, Sink sink);

  // Ends the current member; nothing if it has no bytes.
  absl::Status EndMember(Sink sink);

 private:
  absl::Status Deflate(int flush, Sink sink);

  z_stream stream_ = {};
  bool in_member_ = false;
  std::vector<uint8_t> buffer_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_
