// SPDX-License-Identifier: Apache-2.0
#ifndef QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_
#define QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "codecs/base/bytes.h"

namespace quire {

// The largest dictionary there can be, in bytes: positions in it are 31 bits.
inline constexpr uint64_t kDictionarySizeBytesMax = 0x7FFFFFFF;

// Chooses the dictionary's text from a collection that is far larger than
// memory. The collection is fed in order, in pieces of any size, as often as
// the builder asks:
//
//   for (int pass = 0; pass < builder->pass_count(); ++pass) {
//     for each piece of the whole text { builder->Add(piece); }
//     builder->FinishPass();
//   }
//   builder->Take();
//
// What is chosen depends on the text only, not on how it is cut into pieces.
// Thread-compatible.
class DictionaryBuilder {
 public:
  virtual ~DictionaryBuilder() = default;

  // How often the whole text must be fed; the same during the builder's life.
  virtual int pass_count() const = 0;

  // The most memory in bytes that the builder ever holds, dictionary included.
  virtual size_t MemoryBytesMax() const = 0;

  // Adds what follows in the current pass. `piece` is not kept.
  // REQUIRES: fewer than pass_count() passes are finished.
  // Errors: FailedPrecondition  more text than was announced, or than in the
  //                             passes before: the input changed meanwhile.
  virtual absl::Status Add(ByteView piece) = 0;

  // Ends a pass.
  // Errors: FailedPrecondition  less text than was announced, or than before.
  virtual absl::Status FinishPass() = 0;

  // Gives the dictionary away; the builder is of no more use.
  // REQUIRES: all passes are finished.
  virtual std::string Take() = 0;
};

}  // namespace quire

#endif  // QUIRE_CODECS_RLZ_DICTIONARY_BUILDER_H_
