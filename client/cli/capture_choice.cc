// SPDX-License-Identifier: Apache-2.0
#include "client/cli/capture_choice.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/cli/document_listing.h"
#include "client/cli/shown_text.h"
#include "client/quire/capture_list.h"
#include "client/quire/client_status.h"
#include "client/quire/payload/payload_decoder.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/byte_size.h"
#include "codecs/base/bytes.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Media type of the records themselves.
constexpr absl::string_view kHttpMediaType = "application/http";
// Class of statuses.
constexpr int kRedirect = 3;

struct CaptureHead {
  v1::Document document;
  // Unset: it has none.
  std::optional<int> http_status = {};
  bool lacks_body = false;
};

// Reads a record up to the first byte of its payload.
absl::StatusOr<CaptureHead> ReadCaptureHead(CliRun& run, uint64_t ordinal) {
  CaptureHead head;
  std::optional<PayloadDecoder> decoder;
  std::string bytes;
  bool is_decided = false;
  const absl::Status status = run.Stream(
      DocumentKey::Ordinal(ordinal), /*payload=*/false,
      [&](const PayloadOrigin& origin) {
        head.document = origin.document;
        decoder.emplace();
        bytes.clear();
        return absl::OkStatus();
      },
      [&](ByteView part) {
        bytes.append(AsText(part).data(), part.size());
        // Also ends where the record is malformed: then it has no body.
        const absl::Status fed = decoder->Feed(
            part, [](ByteView) { return absl::CancelledError("the body"); });
        is_decided = !fed.ok();
        return fed;
      });
  if (!is_decided) {
    QUIRE_RETURN_IF_ERROR(status);
  }
  head.http_status = FindHttpStatus(AsBytes(bytes)).code;
  head.lacks_body = decoder.has_value() && decoder->lacks_body();
  return head;
}

// "301 (2 captures), 404 (1 capture)".
std::string ListStatuses(const std::map<std::string, uint64_t>& counts) {
  return absl::StrJoin(counts, ", ", [](std::string* out, const auto& entry) {
    absl::StrAppend(out, entry.first, " (", entry.second,
                    entry.second == 1 ? " capture)" : " captures)");
  });
}

absl::Status NoneHasStatus(const std::map<std::string, uint64_t>& counts,
                           bool has_more) {
  return absl::NotFoundError(absl::StrCat(
      "no capture has a status of --status; there are ", ListStatuses(counts),
      has_more ? absl::StrCat(" among the ", kCapturesMax,
                              " that were read; --at selects earlier ones, "
                              "--closest others")
               : ""));
}

std::string StatusName(std::optional<int> status) {
  return status.has_value() ? absl::StrCat(*status) : "none";
}

// Returns the first that passes `filter` and has a body, else the first that
// passes. REQUIRES: `ordinals` is not empty.
absl::StatusOr<v1::Document> ChooseAmong(CliRun& run,
                                         const std::vector<uint64_t>& ordinals,
                                         const DocumentFilter& filter) {
  std::optional<v1::Document> without_body;
  std::map<std::string, uint64_t> counts;
  for (const uint64_t ordinal : ordinals) {
    QUIRE_ASSIGN_OR_RETURN(const CaptureHead head,
                           ReadCaptureHead(run, ordinal));
    ++counts[StatusName(head.http_status)];
    if (!filter.PassesStatus(head.http_status) ||
        !filter.Passes(head.document)) {
      continue;
    }
    if (!head.lacks_body) {
      return head.document;
    }
    if (!without_body.has_value()) {
      without_body = head.document;
    }
  }
  if (without_body.has_value()) {
    return *without_body;
  }
  return NoneHasStatus(counts, ordinals.size() == kCapturesMax);
}

// Returns the captures that pass `filter`, in the order of the list; with
// `pages_first` and without statuses in `filter` redirects are the last.
// Errors: NotFound  there are none. Others as CaptureIndexLister::Next().
absl::StatusOr<std::vector<v1::Document>> ListIndexed(
    CaptureIndexLister& lister, bool pages_first,
    const DocumentFilter& filter) {
  std::vector<v1::Document> listed;
  std::vector<v1::Document> redirects;
  std::map<std::string, uint64_t> counts;
  size_t read_count = 0;
  while (read_count < kCapturesMax) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Capture> capture,
                           lister.Next());
    if (!capture.has_value()) {
      break;
    }
    ++read_count;
    if (!filter.Passes(capture->document())) {
      continue;
    }
    const std::optional<int> status =
        capture->has_status()
            ? std::optional(static_cast<int>(capture->status()))
            : std::nullopt;
    ++counts[StatusName(status)];
    if (filter.PassesStatus(status)) {
      const bool is_last = pages_first && !filter.needs_status() &&
                           status.value_or(0) / 100 == kRedirect;
      (is_last ? redirects : listed).push_back(capture->document());
    }
  }
  std::move(redirects.begin(), redirects.end(), std::back_inserter(listed));
  if (!listed.empty()) {
    return listed;
  }
  if (!counts.empty()) {
    return NoneHasStatus(counts, read_count == kCapturesMax);
  }
  return absl::NotFoundError(
      read_count == 0 ? "the index of captures has none of this URL"
                      : "no capture of this URL is of such a record type; "
                        "--record-type names others");
}

