// SPDX-License-Identifier: Apache-2.0
//
// Compresses bytes with gzip, into one or more members.
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
  // Takes compressed bytes. An error of the sink is the call's result.
  using Sink = absl::FunctionRef<absl::Status(ByteView)>;

  GzipMembers();
  ~GzipMembers();
  GzipMembers(const GzipMembers&) = delete;
  GzipMembers& operator=(const GzipMembers&) = delete;

  // Adds bytes to the current member, which begins with the first of them.
  absl::Status Write(ByteView bytes, Sink sink);

  // Ends the current member; does nothing if it has no bytes.
  absl::Status EndMember(Sink sink);

 private:
  absl::Status Deflate(int flush, Sink sink);

  z_stream stream_ = {};
  bool in_member_ = false;
  std::vector<uint8_t> buffer_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_
