# SPDX-License-Identifier: Apache-2.0
"""The shuffled order: a permutation that is computed, not stored.

Documents 0 to size - 1 are permuted by a Feistel network with cycle walking:

    b = bits of size - 1; r = b // 2 bits on the right, l = b - r bits on the left
    E(x): left, right = x >> r, x mod 2^r
          for i in 0, 2, 4:
              left  = left  xor (mix(right + key[i])     mod 2^l)
              right = right xor (mix(left  + key[i + 1]) mod 2^r)
          return left * 2^r + right
    order[p] = E(p), E(E(p)), ...: the first that is less than size

mix() is the finalizer of splitmix64; key[i] = mix(k + (i + 1) * G) with G =
0x9e3779b97f4a7c15 and k = mix(mix(mix(seed + G) + epoch + G) + size + G), all modulo 2^64.
E permutes 2^b numbers, fewer than 2 * size, so that fewer than two steps are needed on average.

M. Luby, C. Rackoff, "How to construct pseudorandom permutations", 1988; J. Black, P. Rogaway,
"Ciphers with arbitrary finite domains", 2002 (cycle walking).
"""
from __future__ import annotations

from typing import Any, Iterable, List

from ._stored import optional_module

numpy = optional_module("numpy")

ROUNDS = 6
# Below, calls of numpy cost more than they save.
_VECTOR_MIN = 16
_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def mix(number: int) -> int:
    """The finalizer of splitmix64, of `number` modulo 2^64."""
    number &= _MASK
    number = (number ^ number >> 30) * _FACTORS[0] & _MASK
    number = (number ^ number >> 27) * _FACTORS[1] & _MASK
    return number ^ number >> 31


class Order:
    """A permutation of range(size): order[position] is an ordinal. Thread-safe.

    Depends on nothing but the arguments. Takes no memory that grows with `size`.
    """

    def __init__(self, size: int, seed: int = 0, epoch: int = 0) -> None:
        for name, number in (("size", size), ("seed", seed), ("epoch", epoch)):
            if isinstance(number, bool) or not 0 <= number < 2**63:
                raise ValueError(f"{name} must be 0 to 2^63 - 1, got {number}")
        self._size = size
        bits = max(0, size - 1).bit_length()
        self._right_bits = bits // 2
        self._right_mask = (1 << self._right_bits) - 1
        self._left_mask = (1 << bits - self._right_bits) - 1
        key = mix(mix(mix(seed + _GOLDEN) + epoch + _GOLDEN) + size + _GOLDEN)
        self._keys = [mix(key + (number + 1) * _GOLDEN) for number in range(ROUNDS)]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        """The ordinal at a position."""
        if not 0 <= position < self._size:
            raise IndexError(f"position {position} is not in 0 to {self._size - 1}")
        number = self._step(position)
        while number >= self._size:
            number = self._step(number)
        return number

    def ordinals(self, positions: Iterable[int]) -> List[int]:
        """Those at the positions. Many times as fast as one by one, if numpy is installed.

        REQUIRES: 0 <= position < size.
        """
        wanted = list(positions)
        if numpy is None or len(wanted) < _VECTOR_MIN:
            return [self[position] for position in wanted]
        numbers = self._vector_step(numpy.array(wanted, numpy.uint64))
        while (outside := numpy.flatnonzero(numbers >= numpy.uint64(self._size))).size:
            numbers[outside] = self._vector_step(numbers[outside])
        found: List[int] = numbers.tolist()
        return found

    def _step(self, number: int) -> int:
        left, right = number >> self._right_bits, number & self._right_mask
        for first in range(0, ROUNDS, 2):
            left ^= mix(right + self._keys[first]) & self._left_mask
            right ^= mix(left + self._keys[first + 1]) & self._right_mask
        return left << self._right_bits | right

    def _vector_step(self, numbers: Any) -> Any:
        shift = numpy.uint64(self._right_bits)
        left, right = numbers >> shift, numbers & numpy.uint64(self._right_mask)
        for first in range(0, ROUNDS, 2):
            left ^= _vector_mix(right + numpy.uint64(self._keys[first])) \
                & numpy.uint64(self._left_mask)
            right ^= _vector_mix(left + numpy.uint64(self._keys[first + 1])) \
                & numpy.uint64(self._right_mask)
        return left << shift | right


def _vector_mix(numbers: Any) -> Any:
    """mix() of each, in place."""
    for shift, factor in ((30, _FACTORS[0]), (27, _FACTORS[1])):
        numbers ^= numbers >> numpy.uint64(shift)
        numbers *= numpy.uint64(factor)
    numbers ^= numbers >> numpy.uint64(31)
    return numbers
