// SPDX-License-Identifier: Apache-2.0
#include "client/cli/formats/warc_format.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "client/cli/shown_text.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

// Returns a UUID of version 8 (RFC 9562), derived from a hash.
std::string RecordId(absl::string_view uuid, absl::string_view what) {
  const std::string seed = absl::StrCat(uuid, "/", what);
  const uint64_t high = Checksum64(AsBytes(seed));
  const uint64_t low = Checksum64(AsBytes(absl::StrCat(seed, "/low")));
  return absl::StrFormat("<urn:uuid:%08x-%04x-8%03x-%04x-%012x>", high >> 32,
                         (high >> 16) & 0xFFFF, high & 0xFFF,
                         0x8000 | ((low >> 48) & 0x3FFF), low & 0xFFFFFFFFFFFF);
}

// True if the id begins with a letter, then letters, digits, '+', '-' and '.',
// then "://", or with a scheme of crawls that has no slashes.
bool BeginsAsUri(absl::string_view id) {
  if (absl::StartsWithIgnoreCase(id, "urn:") ||
      absl::StartsWithIgnoreCase(id, "dns:")) {
    return true;
  }
  const size_t end = id.find("://");
  return end != absl::string_view::npos && end > 0 &&
         absl::ascii_isalpha(static_cast<unsigned char>(id[0])) &&
         std::all_of(id.begin(), id.begin() + end, [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '+' || c == '-' || c == '.';
         });
}

// Returns a media type without bytes that would end the header line.
std::string MediaType(const v1::Document& document) {
  const std::string& type = document.media_type();
  const bool is_fit =
      !type.empty() && std::all_of(type.begin(), type.end(), [](char c) {
        return absl::ascii_isprint(static_cast<unsigned char>(c));
      });
  return is_fit ? type : "application/octet-stream";
}

std::string Header(absl::string_view type, absl::string_view record_id,
                   int64_t time_ms) {
  return absl::StrCat("WARC/1.1\r\nWARC-Type: ", type,
                      "\r\nWARC-Record-ID: ", record_id,
                      "\r\nWARC-Date: ", FormatTimeMs(time_ms), "\r\n");
}

}  // namespace

std::string WarcTargetUri(absl::string_view id) {
  constexpr absl::string_view kNeverInUris = "<>\"\\^`{|}";
  const bool is_uri = BeginsAsUri(id);
  std::string uri = is_uri ? "" : "file:///";
  for (size_t i = 0; i < id.size(); ++i) {
    const char c = id[i];
    const bool stays =
        absl::ascii_isgraph(static_cast<unsigned char>(c)) &&
        !absl::StrContains(kNeverInUris, c) &&
        (is_uri || (c != '%' && c != '?' && c != '#' && (c != '/' || i > 0)));
    if (stays) {
      uri += c;
    } else {
      absl::StrAppendFormat(&uri, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return uri;
}

std::string WarcRecordId(const v1::ArchiveDescription& archive,
                         const v1::Document& document) {
  return RecordId(archive.uuid(), absl::StrCat(document.ordinal()));
}

std::string WarcInfoRecord(const v1::ArchiveDescription& archive,
                           int64_t now_ms) {
  const std::string block = absl::StrCat(
      "software: quire\r\nformat: WARC file version 1.1\r\ndescription: export "
      "of the Quire archive ",
      archive.name(), ", uuid ", archive.uuid(), "\r\n");
  return absl::StrCat(
      Header("warcinfo", RecordId(archive.uuid(), "info"), now_ms),
      "Content-Type: application/warc-fields\r\n",
      "Content-Length: ", block.size(), "\r\n\r\n", block, kWarcRecordEnd);
}

std::string WarcResourceHeader(const v1::ArchiveDescription& archive,
                               const v1::Document& document, int64_t now_ms) {
  return absl::StrCat(
      Header(
          "resource", WarcRecordId(archive, document),
          document.has_capture_time_ms() ? document.capture_time_ms() : now_ms),
      "WARC-Target-URI: ", WarcTargetUri(document.id()),
      "\r\nContent-Type: ", MediaType(document),
      "\r\nContent-Length: ", document.range().size_bytes(), "\r\n\r\n");
}

}  // namespace quire
