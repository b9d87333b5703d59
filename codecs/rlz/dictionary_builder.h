// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_
#define QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

#include "codecs/base/bytes.h"

namespace quire {

// Maximum size of a dictionary, in bytes: offsets in it have 31 bits.
inline constexpr uint64_t kDictionarySizeBytesMax = 0x7FFFFFFF;

// Chooses the dictionary's text from a collection that is far larger than
// memory. The caller feeds the whole collection in order, in pieces of any
// size, once per pass:
//
//   for (int pass = 0; pass < builder->pass_count(); ++pass) {
//     for each piece of the whole text { builder->Add(piece); }
//     builder->FinishPass();
//   }
//   builder->Take();
//
// The choice depends on the text only, not on how it is divided into pieces.
// Thread-compatible.
class DictionaryBuilder {
 public:
  virtual ~DictionaryBuilder() = default;

  // Number of times that the whole text must be fed; constant.
  virtual int pass_count() const = 0;

  // Peak memory of the builder in bytes, dictionary included.
  virtual size_t MemoryBytesMax() const = 0;

  // Adds the next text of the current pass. Does not keep `piece`.
  // REQUIRES: fewer than pass_count() passes are finished.
  // Errors: FailedPrecondition  more text than was announced, or than in the
  //                             earlier passes: the input changed meanwhile.
  virtual absl::Status Add(ByteView piece) = 0;

  // Ends a pass.
  // Errors: FailedPrecondition  less text than was announced, or than before.
  virtual absl::Status FinishPass() = 0;

  // Returns the dictionary; the builder is unusable afterwards.
  // REQUIRES: all passes are finished.
  virtual std::string Take() = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_
