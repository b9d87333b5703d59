// SPDX-License-Identifier: Apache-2.0
//
// Targets of a load run's requests.
#ifndef QUIRE_LOADTEST_REQUESTS_LOAD_TARGETS_H_
#define QUIRE_LOADTEST_REQUESTS_LOAD_TARGETS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "loadtest/requests/load_options.h"
#include "loadtest/requests/source_text.h"

namespace quire {

// Bytes [offset, offset + size_bytes) of an archive's text.
struct TextSpan {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

// Target of one request.
struct LoadTarget {
  // Unset for a document whose range is not known before the answer.
  std::optional<TextSpan> place = {};
  // A document by its id, which is borrowed, or by its ordinal; both unset: a
  // range.
  std::optional<absl::string_view> id = {};
  std::optional<uint64_t> ordinal = {};

  bool is_document() const { return id.has_value() || ordinal.has_value(); }
};

// Returns a description: "range [17, +4)".
std::string DescribeTarget(const LoadTarget& target);

// Sets the target of a ReadRequest or a BatchItem.
template <typename Request>
void SetTargetOf(const LoadTarget& target, Request& request) {
  if (target.id.has_value()) {
    request.mutable_document()->set_id(target.id->data(), target.id->size());
  } else if (target.ordinal.has_value()) {
    request.mutable_document()->set_ordinal(*target.ordinal);
  } else {
    request.mutable_range()->set_offset(target.place->offset);
    request.mutable_range()->set_size_bytes(target.place->size_bytes);
  }
}

// The targets of a run by number. Immutable and thread-safe.
class LoadTargets {
 public:
  // `source` null: documents are requested by ordinal. It must outlive the
  // targets and their results.
  // REQUIRES: size_bytes > 0, of the archive; and document_count > 0 for
  //           documents, or a range within size_bytes for ranges.
  LoadTargets(const LoadOptions& options, const SourceText* source,
              uint64_t size_bytes, uint64_t document_count)
      : options_(options),
        source_(source),
        size_bytes_(size_bytes),
        document_count_(document_count) {}

  // Depends only on `index`, the seed and the other options.
  LoadTarget At(uint64_t index) const;

  // Returns the mean decoded size of a request, in bytes.
  uint64_t MeanSizeBytes() const;

 private:
  const LoadOptions options_;
  const SourceText* const source_;
  const uint64_t size_bytes_;
  const uint64_t document_count_;
};

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_LOAD_TARGETS_H_