// True if the document says nothing of the media type of its payload.
bool LacksMediaType(const v1::Document& document) {
  const absl::string_view type = document.media_type();
  return document.record_type() == "revisit" &&
         (type.empty() || absl::StartsWithIgnoreCase(type, kHttpMediaType));
}

}  // namespace

absl::StatusOr<DocumentKey> ChooseCapture(CliRun& run, const DocumentKey& key,
                                          const DocumentFilter& filter) {
  const std::string& archive = run.settings().archive;
  QUIRE_RETURN_IF_ERROR(run.PinContents());
  QUIRE_ASSIGN_OR_RETURN(
      const std::vector<uint64_t> ordinals,
      ListCaptures(run.client(), archive, key, run.read_options()));
  if (ordinals.empty()) {
    return absl::NotFoundError(
        "no response or revisit of a crawl has this id, which --status "
        "requires");
  }
  QUIRE_ASSIGN_OR_RETURN(const v1::Document document,
                         ChooseAmong(run, ordinals, filter));
  run.NoteTime(key, document);
  return DocumentKey::Ordinal(document.ordinal());
}

absl::StatusOr<DocumentKey> FindIndexedCapture(
    CliRun& run, const CaptureSelection& selection, DocumentFilter filter) {
  if (!filter.has_record_types()) {
    filter.SetRecordTypes({"response", "revisit", "resource"});
  }
  CaptureListOptions options = {.archive_uuid =
                                    run.read_options().archive_uuid};
  (selection.is_key ? options.key : options.url) = selection.url;
  if (selection.closest.has_value()) {
    options.closest_ms = selection.closest->first_ms;
  } else {
    options.newest_first = true;
  }
  CaptureIndexLister lister =
      run.client().ListCaptures(run.settings().archive, options);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<v1::Document> listed,
                         ListIndexed(lister, selection.prefers_pages, filter));
  run.PinContents(lister.archive_uuid());
  if (const std::string unindexed = DescribeUnindexed(lister);
      !unindexed.empty()) {
    run.Note(unindexed);
  }
  v1::Document chosen = listed.front();
  if (selection.prefers_pages || filter.needs_status()) {
    std::vector<uint64_t> ordinals;
    ordinals.reserve(listed.size());
    for (const v1::Document& document : listed) {
      ordinals.push_back(document.ordinal());
    }
    QUIRE_ASSIGN_OR_RETURN(chosen, ChooseAmong(run, ordinals, filter));
  }
  const int64_t time_ms = chosen.capture_time_ms();
  if (selection.closest.has_value() && (time_ms < selection.closest->first_ms ||
                                        time_ms > selection.closest->last_ms)) {
    run.Note(absl::StrCat(DescribeTarget(DocumentKey::Id(selection.url)),
                          ": this is the closest capture, of ",
                          FormatTimeMs(time_ms)));
  }
  return DocumentKey::Ordinal(chosen.ordinal());
}

std::string DescribeUnindexed(const CaptureIndexLister& lister) {
  const uint64_t count = lister.unindexed_document_count();
  return count == 0
             ? ""
             : absl::StrCat(
                   "captures are missing: an earlier version wrote ",
                   FormatCounted(count, "document", "documents"),
                   " without an index; quired build -o NEW of the WARC files "
                   "makes one");
}

absl::StatusOr<std::optional<v1::Document>> FindRevisited(
    CliRun& run, const v1::Document& revisit) {
  std::optional<v1::Document> found;
  const absl::Status status = run.Stream(
      DocumentKey::Ordinal(revisit.ordinal()), /*payload=*/true,
      [&](const PayloadOrigin& origin) {
        if (!origin.revisit.has_value() ||
            !IsSameDocument(*origin.revisit, revisit)) {
          return ArchiveReplaced(run);
        }
        found = origin.document;
        return absl::CancelledError("found");
      },
      [](ByteView) { return absl::OkStatus(); });
  if (!found.has_value() && !absl::IsNotFound(status) &&
      !IsPayloadFault(status) && !IsWithdrawn(status)) {
    QUIRE_RETURN_IF_ERROR(status);
  }
  return found;
}

absl::StatusOr<bool> PassesFilter(CliRun& run, const DocumentFilter& filter,
                                  v1::Document& document) {
  if (filter.has_media_types() && LacksMediaType(document) &&
      filter.PassesOtherThanMediaType(document)) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<v1::Document> target,
                           FindRevisited(run, document));
    if (target.has_value()) {
      document.set_media_type(target->media_type());
    }
  }
  return filter.Passes(document);
}

}  // namespace quire
