// SPDX-License-Identifier: Apache-2.0
//
// Short forms of filters for captures of a crawl, as requests to take them down
// state them: in rules that withdraw documents, and for --rule.
//
//   domain news.test 2019..2021
//   host news.test status 404
//   digest sha1:OB3QTUZLBNUR7BXZQ4OPLCKEKUZZNKRJ
//
//   rule   = term { term }
//   term   = ( "host" | "domain" ) NAME | "status" CODE | "digest" DIGEST
//          | [ "time" ] PERIOD
//   PERIOD = TIME | TIME ".." TIME | TIME ".." | ".." TIME
//
// Documents match if all terms do; each kind occurs once, host or domain once.
// The first term names its kind.
//   NAME    as in filters (filter.h): domain has the hosts below it.
//   CODE    three digits; x stands for any at the end: 404, 40x, 4xx.
//   DIGEST  as the records state it. 32 characters of base32, with sha1: or
//           without, are those of SHA-1 in any case.
//   TIME    a year, 2019, or 2019-05, 2019-05-31, 2019-05-31T12:30:45Z, or 6,
//           8, 10, 12 or 14 digits such as 20190531123045; UTC without an
//           offset. As the end of a period all of it is in the period: 2021 is
//           until the end of that year.
#ifndef QUIRE_CODECS_FILTER_SHORT_RULE_H_
#define QUIRE_CODECS_FILTER_SHORT_RULE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace quire {

// All functions are thread-safe.

// True for host, domain, status, digest and time.
bool IsShortRuleWord(absl::string_view word);

// Returns the filter that a rule stands for:
//   domain "news.test" and time >= 2019-01-01T00:00:00Z and time < 2022-...
// Errors: InvalidArgument  names what was found and expected.
absl::StatusOr<std::string> FilterOfShortRule(absl::string_view rule);

// Replaces a rule by its filter, and returns nothing, or the message of the
// error: for options of command lines.
std::string ReplaceShortRule(std::string& rule);

}  // namespace quire

#endif  // QUIRE_CODECS_FILTER_SHORT_RULE_H_
