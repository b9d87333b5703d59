// SPDX-License-Identifier: Apache-2.0
//
// The archives of FakeServer in the wire encodings; internal to it. Uses the
// library's codecs, which have their own tests. The code that cuts answers out
// of coded text is independent, and differs from the real server's as much as
// the API allows, so that clients meet every valid answer.
#ifndef QUIRE_CLIENT_QUIRE_TESTING_FAKE_ENCODINGS_H_
#define QUIRE_CLIENT_QUIRE_TESTING_FAKE_ENCODINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/quire/testing/fake_server.h"

namespace quire {

// Thread-safe after construction.
class FakeEncodings {
 public:
  // Encodes `text` in all encodings of `archive`, and adds them to
  // `description`.
  FakeEncodings(const FakeArchive& archive, absl::string_view text,
                v1::ArchiveDescription& description);

  // Empty if it has none.
  const std::string& symbol_table() const { return symbol_table_; }

  // True if answers are available in this encoding.
  bool Has(v1::WireEncoding encoding) const;

  // Returns the `data` of an answer with that range of the text, and its
  // details. REQUIRES: Has(encoding).
  std::string Encode(v1::WireEncoding encoding, const v1::ByteRange& range,
                     v1::EncodingDetails& details) const;

 private:
  void EncodeFsst(absl::string_view text);
  void EncodeBlocks(const FakeArchive& archive, absl::string_view text);

  std::string codec_;
  std::string symbol_table_;
  uint64_t symbol_table_hash_ = 0;
  uint64_t dictionary_hash_ = 0;
  size_t text_size_bytes_ = 0;
  bool has_dictionary_ = false;
  // Codes of pieces of the text, each of kFakeStringSizeBytes except the last.
  std::vector<std::string> strings_;
  // Blocks, each of kFakeBlockSizeBytes except the last; blocks with the text
  // itself are marked.
  std::vector<std::string> blocks_;
  std::vector<bool> is_uncoded_;
};

// Long strings give long cuts.
inline constexpr size_t kFakeStringSizeBytes = 500;
inline constexpr size_t kFakeBlockSizeBytes = 700;

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_ENCODINGS_H_
