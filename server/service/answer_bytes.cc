// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/answer_bytes.h"

#include <utility>

#include "codecs/base/varint.h"

namespace quire {
namespace {

// Up to here a copy costs no more than a slice with its reference count does;
// the system copies once more in any case.
constexpr uint32_t kCopySizeBytesMax = 4 << 10;

// Wire type 2: length-delimited.
uint64_t LengthDelimitedTag(int field_number) {
  return (static_cast<uint64_t>(field_number) << 3) | 2;
}

uint64_t SizeOf(const std::vector<BlockPiece>& pieces) {
  uint64_t size_bytes = 0;
  for (const BlockPiece& piece : pieces) {
    size_bytes += piece.size_bytes;
  }
  return size_bytes;
}

void ReleaseBlock(void* block) {
  delete static_cast<BlockStore::BlockPtr*>(block);
}

grpc::Slice Refer(const BlockPiece& piece) {
  auto* owner = new BlockStore::BlockPtr(piece.block);
  const ByteView bytes = piece.bytes();
  // gRPC never writes to a slice it is given, but takes it as mutable.
  return grpc::Slice(const_cast<uint8_t*>(bytes.data()), bytes.size(),
                     ReleaseBlock, owner);
}

}  // namespace

void AnswerBytes::AppendFields(const google::protobuf::MessageLite& message) {
  const size_t before = copied_.size();
  message.AppendToString(&copied_);
  size_bytes_ += copied_.size() - before;
}

void AnswerBytes::AppendBytesField(int field_number,
                                   const std::vector<BlockPiece>& pieces) {
  const size_t before = copied_.size();
  AppendVarint(LengthDelimitedTag(field_number), copied_);
  AppendVarint(SizeOf(pieces), copied_);
  size_bytes_ += copied_.size() - before;
  AppendPieces(pieces);
}

void AnswerBytes::AppendNested(int field_number,
                               const google::protobuf::MessageLite& head,
                               int bytes_field_number,
                               const std::vector<BlockPiece>& pieces) {
  const uint64_t text_size = SizeOf(pieces);
  std::string inner = head.SerializeAsString();
  if (text_size > 0) {
    AppendVarint(LengthDelimitedTag(bytes_field_number), inner);
    AppendVarint(text_size, inner);
  }
  const size_t before = copied_.size();
  AppendVarint(LengthDelimitedTag(field_number), copied_);
  AppendVarint(inner.size() + text_size, copied_);
  copied_ += inner;
  size_bytes_ += copied_.size() - before;
  AppendPieces(pieces);
}

void AnswerBytes::AppendPieces(const std::vector<BlockPiece>& pieces) {
  for (const BlockPiece& piece : pieces) {
    if (piece.size_bytes <= kCopySizeBytesMax) {
      const absl::string_view text = AsText(piece.bytes());
      copied_.append(text.data(), text.size());
    } else {
      FlushCopied();
      slices_.push_back(Refer(piece));
    }
    size_bytes_ += piece.size_bytes;
  }
}

void AnswerBytes::FlushCopied() {
  if (!copied_.empty()) {
    slices_.emplace_back(std::move(copied_));
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
