// SPDX-License-Identifier: Apache-2.0
#include "client/cli/capture_choice.h"

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "client/cli/document_listing.h"
#include "client/quire/capture_list.h"
#include "client/quire/client_status.h"
#include "client/quire/payload/payload_decoder.h"
#include "client/quire/payload/record_header.h"
#include "codecs/base/bytes.h"
#include "codecs/base/printable_text.h"
#include "codecs/base/status_macros.h"

namespace quire {
namespace {

// Media type of the records themselves.
constexpr absl::string_view kHttpMediaType = "application/http";

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
  std::optional<uint64_t> without_body;
  std::map<std::string, uint64_t> counts;
  for (const uint64_t ordinal : ordinals) {
    QUIRE_ASSIGN_OR_RETURN(const CaptureHead head,
                           ReadCaptureHead(run, ordinal));
    ++counts[head.http_status.has_value() ? absl::StrCat(*head.http_status)
                                          : "none"];
    if (!filter.PassesStatus(head.http_status) ||
        !filter.Passes(head.document)) {
      continue;
    }
    if (!head.lacks_body) {
      run.NoteTime(key, head.document);
      return DocumentKey::Ordinal(ordinal);
    }
    if (!without_body.has_value()) {
      without_body = ordinal;
    }
  }
  if (without_body.has_value()) {
    return DocumentKey::Ordinal(*without_body);
  }
  if (ordinals.empty()) {
    return absl::NotFoundError(
        "no response or revisit of a crawl has this id, which --status "
        "requires");
  }
  return absl::NotFoundError(absl::StrCat(
      "no capture has a status of --status; there are ", ListStatuses(counts),
      ordinals.size() == kCapturesMax
          ? absl::StrCat(" among the ", kCapturesMax,
                         " that were read; --at selects earlier ones")
          : ""));
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
