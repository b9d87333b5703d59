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

// Pieces up to this size are copied into an answer. The copy costs at most as
// much as a slice with its reference count, and the system copies again in any
// case.
inline constexpr uint32_t kCopiedPieceSizeBytesMax = 4 << 10;

// A field of wire type 2, length-delimited. Borrows its contents.
struct SerialisedField {
  int field_number = 0;
  absl::string_view contents = {};
};

// Serialises one protobuf message piece by piece. The fields of a message may
// be in any order: the library serialises the small fields, and the text
// follows as one more field. Thread-compatible.
class AnswerBytes {
 public:
  void AppendFields(const google::protobuf::MessageLite& message);

  // Appends a `bytes` field with all pieces in order. Short pieces are copied.
  // Long ones are referenced, and their blocks live until gRPC has sent them.
  void AppendBytesField(int field_number,
                        const std::vector<BlockPiece>& pieces);

  // Appends a copy of a field of bytes, or of a serialised message.
  void AppendField(const SerialisedField& field);

  // Appends a field that is a message: the fields of `head`, `more` unless it
  // is empty, and the bytes field `bytes_field_number` with all pieces.
  void AppendNested(int field_number, const google::protobuf::MessageLite& head,
                    const SerialisedField& more, int bytes_field_number,
                    const std::vector<BlockPiece>& pieces);

  uint64_t size_bytes() const { return size_bytes_; }

  // Returns the whole message. The builder is empty afterwards.
  grpc::ByteBuffer Take();

 private:
  // Returns space for more copied bytes, which the caller writes at once.
  uint8_t* Extend(size_t size_bytes);
  void AppendPieces(const std::vector<BlockPiece>& pieces);
  // Returns a slice that keeps the piece's block alive.
  grpc::Slice Refer(const BlockPiece& piece);

  // A slice, and the copied bytes of the message before it.
  struct Reference {
    size_t copied_size_bytes = 0;
    grpc::Slice slice;
  };

  // Copied bytes of the whole message: one allocation in gRPC.
  absl::InlinedVector<uint8_t, 128> copied_;
  absl::InlinedVector<Reference, 4> references_;
  // Block of the last reference, and a slice of all its bytes.
  const DecodedBlock* last_block_ = nullptr;
  grpc::Slice last_block_slice_;
  uint64_t size_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_READ_ANSWER_BYTES_H_
