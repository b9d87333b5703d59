// SPDX-License-Identifier: GPL-3.0-or-later
//
// Answers of S3 in XML: a strict parser of the little that they use.
#ifndef QUIRE_SERVER_STORAGE_REMOTE_XML_ANSWER_H_
#define QUIRE_SERVER_STORAGE_REMOTE_XML_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// Bounds on an answer: those of a list of a thousand names are far below.
inline constexpr size_t kXmlSizeBytesMax = 8 << 20;
inline constexpr size_t kXmlElementCountMax = 20'000;
inline constexpr int kXmlDepthMax = 8;

struct XmlElement {
  // Without the prefix of a namespace.
  std::string name;
  // Of an element without others, decoded.
  std::string text;
  std::vector<XmlElement> children;

  // Returns the first child of that name; null if there is none.
  const XmlElement* Find(absl::string_view child) const;
  // Returns its text; empty if there is none.
  std::string TextOf(absl::string_view child) const;
};

// Returns the root. Attributes and comments are skipped. Errors:
// InvalidArgument  malformed, over a bound, or with a document type or CDATA.
absl::StatusOr<XmlElement> ParseXmlAnswer(absl::string_view text);

// Returns the text with the five reserved characters as entities.
std::string EscapeXml(absl::string_view text);

}  // namespace quire

#endif  // QUIRE_SERVER_STORAGE_REMOTE_XML_ANSWER_H_
