// SPDX-License-Identifier: Apache-2.0
//
// A log of requests, to be made again: a text of lines
//
//   OFFSET<tab>LENGTH        a range
//   id<tab>ID                a document; ID is all to the end of the line
//   ordinal<tab>NUMBER       a document by its place, from 0
//
// and before each line of a log, or before none, the time at which the request
// came, in seconds from the log's start, never less than on the line before:
//
//   +SECONDS<tab>OFFSET<tab>LENGTH
//
// Numbers are decimal; seconds may have a fraction of up to nine digits. Empty
// lines and lines that start with # say nothing.
#ifndef QUIRE_LOADTEST_REQUESTS_REQUEST_LOG_H_
#define QUIRE_LOADTEST_REQUESTS_REQUEST_LOG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

struct LoggedRequest {
  enum class Kind : uint8_t { kRange, kId, kOrdinal };
  Kind kind = Kind::kRange;
  // Of a range.
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  uint64_t ordinal = 0;
  // Borrowed.
  absl::string_view id = {};
};

// Twenty-five bytes a request, and the ids. Immutable and thread-safe once
// read.
class RequestLog {
 public:
  // Blocks while it reads.
  // Errors: NotFound         the file cannot be read.
  //         InvalidArgument  a line is not as above, or there is none; names
  //                          the line by its number, and the reason.
  static absl::StatusOr<RequestLog> Open(const std::string& path);

  // The same for a log in memory.
  static absl::StatusOr<RequestLog> Parse(absl::string_view text);

  size_t size() const { return kinds_.size(); }

  // REQUIRES: index < size(). Borrows from the log.
  LoggedRequest operator[](size_t index) const;

  bool has_times() const { return !times_ns_.empty(); }

  // From the log's start. REQUIRES: has_times(), index < size().
  uint64_t time_ns(size_t index) const { return times_ns_[index]; }

 private:
  // The reason alone; the caller knows where.
  absl::Status AddLine(absl::string_view line);
  absl::Status AddTime(absl::string_view seconds);
  absl::Status CheckNotEmpty() const;

  std::vector<LoggedRequest::Kind> kinds_;
  // Offset and size, or ordinal, or where in ids_ an id begins and its size.
  std::vector<uint64_t> first_;
  std::vector<uint64_t> second_;
  std::vector<uint64_t> times_ns_;
  std::string ids_;
};

// One line of a log, without a line end. `time_ns` null: without time.
// Errors: InvalidArgument  the id has a line end; such a document can only be
//                          logged by its ordinal.
absl::StatusOr<std::string> FormatLoggedRequest(const LoggedRequest& request,
                                                const uint64_t* time_ns);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_REQUEST_LOG_H_
