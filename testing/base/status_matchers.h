// SPDX-License-Identifier: Apache-2.0
//
// GoogleTest matchers for absl::Status and absl::StatusOr; for tests only. On
// failure all print the status with its message:
//
//   QUIRE_EXPECT_OK(writer.Finish());
//   QUIRE_ASSERT_OK_AND_ASSIGN(const Manifest manifest, ParseManifest(file));
//   EXPECT_THAT(ParseManifest(""), HasCode(absl::StatusCode::kDataLoss));
//   EXPECT_THAT(ParseManifest(""), FailsWith(absl::StatusCode::kDataLoss,
//                                            HasSubstr("0 bytes long")));
//
// Debian's abseil has none of its own.
#ifndef QUIRE_TESTING_BASE_STATUS_MATCHERS_H_
#define QUIRE_TESTING_BASE_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace quire {

// Returns the status of either, borrowed: one matcher then accepts both.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}

template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& value) {
  return value.status();
}

// Matches success, whatever the value.
MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// Matches a status with this absl::StatusCode and any message. For messages
// that are not part of the contract.
MATCHER_P(HasCode, code,
          std::string("has code ") + absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code;
}

// Matches a status with this code whose message satisfies `message`, a string
// or a matcher of strings.
MATCHER_P2(FailsWith, code, message,
           std::string("fails with ") + absl::StatusCodeToString(code)) {
  *result_listener << StatusOf(arg).ToString();
  return StatusOf(arg).code() == code &&
         ::testing::ExplainMatchResult(
             message, std::string(StatusOf(arg).message()), result_listener);
}

}  // namespace quire

// Moves the value of a StatusOr into `target`, which may be a declaration, or
// fails the test fatally: for functions that return nothing, like ASSERT_*.
// Several statements, so not for an `if` without braces.
#define QUIRE_ASSERT_OK_AND_ASSIGN(target, expression) \
  QUIRE_ASSERT_OK_AND_ASSIGN_IMPL_(                    \
      QUIRE_MATCHER_CONCAT_(quire_value_, __LINE__), target, expression)
#define QUIRE_ASSERT_OK_AND_ASSIGN_IMPL_(holder, target, expression) \
  auto holder = (expression);                                        \
  ASSERT_TRUE(holder.ok()) << holder.status();                       \
  target = std::move(holder).value()
#define QUIRE_MATCHER_CONCAT_INNER_(a, b) a##b
#define QUIRE_MATCHER_CONCAT_(a, b) QUIRE_MATCHER_CONCAT_INNER_(a, b)

// ASSERT_THAT and EXPECT_THAT of success; the expression is evaluated once.
#define QUIRE_ASSERT_OK(expression) ASSERT_THAT((expression), ::quire::IsOk())
#define QUIRE_EXPECT_OK(expression) EXPECT_THAT((expression), ::quire::IsOk())

#endif  // QUIRE_TESTING_BASE_STATUS_MATCHERS_H_
