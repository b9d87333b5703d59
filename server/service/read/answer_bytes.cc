// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/read/answer_bytes.h"

#include <algorithm>
#include <utility>

#include "google/protobuf/io/coded_stream.h"

namespace quire {
namespace {

using google::protobuf::io::CodedOutputStream;

// Bytes before the contents of a field of wire type 2, length-delimited.
class BytesFieldHead {
 public:
  BytesFieldHead(int field_number, uint64_t size_bytes)
      : tag_((static_cast<uint64_t>(field_number) << 3) | 2),
        contents_size_bytes_(size_bytes) {}

  size_t size_bytes() const {
    return CodedOutputStream::VarintSize64(tag_) +
           CodedOutputStream::VarintSize64(contents_size_bytes_);
  }

  // Returns the end of the written bytes.
  uint8_t* Write(uint8_t* to) const {
    to = CodedOutputStream::WriteVarint64ToArray(tag_, to);
    return CodedOutputStream::WriteVarint64ToArray(contents_size_bytes_, to);
  }

 private:
  const uint64_t tag_;
  const uint64_t contents_size_bytes_;
};

void ReleaseBlock(void* block) {
  delete static_cast<BlockPtr*>(block);
}

}  // namespace

uint8_t* AnswerBytes::Extend(size_t size_bytes) {
  const size_t before = copied_.size();
  copied_.resize(before + size_bytes);
  size_bytes_ += size_bytes;
  return copied_.data() + before;
}

void AnswerBytes::AppendFields(const google::protobuf::MessageLite& message) {
  message.SerializeWithCachedSizesToArray(Extend(message.ByteSizeLong()));
}

void AnswerBytes::AppendBytesField(int field_number,
                                   const std::vector<BlockPiece>& pieces) {
  const BytesFieldHead head(field_number, SizeBytesOf(pieces));
  head.Write(Extend(head.size_bytes()));
  AppendPieces(pieces);
}

void AnswerBytes::AppendField(const SerialisedField& field) {
  const BytesFieldHead head(field.field_number, field.contents.size());
  uint8_t* to = Extend(head.size_bytes() + field.contents.size());
  std::copy(field.contents.begin(), field.contents.end(), head.Write(to));
}

void AnswerBytes::AppendNested(int field_number,
                               const google::protobuf::MessageLite& head,
                               const SerialisedField& more,
                               int bytes_field_number,
                               const std::vector<BlockPiece>& pieces) {
  const size_t more_size =
      more.contents.empty()
          ? 0
          : BytesFieldHead(more.field_number, more.contents.size())
                    .size_bytes() +
                more.contents.size();
  const uint64_t text_size = SizeBytesOf(pieces);
  const BytesFieldHead text_head(bytes_field_number, text_size);
  const size_t text_head_size = text_size > 0 ? text_head.size_bytes() : 0;
  const size_t fields_size = head.ByteSizeLong();
  const BytesFieldHead outer(
      field_number, fields_size + more_size + text_head_size + text_size);
  uint8_t* to = Extend(outer.size_bytes() + fields_size);
  head.SerializeWithCachedSizesToArray(outer.Write(to));
  if (more_size > 0) {
    AppendField(more);
  }
  if (text_size > 0) {
    text_head.Write(Extend(text_head_size));
  }
  AppendPieces(pieces);
}

void AnswerBytes::AppendPieces(const std::vector<BlockPiece>& pieces) {
  for (const BlockPiece& piece : pieces) {
    if (piece.size_bytes <= kCopiedPieceSizeBytesMax) {
      const ByteView bytes = piece.bytes();
      copied_.insert(copied_.end(), bytes.begin(), bytes.end());
    } else {
      references_.push_back({copied_.size(), Refer(piece)});
    }
    size_bytes_ += piece.size_bytes;
  }
}

// Pieces of one block in a row, as in batches, share its slice: each other one
// takes an allocation and a count of the block's owners.
grpc::Slice AnswerBytes::Refer(const BlockPiece& piece) {
  if (piece.block.get() != last_block_) {
    const ByteView bytes = piece.block->bytes();
    // gRPC never writes to the slice, but takes a mutable pointer.
    last_block_slice_ =
        grpc::Slice(const_cast<uint8_t*>(bytes.data()), bytes.size(),
                    ReleaseBlock, new BlockPtr(piece.block));
    last_block_ = piece.block.get();
  }
  return last_block_slice_.sub(piece.offset, piece.offset + piece.size_bytes);
}

grpc::ByteBuffer AnswerBytes::Take() {
  absl::InlinedVector<grpc::Slice, 4> slices;
  slices.reserve(2 * references_.size() + 1);
  const grpc::Slice copied(copied_.data(), copied_.size());
  size_t used_bytes = 0;
  for (Reference& reference : references_) {
    if (reference.copied_size_bytes > used_bytes) {
      slices.push_back(copied.sub(used_bytes, reference.copied_size_bytes));
      used_bytes = reference.copied_size_bytes;
    }
    slices.push_back(std::move(reference.slice));
  }
  if (used_bytes < copied_.size() || slices.empty()) {
    slices.push_back(copied.sub(used_bytes, copied_.size()));
  }
  grpc::ByteBuffer buffer(slices.data(), slices.size());
  copied_.clear();
  references_.clear();
  last_block_ = nullptr;
  last_block_slice_ = grpc::Slice();
  size_bytes_ = 0;
  return buffer;
}

}  // namespace quire
