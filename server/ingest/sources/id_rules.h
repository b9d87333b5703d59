// SPDX-License-Identifier: GPL-3.0-or-later
//
// The user's rules for excluding and naming documents.
#ifndef QUIRE_SERVER_INGEST_SOURCES_ID_RULES_H_
#define QUIRE_SERVER_INGEST_SOURCES_ID_RULES_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace re2 {
class RE2;
}  // namespace re2

namespace quire {

struct IdRuleOptions {
  // Patterns as in rsync and .gitignore, compared with the path in the input
  // before it is renamed:
  //   *  any characters except /     **  any characters
  //   ?  one character except /      [a-z], [!a-z]  a class, never with /
  //   \  quotes the next character
  // A pattern that begins with / must match from the start of the path, any
  // other from the start of any component. It must match up to the end of a
  // component, and excludes everything below it. A pattern that ends in /
  // matches directories only.
  std::vector<std::string> exclude_globs = {};
  // Prefix removed from ids that begin with it, byte for byte; other ids stay.
  std::string strip_prefix = {};
  // Prefix added to all ids, after that.
  std::string prefix = {};
};

// Immutable, thread-safe.
class IdRules {
 public:
  // Errors: InvalidArgument  an empty or malformed pattern.
  static absl::StatusOr<std::shared_ptr<const IdRules>> Create(
      const IdRuleOptions& options);
  ~IdRules();

  // `path` is any bytes; a directory's ends in "/". Linear time.
  bool Excludes(absl::string_view path) const;

  std::string Rename(absl::string_view id) const;

 private:
  explicit IdRules(const IdRuleOptions& options);

  const std::string strip_prefix_;
  const std::string prefix_;
  // Null if nothing is excluded.
  std::unique_ptr<const re2::RE2> excluded_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_SOURCES_ID_RULES_H_
