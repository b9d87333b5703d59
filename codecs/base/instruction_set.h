// SPDX-License-Identifier: Apache-2.0
//
// Code compiled twice, for any x86-64 and for one with BMI2, whose variable
// shifts take one instruction instead of three. Both give the same results.
#ifndef QUIRE_CODECS_BASE_INSTRUCTION_SET_H_
#define QUIRE_CODECS_BASE_INSTRUCTION_SET_H_

#if defined(__x86_64__)
#define QUIRE_HAS_CLONES 1
// Marks a function that only inlines others: they are compiled with it.
#define QUIRE_BMI2 __attribute__((target("bmi,bmi2")))
#endif

namespace quire {

// True if this machine can run functions marked QUIRE_BMI2.
inline bool HasBmi2() {
#if defined(QUIRE_HAS_CLONES)
  return __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0;
#else
  return false;
#endif
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_INSTRUCTION_SET_H_
