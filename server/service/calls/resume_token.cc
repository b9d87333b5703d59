// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/resume_token.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/status_macros.h"
#include "codecs/base/varint.h"
#include "server/archive/format/archive_format.h"
#include "server/service/base/service_error.h"
#include "server/service/catalog/catalog.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

constexpr char kBoundToArchives[] = "archives";
constexpr char kOfRequest[] = "this request";

// A token is base64url of a checksum, then the body. The checksum covers the
// body and the text it is bound to. It protects against mistakes only.
std::string Seal(absl::string_view bound_to, absl::string_view body) {
  std::string sealed(sizeof(uint64_t), '\0');
  StoreLittleEndian(Checksum64(AsBytes(body), Checksum64(AsBytes(bound_to))),
                    AsMutableBytes(sealed).data());
  sealed.append(body.data(), body.size());
  return absl::WebSafeBase64Escape(sealed);
}

absl::Status NoTokenOf(absl::string_view field, absl::string_view of_what) {
  return ServiceError(
      absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
      absl::StrCat(field, " does not belong to ", of_what,
                   "; leave it out to start from the beginning"));
}

absl::StatusOr<std::string> Unseal(absl::string_view bound_to,
                                   absl::string_view token,
                                   absl::string_view field,
                                   absl::string_view of_what = kOfRequest) {
  std::string sealed;
  if (absl::WebSafeBase64Unescape(token, &sealed) &&
      sealed.size() >= sizeof(uint64_t)) {
    const std::string body = sealed.substr(sizeof(uint64_t));
    if (Seal(bound_to, body) == token) {
      return body;
    }
  }
  return NoTokenOf(field, of_what);
}

constexpr char kBoundToScan[] = "scan";

std::string BoundToList(const v1::ListDocumentsRequest& request) {
  std::string filter;
  if (request.has_filter()) {
    filter =
        absl::StrCat("/", request.delimiter().size(), "/", request.filter());
  }
  return absl::StrCat("list/", request.has_first_ordinal(), "/",
                      request.prefix().size(), "/", request.prefix(), "/",
                      request.delimiter(), filter);
}

std::string BoundToCaptures(const v1::ListCapturesRequest& request) {
  // In the order of fields; their values have any length.
  v1::ListCapturesRequest bound = request;
  bound.clear_archive();
  bound.clear_archive_uuid();
  bound.clear_page_size();
  bound.clear_page_token();
  return absl::StrCat("captures/", bound.SerializeAsString());
}

// The body of a token that names the state that it is of.
std::string WithState(const ArchiveView& view, absl::string_view body) {
  std::string result;
  AppendVarint(view.uuid.size(), result);
  absl::StrAppend(&result, view.uuid, body);
  return result;
}

// The parts that WithState() joined.
struct StateToken {
  std::string uuid;
  std::string body;
};

// Errors: as Unseal().
absl::StatusOr<StateToken> UnsealState(absl::string_view bound_to,
                                       absl::string_view token,
                                       absl::string_view field) {
  const absl::StatusOr<std::string> sealed = Unseal(bound_to, token, field);
  if (!sealed.ok()) {
    return sealed.status();
  }
  ByteView rest = AsBytes(*sealed);
  const uint64_t stated_size = TakeVarint(rest).value_or(0);
  const uint64_t uuid_size = std::min<uint64_t>(stated_size, rest.size());
  return StateToken{.uuid = std::string(AsText(rest.first(uuid_size))),
                    .body = std::string(AsText(rest.subspan(uuid_size)))};
}

// Returns the state of a request's token.
template <typename Request>
absl::StatusOr<ArchiveView> StateOfToken(const ArchiveView& asked,
                                         const Request& request,
                                         absl::string_view bound_to,
                                         absl::string_view token,
                                         absl::string_view field) {
  const absl::StatusOr<StateToken> parts = UnsealState(bound_to, token, field);
  if (!parts.ok()) {
    return parts.status();
  }
  QUIRE_ASSIGN_OR_RETURN(
      const ArchiveView view,
      FindState(*asked.archive, request.archive(), parts->uuid, field));
  if (request.has_archive_uuid() && view.uuid != asked.uuid) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        absl::StrCat(field, " is of another state of the archive than ",
                     "archive_uuid; leave one of them out"));
  }
  return view;
}

// Order of a scan, in its token.
enum class ScanOrder : uint8_t { kLogical = 0, kStored = 1 };

