// SPDX-License-Identifier: Apache-2.0
//
// The header line of an ARC record (Internet Archive, "Arc File Format", 1996,
// versions 1 and 2), as in crawls of before 2009.
#ifndef QUIRE_CODECS_BASE_ARC_LINE_H_
#define QUIRE_CODECS_BASE_ARC_LINE_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace quire {

// Start of the first record, which describes the file.
inline constexpr absl::string_view kArcMagic = "filedesc://";

// Parts of a line, borrowed from it.
struct ArcLine {
  // Begins with a scheme; may have spaces.
  absl::string_view url;
  absl::string_view address;
  // YYYYMMDDhhmmss as a rule.
  absl::string_view date;
  // First word of the type: "text/html;", "no-type".
  absl::string_view type;
  // One or more digits: the size of the block, which follows the line. Some
  // programs write -1 if they do not know it.
  absl::string_view length;
};

// Parses a header line, with or without its line end:
//   version 1  URL IP DATE TYPE LENGTH
//   version 2  URL IP DATE TYPE RESULT CHECKSUM LOCATION OFFSET FILE LENGTH
// DATE is the last word of 14 digits, so that URL and TYPE may have spaces.
// Without such a word it is the last one after an IP address that is "null",
// "-" or a number of 4 to 20 digits, as some crawlers wrote.
// Returns nullopt for any other line. Thread-safe.
std::optional<ArcLine> ParseArcLine(absl::string_view line);

// True if `text` begins with the scheme of a URL. Thread-safe.
bool BeginsWithScheme(absl::string_view text);

// Returns a date of 14 digits, or of 12 (then the second is 0), as a WARC-Date:
// "2005-06-22T19:08:50Z"; empty for any other. The date may be impossible.
// Thread-safe.
std::string ArcDateAsWarcDate(absl::string_view date);

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_ARC_LINE_H_
