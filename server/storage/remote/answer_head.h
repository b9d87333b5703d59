// SPDX-License-Identifier: GPL-3.0-or-later
//
// Status and headers of an HTTP answer, as far as reading objects needs them.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_ANSWER_HEAD_H_
#define QUIRE_SERVER_STORAGE_REMOTE_ANSWER_HEAD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace quire {

// A range of an object, and the object's size, in bytes.
struct ContentRange {
  uint64_t first = 0;
  // Inclusive.
  uint64_t last = 0;
  uint64_t object_size = 0;

  bool operator==(const ContentRange&) const = default;
};

// Parses "bytes 0-99/1000" (RFC 9110, 14.4). Unset for anything else, also for
// a size "*", and unless first <= last < size.
std::optional<ContentRange> ParseContentRange(absl::string_view text);

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" (RFC 9110, 5.6.7). Unset for anything
// else.
std::optional<absl::Time> ParseHttpTime(absl::string_view text);

struct AnswerHead {
  // 0 before the status line.
  int status = 0;
  // Untrusted text of the headers; empty without one.
  std::string content_range;
  std::string etag;
  std::string content_encoding;
  std::string last_modified = {};
  std::optional<uint64_t> content_length;

  // Takes one line of the head, untrusted, with or without its end. A status
  // line begins a new answer: an informational one may come before it.
  void AddLine(absl::string_view line);
};

// The answer that a request asks for.
struct WantedAnswer {
  // Unset: the whole object.
  std::optional<ContentRange> range = std::nullopt;
  // Empty: any.
  std::string etag = {};
  // Limit for a whole object.
  uint64_t size_bytes_max = 0;
};

// Checks the head of an answer with status 200 or 206.
// Errors: Internal  it is not exactly what was asked for; says what was found.
//         Aborted   the ETag is another one: the object has changed.
//         ResourceExhausted  a whole object is larger than wanted.
absl::Status CheckAnswerHead(const AnswerHead& head,
                             const WantedAnswer& wanted);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_ANSWER_HEAD_H_
