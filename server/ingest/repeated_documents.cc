// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/ingest/repeated_documents.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

#include "codecs/base/bytes.h"
#include "codecs/base/header_fields.h"
#include "codecs/base/positions.h"
#include "codecs/base/status_macros.h"
#include "codecs/payload/payload_codec.h"

namespace quire {
namespace {

// CR LF CR LF after the block of a WARC record.
constexpr size_t kRecordEndSizeBytes = 4;
constexpr uint64_t kComparedTextSizeBytesMax = uint64_t{8} << 20;

// Returns the size of the headers of a response: those of its record, or the
// line of an ARC, and of HTTP.
size_t HeadersSize(absl::string_view record) {
  const size_t size = absl::StartsWithIgnoreCase(record, "WARC/")
                          ? FindHeaderEnd(AsBytes(record)).value_or(0)
                          : std::min(record.find('\n'), record.size() - 1) + 1;
  return size + FindHeaderEnd(AsBytes(record.substr(size))).value_or(0);
}

class DocumentComparer {
 public:
  explicit DocumentComparer(const Archive& archive)
      : archive_(archive), scratch_(archive.codec().NewScratch()) {}

  // Returns the size of the text that both have: all of it, or the body; 0 if
  // it differs.
  absl::StatusOr<uint64_t> EqualSize(const Document& earlier,
                                     const Document& later) {
    const bool is_response = later.record_type == "response";
    if (later.range.size_bytes == 0 ||
        (!is_response && earlier.range.size_bytes != later.range.size_bytes)) {
      return 0;
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string old_text, Read(earlier.range));
    QUIRE_ASSIGN_OR_RETURN(const std::string new_text, Read(later.range));
    absl::string_view old_body = old_text;
    absl::string_view new_body = new_text;
    if (is_response && !old_text.empty()) {
      old_body.remove_prefix(HeadersSize(old_body));
      new_body.remove_prefix(HeadersSize(new_body));
    }
    const bool is_empty = is_response && new_body.size() <= kRecordEndSizeBytes;
    return old_body == new_body && !is_empty ? new_body.size() : 0;
  }

 private:
  absl::StatusOr<std::string> Read(LogicalRange range) {
    std::string text;
    QUIRE_ASSIGN_OR_RETURN(const std::vector<BlockSlice> slices,
                           archive_.Plan(range));
    for (const BlockSlice& slice : slices) {
      if (decoded_ != slice.block) {
        decoded_.reset();
        block_.resize(archive_.BlockSizeBytes(slice.block));
        QUIRE_RETURN_IF_ERROR(
            archive_.ReadBlock(slice.block, block_, *scratch_));
        decoded_ = slice.block;
      }
      const ByteView part =
          ByteView(block_).subspan(slice.offset_in_block, slice.size_bytes);
      text.append(AsText(part).data(), part.size());
    }
    return text;
  }

  const Archive& archive_;
  const std::unique_ptr<PayloadCodec::Scratch> scratch_;
  // The block that was decoded last, and its address.
  std::vector<uint8_t> block_;
  std::optional<BlockAddress> decoded_;
};

// Returns the newest document of the id and type before `first_ordinal`.
std::optional<Document> FindEarlier(const Archive& archive,
                                    const Document& document,
                                    uint64_t first_ordinal) {
  const absl::StatusOr<std::vector<DocumentOrdinal>> found =
      archive.FindDocuments(document.id);
  if (!found.ok()) {
    return std::nullopt;
  }
  for (size_t i = found->size(); i > 0; --i) {
    const DocumentOrdinal ordinal = (*found)[i - 1];
    if (ordinal.value >= first_ordinal) {
      continue;
    }
    const absl::StatusOr<Document> earlier = archive.GetDocument(ordinal);
    if (earlier.ok() && earlier->record_type == document.record_type &&
        !archive.IsRedacted(ordinal)) {
      return *earlier;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<RepeatedDocuments> FindRepeatedDocuments(
    const Archive& archive, uint64_t first_ordinal,
    const std::atomic<bool>* cancel) {
  const uint64_t count = archive.info().document_count - first_ordinal;
  const uint64_t step = std::max<uint64_t>(
      1, (count + kComparedDocumentsMax - 1) / kComparedDocumentsMax);
  DocumentComparer comparer(archive);
  RepeatedDocuments repeated;
  uint64_t compared_count = 0;
  for (uint64_t i = 0; i < count; i += step) {
    if (cancel != nullptr && *cancel) {
      return absl::CancelledError("the comparison was interrupted");
    }
    ++compared_count;
    QUIRE_ASSIGN_OR_RETURN(const Document later,
                           archive.GetDocument({first_ordinal + i}));
    const std::optional<Document> earlier =
        FindEarlier(archive, later, first_ordinal);
    if (!earlier.has_value()) {
      continue;
    }
    if (std::max(earlier->range.size_bytes, later.range.size_bytes) >
        kComparedTextSizeBytesMax) {
      repeated.is_estimate = true;
      continue;
    }
    QUIRE_ASSIGN_OR_RETURN(const uint64_t size_bytes,
                           comparer.EqualSize(*earlier, later));
    repeated.count += size_bytes > 0 ? 1 : 0;
    repeated.size_bytes += size_bytes;
  }
  if (compared_count < count) {
    const double share =
        static_cast<double>(count) / static_cast<double>(compared_count);
    const auto scale = [share](uint64_t& figure) {
      figure = static_cast<uint64_t>(
          std::llround(static_cast<double>(figure) * share));
    };
    scale(repeated.count);
    scale(repeated.size_bytes);
    repeated.is_estimate = true;
  }
  return repeated;
}

}  // namespace quire
