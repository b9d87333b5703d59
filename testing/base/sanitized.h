// SPDX-License-Identifier: Apache-2.0
//
// Effort of tests in builds with sanitizers; for tests only.
#ifndef QUIRE_TESTING_BASE_SANITIZED_H_
#define QUIRE_TESTING_BASE_SANITIZED_H_

namespace quire {

inline constexpr bool kIsSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#elif !defined(__has_feature)
    false;
#elif __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    true;
#else
    false;
#endif

// Number of rounds of a test with `count` rounds of random input, or steps of
// equal kind: an eighth under sanitizers, in which a round takes up to thirty
// times as long. They find misuse of memory and races, which a few rounds show;
// the optimised build checks results in all rounds.
template <typename Count>
constexpr Count Fewer(Count count) {
  return kIsSanitized ? (count + 7) / 8 : count;
}

}  // namespace quire

#endif  // QUIRE_TESTING_BASE_SANITIZED_H_
