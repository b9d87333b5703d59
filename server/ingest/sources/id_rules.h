// SPDX-License-Identifier: GPL-3.0-or-later
//
// What the user wants left out of an input, and how its documents are named.
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
  // Patterns as rsync and .gitignore have them. They are compared with the path
  // in the input, before it is renamed:
  //   *  any characters but /     **  any characters
  //   ?  one character but /      [a-z], [!a-z]  one of them, never /
  //   \  takes the next character as it is
  // A pattern that begins with / must match from the start of the path, any
  // other from the start of any part of it ("parts" lie between slashes). It
  // must match up to the end of a part, and what is below that is left out with
  // it. A pattern that ends in / matches directories only.
  std::vector<std::string> exclude_globs = {};
  // Taken away from ids that begin with it, byte for byte; others stay.
  std::string strip_prefix = {};
  // Put in front of all ids, after that.
  std::string prefix = {};
};

// Immutable, thread-safe.
class IdRules {
 public:
  // Errors: InvalidArgument  a pattern that is empty or malformed.
  static absl::StatusOr<std::shared_ptr<const IdRules>> Create(
      const IdRuleOptions& options);
  ~IdRules();

  // `path` is any bytes; that of a directory ends in "/". Takes time linear in
  // its size.
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
