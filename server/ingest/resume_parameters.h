// SPDX-License-Identifier: GPL-3.0-or-later
//
// Lines that describe everything that the blocks of a build depend on
// (ResumeOptions::parameters): an unfinished build with other lines is not
// resumed.
#ifndef QUIRE_SERVER_INGEST_RESUME_PARAMETERS_H_
#define QUIRE_SERVER_INGEST_RESUME_PARAMETERS_H_

#include <cstdint>
#include <string>

#include "codecs/base/checksum.h"
#include "server/ingest/build_options.h"
#include "server/ingest/sources/source.h"

namespace quire {

// Describes the options, except the inputs; each line ends with a newline.
std::string EncodingParameters(const BuildOptions& options);

// Describes an input by its documents' ids, attributes and text. Times of files
// prove nothing: a copy can have those of another text. Thread-compatible.
class SourceDigest {
 public:
  explicit SourceDigest(const Source& source) : name_(source.name()) {}

  // Adds the next document, of `size_bytes`, with the checksum of its text.
  void Add(const SourceDocument& document, uint64_t size_bytes,
           uint64_t checksum);

  // Returns a line that begins with the input's name.
  std::string Line() const;

 private:
  void AddNumber(int64_t number);
  void AddText(const std::string& text);

  std::string name_;
  uint64_t document_count_ = 0;
  uint64_t size_bytes_ = 0;
  Checksummer64 checksum_;
};

}  // namespace quire

#endif  // QUIRE_SERVER_INGEST_RESUME_PARAMETERS_H_
