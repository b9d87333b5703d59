// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/calls/resume_token.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/checksum.h"
#include "codecs/base/endian.h"
#include "codecs/base/varint.h"
#include "server/service/base/service_error.h"
#include "server/service/read/read_planner.h"

namespace quire {
namespace {

constexpr char kBoundToArchives[] = "archives";
constexpr char kOfRequest[] = "this version of the archive and this request";

// A token is base64url of a checksum, then the body. The checksum covers the
// body and the text it is bound to. It protects against mistakes only.
std::string Seal(absl::string_view bound_to, absl::string_view body) {
  std::string sealed(sizeof(uint64_t), '\0');
  StoreLittleEndian(Checksum64(AsBytes(body), Checksum64(AsBytes(bound_to))),
                    AsMutableBytes(sealed).data());
  sealed.append(body.data(), body.size());
  return absl::WebSafeBase64Escape(sealed);
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
  return ServiceError(
      absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
      absl::StrCat(field, " does not belong to ", of_what,
                   "; leave it out to start from the beginning"));
}

std::string BoundToScan(const Archive& archive) {
  return absl::StrCat("scan/", archive.info().uuid);
}

std::string BoundToStoredScan(const Archive& archive) {
  return absl::StrCat("stored scan/", archive.info().uuid);
}

std::string BoundToList(const Archive& archive, absl::string_view prefix) {
  return absl::StrCat("list/", archive.info().uuid, "/", prefix);
}

}  // namespace

std::string MakeResumeToken(const Archive& archive, ScanPosition position) {
  std::string body;
  AppendVarint(position.next_offset, body);
  AppendVarint(position.end_offset, body);
  return Seal(BoundToScan(archive), body);
}

std::string MakeResumeToken(const Archive& archive,
                            StoredOrder::Position position) {
  std::string body;
  AppendVarint(position.offset, body);
  AppendVarint(position.places_given, body);
  return Seal(BoundToStoredScan(archive), body);
}

absl::StatusOr<StoredOrder::Position> ResolveStoredScan(
    const Archive& archive, const v1::ScanRequest& request) {
  if (request.has_size_bytes() || request.offset() != 0) {
    return ServiceError(
        absl::StatusCode::kInvalidArgument, v1::MALFORMED_REQUEST,
        "stored_order scans the whole archive; leave out offset and "
        "size_bytes");
  }
  StoredOrder::Position position;
  if (request.start_case() == v1::ScanRequest::kResumeToken) {
    const absl::StatusOr<std::string> body = Unseal(
        BoundToStoredScan(archive), request.resume_token(), "resume_token");
    if (!body.ok()) {
      return body.status();
    }
    ByteView rest = AsBytes(*body);
    position.offset = TakeVarint(rest).value_or(0);
    position.places_given = TakeVarint(rest).value_or(0);
  }
  return position;
}

absl::StatusOr<LogicalRange> ResolveScan(const Archive& archive,
                                         const v1::ScanRequest& request) {
  v1::ByteRange range;
  if (request.start_case() == v1::ScanRequest::kResumeToken) {
    absl::StatusOr<std::string> body =
        Unseal(BoundToScan(archive), request.resume_token(), "resume_token");
    if (!body.ok()) {
      return body.status();
    }
    if (request.has_size_bytes()) {
      return ServiceError(absl::StatusCode::kInvalidArgument,
                          v1::MALFORMED_REQUEST,
                          "size_bytes must not be set with resume_token, which "
                          "contains the end of the scan");
    }
    ByteView rest = AsBytes(*body);
    const uint64_t next_offset = TakeVarint(rest).value_or(0);
    const uint64_t end_offset = TakeVarint(rest).value_or(next_offset);
    range.set_offset(next_offset);
    range.set_size_bytes(end_offset - next_offset);
  } else {
    const uint64_t size_bytes = archive.info().size_bytes;
    range.set_offset(request.offset());
    range.set_size_bytes(request.has_size_bytes() ? request.size_bytes()
                         : request.offset() <= size_bytes
                             ? size_bytes - request.offset()
                             : 0);
  }
  absl::StatusOr<ResolvedTarget> target = ResolveRange(archive, range);
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

std::string MakePageToken(const Archive& archive, absl::string_view prefix,
                          const Archive::IdCursor& last) {
  std::string body;
  AppendVarint(last.ordinal, body);
  body += last.id;
  return Seal(BoundToList(archive, prefix), body);
}

absl::StatusOr<Archive::IdCursor> ParsePageToken(const Archive& archive,
                                                 absl::string_view prefix,
                                                 absl::string_view token) {
  absl::StatusOr<std::string> body =
      Unseal(BoundToList(archive, prefix), token, "page_token");
  if (!body.ok()) {
    return body.status();
  }
  ByteView rest = AsBytes(*body);
  Archive::IdCursor last;
  last.ordinal = TakeVarint(rest).value_or(0);
  last.id = std::string(AsText(rest));
  return last;
}

}  // namespace quire
