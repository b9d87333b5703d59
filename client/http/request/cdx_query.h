// SPDX-License-Identifier: Apache-2.0
//
// Queries of /v1/A/cdx, in the dialect of pywb's CDX server and OutbackCDX, and
// the lines of their answers. docs/http.md lists the parameters.
#ifndef QUIRE_CLIENT_HTTP_REQUEST_CDX_QUERY_H_
#define QUIRE_CLIENT_HTTP_REQUEST_CDX_QUERY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/surt/surt_key.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace quire {

// Fields of a capture. Their names are those of pywb; those of OutbackCDX are
// taken, too.
enum class CdxField {
  kKey,       // urlkey
  kTime,      // timestamp: 14 digits
  kUrl,       // url, original
  kMime,      // mime, mimetype
  kStatus,    // status, statuscode
  kDigest,    // digest
  kRedirect,  // redirecturl: always "-"
  kRobots,    // robotflags: always "-"
  kLength,    // length
  kOffset,    // offset
  kFileName,  // filename
};

// A capture as lines state it.
struct CdxCapture {
  std::string key;
  int64_t time_ms = 0;
  std::string url;
  // Empty: the capture has none.
  std::string mime = {};
  std::string status = {};
  std::string digest = {};
  uint64_t length = 0;
  uint64_t offset = 0;
  std::string file_name;

  // Empty if the capture has none.
  std::string Value(CdxField field) const;
};

// [!][=|~]FIELD:TEXT: the field has the text in it, is it (=), or begins with a
// match of it as an RE2 expression (~); with ! those that are not so. A field
// that a capture does not have is empty.
class CdxFilter {
 public:
  // Errors: InvalidArgument.
  static absl::StatusOr<CdxFilter> Parse(absl::string_view text);

  bool Matches(const CdxCapture& capture) const;

 private:
  enum class Kind { kContains, kEquals, kMatches };

  CdxField field_ = CdxField::kKey;
  Kind kind_ = Kind::kContains;
  bool is_negated_ = false;
  std::string text_;
  std::shared_ptr<const re2::RE2> expression_;
};

enum class CdxOutput {
  // "KEY TIME {JSON}", as pywb's files have it.
  kCdxj,
  // A JSON object a line.
  kJson,
  // Fields between spaces, "-" for those that a capture does not have.
  kText,
};

enum class CdxSort { kKey, kClosest, kReverse };

struct CdxQuery {
  // One of the two.
  std::string url;
  std::string key;
  SurtMatch match = SurtMatch::kExact;
  std::optional<int64_t> from_ms;
  std::optional<int64_t> until_ms;
  CdxSort sort = CdxSort::kKey;
  std::optional<int64_t> closest_ms;
  // At least 1.
  std::optional<uint64_t> limit;
  std::vector<CdxFilter> filters;
  CdxOutput output = CdxOutput::kCdxj;
  // Empty: the usual ones of the output.
  std::vector<CdxField> fields;
};

// Collects the parameters of a query. Used once.
class CdxQueryParser {
 public:
  // True for a parameter of CDX queries.
  static bool Accepts(absl::string_view name);

  // True for one that can be repeated.
  static bool IsRepeatable(absl::string_view name) { return name == "filter"; }

  // Takes a decoded parameter. REQUIRES: Accepts(name).
  // Errors: InvalidArgument  names the parameter.
  absl::Status Take(absl::string_view name, absl::string_view value);

  // Errors: InvalidArgument  no URL, or parameters that exclude each other.
  absl::StatusOr<CdxQuery> Finish() &&;

 private:
  CdxQuery query_;
  bool has_match_ = false;
};

// Returns the line of a capture, with its end. Thread-safe.
std::string CdxLine(const CdxCapture& capture, const CdxQuery& query);

}  // namespace quire

#endif  // QUIRE_CLIENT_HTTP_REQUEST_CDX_QUERY_H_
