// SPDX-License-Identifier: Apache-2.0
//
// Records of an ARC as those of a WARC, as `warcio recompress` makes them.
#ifndef QUIRE_CLIENT_CLI_ARC_CONVERSION_H_
#define QUIRE_CLIENT_CLI_ARC_CONVERSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/formats/record_digest.h"
#include "codecs/base/bytes.h"

namespace quire {

// A record of type response; of type warcinfo for the first record of the ARC,
// of which the two lines about the format of the ARC are left out. The block is
// a part of the document, byte for byte: as long as the header line says, or
// all of the rest. Thread-compatible.
class ArcConversion {
 public:
  // Returns nullopt if the document is not an ARC record. `head` is all of the
  // document, or its beginning up to a size with all headers. With `takes_rest`
  // the block is all that follows the header line, whatever its length says.
  static std::optional<ArcConversion> Start(const v1::Document& document,
                                            absl::string_view head,
                                            bool takes_rest = false);
  ~ArcConversion();
  ArcConversion(ArcConversion&&) noexcept;

  // Takes the document's bytes, from the first one on, for the digests.
  void Add(ByteView bytes);

  // True if more than line ends follow the block: its length is too small.
  // REQUIRES: all bytes were added.
  bool has_text_after_block() const { return has_text_after_block_; }

  // Returns the header of the record. `now_ms` is the date if the ARC has none.
  // REQUIRES: all bytes were added.
  std::string Header(absl::string_view record_id, int64_t now_ms);

  // Offset of the block in the document, and its size.
  uint64_t block_offset() const { return block_offset_; }

  uint64_t block_size_bytes() const { return block_size_bytes_; }

 private:
  ArcConversion();

  // Fields that depend on the header line alone.
  bool is_description_ = false;
  std::string url_;
  std::string address_;
  // Empty: the document has no time.
  std::string date_;
  std::string type_;
  uint64_t block_offset_ = 0;
  uint64_t block_size_bytes_ = 0;
  // Offset of what follows the HTTP header.
  uint64_t payload_offset_ = 0;
  // Bytes added so far.
  uint64_t position_ = 0;
  bool has_text_after_block_ = false;
  std::unique_ptr<RecordDigest> block_digest_;
  std::unique_ptr<RecordDigest> payload_digest_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_ARC_CONVERSION_H_
