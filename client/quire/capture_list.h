// SPDX-License-Identifier: Apache-2.0
//
// The captures of one id, in the order in which a read prefers them.
#ifndef QUIRE_CLIENT_QUIRE_CAPTURE_LIST_H_
#define QUIRE_CLIENT_QUIRE_CAPTURE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "client/quire/client.h"
#include "client/quire/read_target.h"

namespace quire {

// Upper bound on the captures that ListCaptures() returns.
inline constexpr size_t kCapturesMax = 1000;

// Lists ordinals for a key that has only an id, or also a time and types.
using CaptureLister = std::function<absl::StatusOr<std::vector<uint64_t>>(
    const DocumentKey& key)>;

// Returns the ordinals of the documents that `key` may select, responses and
// revisits if it names no types: from the one that it does select to the last
// that it would if the others were not there. At most the first kCapturesMax.
// Blocks; thread-safe as `client` is. REQUIRES: `key` has an id, and no
// occurrence.
// Errors: as DocumentLister::Next().
absl::StatusOr<std::vector<uint64_t>> ListCaptures(Client& client,
                                                   absl::string_view archive,
                                                   const DocumentKey& key,
                                                   const ReadOptions& options);

}  // namespace quire

#endif  // QUIRE_CLIENT_QUIRE_CAPTURE_LIST_H_
