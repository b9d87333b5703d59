// SPDX-License-Identifier: Apache-2.0
//
// The archives of FakeServer in the wire encodings; internal to it. The codecs
// are the library's own, which have tests of their own; how answers are cut out
// of coded text is written anew, and as unlike the real server's way as the API
// allows, so that clients are shown all that may come.
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

// Thread-safe, once made.
class FakeEncodings {
 public:
  // Encodes `text` in all forms that `archive` is to have, and says so in
  // `description`.
  FakeEncodings(const FakeArchive& archive, absl::string_view text,
                v1::ArchiveDescription& description);

  // Empty if it has none.
  const std::string& symbol_table() const { return symbol_table_; }

  // Whether answers can have that encoding.
  bool Has(v1::WireEncoding encoding) const;

  // `data` of an answer with that range of the text, and what to do with it.
  // REQUIRES: Has(encoding).
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
  // Codes of pieces of the text, of kFakeStringSizeBytes each but the last.
  std::vector<std::string> strings_;
  // Blocks of kFakeBlockSizeBytes each but the last; those that have the text
  // itself are marked.
  std::vector<std::string> blocks_;
  std::vector<bool> is_uncoded_;
};

// Strings are long, so that cuts are.
inline constexpr size_t kFakeStringSizeBytes = 500;
inline constexpr size_t kFakeBlockSizeBytes = 700;

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_TESTING_FAKE_ENCODINGS_H_
