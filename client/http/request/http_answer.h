// SPDX-License-Identifier: Apache-2.0
//
// A request as the gateway sees it, and its answer.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_HTTP_ANSWER_H_
#define QUIRE_CLIENT_HTTP_REQUEST_HTTP_ANSWER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

#include "client/http/bodies/byte_store.h"
#include "client/http/bodies/memory_budget.h"
#include "client/http/request/request_conditions.h"
#include "client/http/request/request_target.h"

namespace quire {

enum class Method { kGet, kHead, kOptions, kOther };

// Headers that the server of the archive gets with each call of a request.
struct CallHeaders {
  // "Bearer TOKEN"; empty: none.
  std::string authorization;
  std::string trace_parent;
};

// A request whose target and headers are valid.
struct HttpRequest {
  Method method = Method::kGet;
  RequestTarget target;
  RequestConditions conditions;
  RangeHeader range;
  CallHeaders headers;
  // Path of the gateway in front of links: "" or "/archives".
  std::string base_path;
};

// The rest of a body: a part of a store.
struct BodyRest {
  std::shared_ptr<ByteStore> store = {};
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct Answer {
  int status = 200;
  std::vector<std::pair<const char*, std::string>> headers = {};
  // The whole body, or what precedes `rest`.
  std::string body = {};
  BodyRest rest = {};
  // For HEAD and 304, which send no body, and for `cut`: the size that GET
  // would send with 200. Unset: that of `body`, for 304 and `cut` unknown.
  std::optional<uint64_t> size_bytes = {};
  // Not OK: the body is the beginning of one whose rest is missing. Its size is
  // `size_bytes` or, if unset, not stated, and after it the connection is cut.
  absl::Status cut = {};
  // Closes the connection afterwards.
  bool closes = false;
};

// Returns an answer of plain text that must not be cached; `message` gets a
// line end.
Answer TextAnswer(int status, absl::string_view message);

// Size of the next piece of a body: more than the smallest only while memory is
// plentiful and the reader is not known to be slow, so that pieces in use leave
// most of the memory to further readers. Thread-safe.
size_t PieceSize(const MemoryBudget& budget, bool is_slow);

// Bounds on a piece.
inline constexpr size_t kPieceSizeBytesMin = size_t{16} << 10;
inline constexpr size_t kPieceSizeBytesMax = size_t{256} << 10;

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_HTTP_ANSWER_H_
