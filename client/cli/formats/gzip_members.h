// SPDX-License-Identifier: Apache-2.0
//
// Compresses bytes with gzip, into one or more members.
#ifndef QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_
#define QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_

#include <zlib.h>

#include <vector>

#include "absl/status/status.h"

#include "client/cli/formats/member_compressor.h"
#include "codecs/base/bytes.h"

namespace quire {

// Thread-compatible.
class GzipMembers final : public MemberCompressor {
 public:
  GzipMembers();
  ~GzipMembers() override;
  GzipMembers(const GzipMembers&) = delete;
  GzipMembers& operator=(const GzipMembers&) = delete;

  absl::Status Write(ByteView bytes, Sink sink) override;
  absl::Status EndMember(Sink sink) override;

 private:
  absl::Status Deflate(int flush, Sink sink);

  z_stream stream_ = {};
  bool in_member_ = false;
  std::vector<uint8_t> buffer_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_GZIP_MEMBERS_H_