// The numbers in the token of a scan.
struct ScanToken {
  uint64_t first = 0;
  uint64_t second = 0;
  // Only in stored order; unset in tokens of earlier versions.
  std::optional<uint64_t> segments_id = {};
};

std::string SealScan(const ArchiveView& view, ScanOrder order,
                     const ScanToken& token) {
  std::string body(1, static_cast<char>(order));
  AppendVarint(token.first, body);
  AppendVarint(token.second, body);
  if (token.segments_id.has_value()) {
    AppendVarint(*token.segments_id, body);
  }
  return Seal(kBoundToScan, WithState(view, body));
}

// Returns the token of a scan in `order`.
absl::StatusOr<ScanToken> UnsealScan(ScanOrder order,
                                     const v1::ScanRequest& request) {
  const absl::StatusOr<StateToken> token =
      UnsealState(kBoundToScan, request.resume_token(), "resume_token");
  if (!token.ok()) {
    return token.status();
  }
  if (token->body.empty() || token->body[0] != static_cast<char>(order)) {
    return NoTokenOf("resume_token", kOfRequest);
  }
  ByteView rest = AsBytes(token->body).subspan(1);
  ScanToken numbers;
  numbers.first = TakeVarint(rest).value_or(0);
  numbers.second = TakeVarint(rest).value_or(numbers.first);
  if (const auto segments_id = TakeVarint(rest); segments_id.ok()) {
    numbers.segments_id = *segments_id;
  }
  return numbers;
}

bool HasTokenIn(ScanOrder order, const v1::ScanRequest& request) {
  return request.start_case() == v1::ScanRequest::kResumeToken &&
         UnsealScan(order, request).ok();
}

}  // namespace

absl::StatusOr<ArchiveView> StateOfScan(const ArchiveView& asked,
                                        const v1::ScanRequest& request) {
  if (request.start_case() != v1::ScanRequest::kResumeToken) {
    return asked;
  }
  return StateOfToken(asked, request, kBoundToScan, request.resume_token(),
                      "resume_token");
}

absl::StatusOr<ArchiveView> StateOfList(
    const ArchiveView& asked, const v1::ListDocumentsRequest& request) {
  if (!request.has_page_token()) {
    return asked;
  }
  return StateOfToken(asked, request, BoundToList(request),
                      request.page_token(), "page_token");
}

std::string MakeResumeToken(const ArchiveView& view, ScanPosition position) {
  return SealScan(
      view, ScanOrder::kLogical,
      {.first = position.next_offset, .second = position.end_offset});
}

std::string MakeResumeToken(const ArchiveView& view,
                            StoredOrder::Position position,
                            uint64_t segments_id) {
  return SealScan(view, ScanOrder::kStored,
                  {.first = position.offset,
                   .second = position.places_given,
                   .segments_id = segments_id});
}

bool HasStoredToken(const v1::ScanRequest& request) {
  return HasTokenIn(ScanOrder::kStored, request);
}

bool HasLogicalToken(const v1::ScanRequest& request) {
  return HasTokenIn(ScanOrder::kLogical, request);
}

absl::StatusOr<StoredOrder::Position> ResolveStoredScan(
    const ArchiveView& view, const v1::ScanRequest& request) {
  if (request.has_size_bytes() || request.offset() != 0) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        "stored_order scans the whole archive; leave out offset and "
        "size_bytes");
  }
  StoredOrder::Position position;
  if (request.start_case() == v1::ScanRequest::kResumeToken) {
    QUIRE_ASSIGN_OR_RETURN(const auto token,
                           UnsealScan(ScanOrder::kStored, request));
    if (!StoredOrder::IsThere(view) ||
        token.segments_id != StoredOrder::SegmentsId(view)) {
      return ServiceError(
          absl::StatusCode::kFailedPrecondition, v1::ARCHIVE_STATE_UNKNOWN,
          "resume_token is of a scan in stored order, and the archive, which "
          "has changed, no longer has this order; scan again from the "
          "beginning",
          {{"archive", request.archive()}});
    }
    position.offset = token.first;
    position.places_given = token.second;
  }
  return position;
}

