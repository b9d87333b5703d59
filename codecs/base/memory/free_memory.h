// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_BASE_MEMORY_FREE_MEMORY_H_
#define QUIRE_CODECS_BASE_MEMORY_FREE_MEMORY_H_

namespace quire {

// Empties a string or a vector and frees its memory. Assigning `std::string()`
// or `{}` keeps it: the library copies a short string into the memory that is
// there, and takes `{}` for a list of no elements. Thread-compatible.
template <typename Container>
void FreeMemory(Container& container) {
  Container().swap(container);
}

}  // namespace quire

#endif  // QUIRE_CODECS_BASE_MEMORY_FREE_MEMORY_H_
