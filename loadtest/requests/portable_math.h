// SPDX-License-Identifier: Apache-2.0
//
// Logarithm and exponential that give the same bits on every machine: made of
// operations that IEEE 754 rounds exactly, where those of <cmath> differ in the
// last bit from one C library to another. Relative errors stay below 1e-14.
// Thread-safe.
#ifndef QUIRE_LOADTEST_REQUESTS_PORTABLE_MATH_H_
#define QUIRE_LOADTEST_REQUESTS_PORTABLE_MATH_H_

namespace quire {

// REQUIRES: x > 0, and normal.
double PortableLog(double x);

// REQUIRES: |x| < 700.
double PortableExp(double x);

// (e^x - 1) / x, without loss near 0. REQUIRES: |x| < 700.
double PortableExpm1Ratio(double x);

// log(1 + x) / x, without loss near 0. REQUIRES: x > -1.
double PortableLog1pRatio(double x);

}  // namespace quire

#endif  // QUIRE_LOADTEST_REQUESTS_PORTABLE_MATH_H_