absl::StatusOr<LogicalRange> ResolveScan(const ArchiveView& view,
                                         const v1::ScanRequest& request) {
  v1::ByteRange range;
  if (request.start_case() == v1::ScanRequest::kResumeToken) {
    QUIRE_ASSIGN_OR_RETURN(const auto token,
                           UnsealScan(ScanOrder::kLogical, request));
    if (request.has_size_bytes()) {
      return ServiceError(absl::StatusCode::kInvalidArgument,
                          v1::MALFORMED_REQUEST,
                          "size_bytes must not be set with resume_token, which "
                          "contains the end of the scan");
    }
    range.set_offset(token.first);
    range.set_size_bytes(token.second - token.first);
  } else {
    const uint64_t size_bytes = view.size_bytes;
    range.set_offset(request.offset());
    range.set_size_bytes(request.has_size_bytes() ? request.size_bytes()
                         : request.offset() <= size_bytes
                             ? size_bytes - request.offset()
                             : 0);
  }
  absl::StatusOr<ResolvedTarget> target = ResolveRange(view, range);
  if (!target.ok()) {
    return target.status();
  }
  return target->range;
}

std::string MakeArchivesPageToken(absl::string_view last_name) {
  return Seal(kBoundToArchives, last_name);
}

absl::StatusOr<std::string> ParseArchivesPageToken(absl::string_view token) {
  return Unseal(kBoundToArchives, token, "page_token", "a list of archives");
}

std::string MakeFilesPageToken(const v1::ListFilesRequest& request,
                               const FilePosition& last) {
  std::string body;
  AppendVarint(last.text_end, body);
  return Seal(absl::StrCat("files/", request.prefix()),
              absl::StrCat(body, last.path));
}

absl::StatusOr<FilePosition> ParseFilesPageToken(
    const v1::ListFilesRequest& request) {
  const absl::StatusOr<std::string> body =
      Unseal(absl::StrCat("files/", request.prefix()), request.page_token(),
             "page_token");
  if (!body.ok()) {
    return body.status();
  }
  ByteView rest = AsBytes(*body);
  FilePosition last;
  QUIRE_ASSIGN_OR_RETURN(last.text_end, TakeVarint(rest));
  last.path = std::string(AsText(rest));
  return last;
}

std::string MakePageToken(const ArchiveView& view,
                          const v1::ListDocumentsRequest& request,
                          const Archive::IdCursor& last) {
  std::string body(1, last.is_common_prefix ? '\1' : '\0');
  AppendVarint(last.ordinal, body);
  body += last.id;
  return Seal(BoundToList(request), WithState(view, body));
}

absl::StatusOr<Archive::IdCursor> ParsePageToken(
    const v1::ListDocumentsRequest& request) {
  const absl::StatusOr<StateToken> token =
      UnsealState(BoundToList(request), request.page_token(), "page_token");
  if (!token.ok()) {
    return token.status();
  }
  if (token->body.empty()) {
    return NoTokenOf("page_token", kOfRequest);
  }
  Archive::IdCursor last;
  last.is_common_prefix = token->body[0] != '\0';
  ByteView rest = AsBytes(token->body).subspan(1);
  last.ordinal = TakeVarint(rest).value_or(0);
  last.id = std::string(AsText(rest));
  return last;
}

absl::StatusOr<ArchiveView> StateOfCaptures(
    const ArchiveView& asked, const v1::ListCapturesRequest& request) {
  if (!request.has_page_token()) {
    return asked;
  }
  return StateOfToken(asked, request, BoundToCaptures(request),
                      request.page_token(), "page_token");
}

std::string MakeCapturesPageToken(const ArchiveView& view,
                                  const v1::ListCapturesRequest& request,
                                  const CapturePlace& last) {
  std::string body;
  AppendVarint(last.ordinal.value, body);
  AppendVarint(ZigZag(last.time_ms), body);
  body += last.key;
  return Seal(BoundToCaptures(request), WithState(view, body));
}

absl::StatusOr<CapturePlace> ParseCapturesPageToken(
    const v1::ListCapturesRequest& request) {
  const absl::StatusOr<StateToken> token =
      UnsealState(BoundToCaptures(request), request.page_token(), "page_token");
  if (!token.ok()) {
    return token.status();
  }
  ByteView rest = AsBytes(token->body);
  const absl::StatusOr<uint64_t> ordinal = TakeVarint(rest);
  const absl::StatusOr<uint64_t> time = TakeVarint(rest);
  if (!ordinal.ok() || !time.ok() ||
      *ordinal >= std::numeric_limits<uint64_t>::max() ||
      UnZigZag(*time) < -kCaptureTimeMsMax ||
      UnZigZag(*time) > kCaptureTimeMsMax) {
    return NoTokenOf("page_token", kOfRequest);
  }
  return CapturePlace{.key = std::string(AsText(rest)),
                      .time_ms = UnZigZag(*time),
                      .ordinal = {*ordinal}};
}

}  // namespace quire
