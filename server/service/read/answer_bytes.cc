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

grpc::Slice Refer(const BlockPiece& piece) {
  auto* owner = new BlockPtr(piece.block);
  const ByteView bytes = piece.bytes();
  // gRPC never writes to the slice, but takes a mutable pointer.
  return grpc::Slice(const_cast<uint8_t*>(bytes.data()), bytes.size(),
                     ReleaseBlock, owner);
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
      FlushCopied();
      slices_.push_back(Refer(piece));
    }
    size_bytes_ += piece.size_bytes;
  }
}

void AnswerBytes::FlushCopied() {
  if (!copied_.empty()) {
    slices_.emplace_back(copied_.data(), copied_.size());
    copied_.clear();
  }
}

grpc::ByteBuffer AnswerBytes::Take() {
  FlushCopied();
  if (slices_.empty()) {
    slices_.emplace_back(std::string());
  }
  grpc::ByteBuffer buffer(slices_.data(), slices_.size());
  slices_.clear();
  size_bytes_ = 0;
  return buffer;
}

}  // namespace quire
