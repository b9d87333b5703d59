// SPDX-License-Identifier: Apache-2.0
//
// The records that the revisits of an export refer to.
#ifndef QUIRE_CLIENT_CLI_REVISIT_TARGETS_H_
#define QUIRE_CLIENT_CLI_REVISIT_TARGETS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

#include "client/cli/cli_run.h"
#include "client/quire/client.h"
#include "client/quire/payload/record_header.h"
#include "client/quire/read_target.h"
#include "codecs/base/bytes.h"

namespace quire {

// Collects the targets of revisits, and the documents that an export has. Holds
// two bits per document of the archive, and up to 10,000 revisits.
// Thread-compatible.
class RevisitTargets {
 public:
  // `run`, whose contents must be pinned, must outlive this.
  RevisitTargets(CliRun& run, uint64_t document_count)
      : run_(run), is_exported_(document_count), is_target_(document_count) {}

  // Notes an exported document; of a revisit `record` is all of it, or nothing.
  // Errors: as reads.
  absl::Status Add(const v1::Document& document, ByteView record);

  // Looks for the targets of all revisits so far. Blocks.
  // Errors: as reads.
  absl::Status Find();

  // Targets that are not exported, in ascending order. REQUIRES: Find().
  std::vector<uint64_t> Missing() const;

  // Revisits whose target the archive does not hold. REQUIRES: Find().
  uint64_t unresolved_count() const { return unresolved_count_; }

 private:
  struct Revisit {
    v1::Document document;
    // The newest record that may be the target.
    DocumentKey candidate;
    WarcFields warc;
  };

  absl::Status TakeCandidate(const Revisit& revisit,
                             const absl::StatusOr<ReadResult>& candidate);
  void TakeTarget(const std::optional<v1::Document>& target);

  CliRun& run_;
  std::vector<Revisit> revisits_;
  std::vector<bool> is_exported_;
  std::vector<bool> is_target_;
  uint64_t unresolved_count_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_CLI_REVISIT_TARGETS_H_
