// SPDX-License-Identifier: Apache-2.0
//
// Revisits (ISO 28500:2017, section 6.7.2, identical payload) in place of the
// responses of an export whose payload an earlier response has.
#ifndef QUIRE_CLIENT_CLI_DUPLICATE_REVISITS_H_
#define QUIRE_CLIENT_CLI_DUPLICATE_REVISITS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/cli/formats/export_format.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/header_fields.h"

namespace quire {

// A WARC record of an export.
struct ExportedRecord {
  // Up to the empty line, which it includes.
  absl::string_view header;
  // The document's beginning, with all of the HTTP header if the record has
  // one and the document at most kHeldTextSizeBytesMax.
  absl::string_view head;
  // Offset of the block in the document, and the size of the document.
  uint64_t block_offset = 0;
  uint64_t document_size_bytes = 0;
};

// Compares bodies by SHA-256, together with their codings and the digests that
// the records state. A response stays if a revisit would not be smaller, if the
// crawler truncated or segmented it, or without a WARC-Payload-Digest, by which
// readers check what a revisit refers to. Revisits of the archive whose target
// became a revisit get the target of that: no revisit refers to another one.
// A response that an earlier revisit refers to stays.
// Holds up to 256 MiB for targets; then later bodies are not compared any more.
// Thread-compatible.
class DuplicateRevisits {
 public:
  // Returns the frame of the revisit that the next record of the export
  // becomes, or nothing if it stays. `whole` reads its document.
  // A damaged record stays. Errors: others of `whole`.
  absl::StatusOr<std::optional<DocumentFrame>> Take(
      const ExportedRecord& record, const WholeDocument& whole);

  // Messages about the file, each for a separate line.
  std::vector<std::string> Notes() const;

 private:
  using Key = std::array<uint8_t, 16>;

  // A response that revisits refer to.
  struct Target {
    std::string uri;
    std::string date;
    std::string record_id;
    // Another response has its URI and date: a reference may mean either.
    bool is_ambiguous = false;
  };

  // The header of a record, parsed.
  struct Header {
    std::string version;
    std::vector<std::pair<std::string, std::string>> fields;
    WarcFields warc;

    // Empty if absent.
    absl::string_view Value(absl::string_view name) const;
  };

  // Part of a document.
  struct Span {
    uint64_t offset = 0;
    uint64_t size_bytes = 0;
  };

  static std::optional<Header> Parse(absl::string_view text);
  static std::vector<Key> NamesOf(absl::string_view record_id,
                                  absl::string_view uri, absl::string_view date,
                                  absl::string_view digest);
  static std::string WithReference(const Header& header, const Target& target,
                                   absl::string_view http);

  absl::StatusOr<std::optional<DocumentFrame>> TakeResponse(
      const ExportedRecord& record, const Header& header,
      const WholeDocument& whole);
  std::optional<DocumentFrame> TakeRevisit(const ExportedRecord& record,
                                           const Header& header);
  // Reserves memory; false, from then on, if it is exhausted.
  bool Hold(uint64_t size_bytes);

  std::deque<Target> targets_;
  // By body.
  absl::flat_hash_map<Key, const Target*> bodies_;
  // By URI and date.
  absl::flat_hash_map<Key, Target*> dated_;
  // By each name of a response that became a revisit.
  absl::flat_hash_map<Key, const Target*> replaced_;
  // Names that written revisits refer to.
  absl::flat_hash_set<Key> referenced_;
  uint64_t held_size_bytes_ = 0;
  bool is_full_ = false;
  uint64_t revisit_count_ = 0;
  uint64_t saved_size_bytes_ = 0;
  uint64_t redirected_count_ = 0;
  uint64_t undigested_count_ = 0;
  uint64_t uncompared_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_DUPLICATE_REVISITS_H_
