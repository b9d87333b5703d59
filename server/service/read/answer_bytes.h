// SPDX-License-Identifier: GPL-3.0-or-later
//
// Serialised answers that refer to decoded blocks instead of copying them.
#ifndef QUIRE_SERVER_SERVICE_READ_ANSWER_BYTES_H_
#define QUIRE_SERVER_SERVICE_READ_ANSWER_BYTES_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

#include "server/service/read/answer.h"

namespace quire {

// Pieces of at most so many bytes are copied into an answer: up to here that
// costs at most a slice with its reference count does, and the system
// copies once more in any case.
inline constexpr uint32_t kCopiedPieceSizeBytesMax = 4 << 10;

// A field of wire type 2, length-delimited. Borrows its contents.
struct SerialisedField {
  int field_number = 0;
  absl::string_view contents = {};
};

// Builds the serialised form of one protobuf message piece by piece. Protobuf
// lets the fields of a message come in any order, so the small fields are
// serialised by the library and the text follows as one more field.
// Thread-compatible.
class AnswerBytes {
 public:
  // All set fields of `message`, serialised.
  void AppendFields(const google::protobuf::MessageLite& message);

  // A `bytes` field holding all pieces in a row. Short pieces are copied; long
  // ones are referred to, and their blocks live until gRPC has sent them.
  void AppendBytesField(int field_number,
                        const std::vector<BlockPiece>& pieces);

  // A field of bytes, or of a message that is serialised already. Copied.
  void AppendField(const SerialisedField& field);

  // A field that is a message: `head`'s fields, `more` if it has contents, and
  // the bytes field `bytes_field_number` with all pieces.
  void AppendNested(int field_number, const google::protobuf::MessageLite& head,
                    const SerialisedField& more, int bytes_field_number,
                    const std::vector<BlockPiece>& pieces);

  uint64_t size_bytes() const { return size_bytes_; }

  // The whole message. The builder is empty afterwards.
  grpc::ByteBuffer Take();

 private:
  // Room for more copied bytes, to be written at once.
  uint8_t* Extend(size_t size_bytes);
  void AppendPieces(const std::vector<BlockPiece>& pieces);
  void FlushCopied();

  // Bytes that are copied anyway gather here, to become one slice.
  absl::InlinedVector<uint8_t, 128> copied_;
  absl::InlinedVector<grpc::Slice, 4> slices_;
  uint64_t size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_BYTES_H_
