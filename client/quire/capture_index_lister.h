// SPDX-License-Identifier: Apache-2.0
//
// Captures of a crawl by URL, or all, from the index of captures of an archive.
#ifndef QUIRE_CLIENT_QUIRE_CAPTURE_INDEX_LISTER_H_
#define QUIRE_CLIENT_QUIRE_CAPTURE_INDEX_LISTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "proto/quire/v1/archive.pb.h"

namespace quire {

class Connection;

// As v1::ListCapturesRequest, which documents the fields.
struct CaptureListOptions {
  // At most one of the two; none: all captures.
  std::optional<std::string> url = {};
  std::optional<std::string> key = {};
  // Only with one of them.
  v1::CaptureMatch match = v1::CAPTURE_MATCH_EXACT;
  std::optional<int64_t> from_ms = {};
  std::optional<int64_t> until_ms = {};
  std::optional<int64_t> closest_ms = {};
  bool newest_first = false;
  // A filter of codecs/filter/filter.h, which the server evaluates.
  std::optional<std::string> filter = {};
  // See ReadOptions. The pages of one listing are always of the same contents.
  std::optional<std::string> archive_uuid = {};
  // Captures of a page, 1 to Limits.page_size_max, which also bounds larger
  // values. Unset: the server chooses.
  std::optional<uint32_t> page_size = {};
  // From CapturePage: continues the same listing. Empty: from the start.
  std::string page_token = {};
};

struct CapturePage {
  // May be empty, also on other pages than the last.
  std::vector<v1::Capture> captures;
  // For CaptureListOptions; empty on the last page.
  std::string next_page_token;
};

// Iterates over captures, page by page. Movable; thread-compatible. Obtained
// from Client::ListCaptures().
class CaptureIndexLister {
 public:
  CaptureIndexLister(std::shared_ptr<Connection> connection,
                     v1::ListCapturesRequest first);

  // Returns the next capture, or nothing at the end. Blocks to fetch a page.
  // After an error every further call gives the same error.
  // Errors: NotFound            no such archive.
  //         FailedPrecondition  it has no index of captures (IsNotIndexed() of
  //                             client_status.h), or other contents than
  //                             CaptureListOptions::archive_uuid or the token;
  //                             or the server does not know this call.
  //         InvalidArgument     of the options. And as all calls.
  absl::StatusOr<std::optional<v1::Capture>> Next();

  // Returns the next page, for programs that hand out its token. REQUIRES: only
  // this is called. Otherwise as Next().
  absl::StatusOr<CapturePage> NextPage();

  // Uuid of the contents that were read. REQUIRES for these: a call succeeded.
  const std::string& archive_uuid() const { return page_.archive_uuid(); }

  // Documents that have no index, since an earlier version wrote them: their
  // captures are missing.
  uint64_t unindexed_document_count() const {
    return page_.unindexed_document_count();
  }

 private:
  absl::Status FetchPage();
  absl::Status CheckCapture(const v1::Capture& capture) const;

  std::shared_ptr<Connection> connection_;
  v1::ListCapturesRequest request_;
  v1::ListCapturesResponse page_;
  int next_ = 0;
  bool is_last_page_ = false;
  absl::Status status_;
};

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CAPTURE_INDEX_LISTER_H_
