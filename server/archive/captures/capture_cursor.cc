// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/archive/captures/capture_cursor.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/archive/format/archive_format.h"

namespace quire {

void CaptureCache::Trim() {
  if (size_bytes_ > kSizeBytesMax) {
    nodes_.clear();
    leaves_.clear();
    size_bytes_ = 0;
  }
}

absl::StatusOr<std::shared_ptr<const CaptureNode>> CaptureCursor::NodeOf(
    const ContainerPart& part) {
  std::shared_ptr<const CaptureNode>& cached =
      cache_->nodes_[{key_, part.offset}];
  if (cached == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const std::optional<PartBytes> bytes,
                           (*load_)(part));
    if (!bytes.has_value()) {
      return nullptr;
    }
    QUIRE_ASSIGN_OR_RETURN(
        CaptureNode node,
        CaptureNode::Parse(bytes->bytes, captures_->data_size_bytes));
    cached = std::make_shared<const CaptureNode>(std::move(node));
    cache_->size_bytes_ += cached->MemoryBytes();
  }
  return cached;
}

absl::StatusOr<std::shared_ptr<const CaptureCache::Leaf>> CaptureCursor::LeafOf(
    const ContainerPart& part) {
  std::shared_ptr<const CaptureCache::Leaf>& cached =
      cache_->leaves_[{key_, part.offset}];
  if (cached == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(std::optional<PartBytes> bytes, (*load_)(part));
    if (!bytes.has_value()) {
      return nullptr;
    }
    QUIRE_ASSIGN_OR_RETURN(
        CaptureLeaf leaf,
        CaptureLeaf::Parse(bytes->bytes, captures_->document_count));
    cached = std::make_shared<const CaptureCache::Leaf>(
        CaptureCache::Leaf{*std::move(bytes), std::move(leaf)});
    cache_->size_bytes_ +=
        cached->bytes.bytes.size() + cached->leaf.MemoryBytes();
  }
  return cached;
}

absl::StatusOr<bool> CaptureCursor::Descend(
    std::vector<Step> path, ContainerPart part, Chooser choose_child,
    absl::FunctionRef<uint32_t(const CaptureLeaf& leaf)> choose_capture) {
  while (path.size() < captures_->level_count) {
    cache_->Trim();
    QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const CaptureNode> node,
                           NodeOf(part));
    if (node == nullptr) {
      return false;
    }
    const uint32_t index = choose_child(*node);
    part = (*node)[index].part;
    path.push_back({.node = std::move(node), .index = index});
  }
  cache_->Trim();
  QUIRE_ASSIGN_OR_RETURN(std::shared_ptr<const CaptureCache::Leaf> leaf,
                         LeafOf(part));
  if (leaf == nullptr) {
    return false;
  }
  index_ = choose_capture(leaf->leaf);
  path_ = std::move(path);
  leaf_ = std::move(leaf);
  return true;
}

absl::StatusOr<bool> CaptureCursor::Seek(const SegmentCapturePlace& place) {
  const CaptureCursor before = *this;
  QUIRE_ASSIGN_OR_RETURN(
      const bool is_there,
      Descend(
          {}, captures_->root,
          [&](const CaptureNode& node) { return node.ChildOf(place); },
          [&](const CaptureLeaf& leaf) { return leaf.LowerBound(place); }));
  if (!is_there || !at_end()) {
    return is_there;
  }
  // It is the first of the next leaf.
  bool found = false;
  const absl::StatusOr<bool> is_moved = MoveLeaf(/*forward=*/true, found);
  if (!is_moved.ok() || !*is_moved) {
    *this = before;
  }
  return is_moved;
}

absl::StatusOr<bool> CaptureCursor::MoveLeaf(bool forward, bool& found) {
  std::vector<Step> path = path_;
  while (!path.empty()) {
    Step& step = path.back();
    const bool is_last =
        forward ? step.index + 1 == step.node->count() : step.index == 0;
    if (!is_last) {
      break;
    }
    path.pop_back();
  }
  found = !path.empty();
  if (!found) {
    return true;
  }
  Step& step = path.back();
  step.index = forward ? step.index + 1 : step.index - 1;
  const ContainerPart part = (*step.node)[step.index].part;
  return Descend(
      std::move(path), part,
      [forward](const CaptureNode& node) {
        return forward ? 0 : node.count() - 1;
      },
      [forward](const CaptureLeaf& leaf) {
        return forward ? 0 : leaf.count() - 1;
      });
}

absl::StatusOr<bool> CaptureCursor::Next() {
  if (index_ + 1 < leaf_->leaf.count()) {
    ++index_;
    return true;
  }
  bool found = false;
  QUIRE_ASSIGN_OR_RETURN(const bool is_moved,
                         MoveLeaf(/*forward=*/true, found));
  if (is_moved && !found) {
    index_ = leaf_->leaf.count();
  }
  return is_moved;
}

absl::StatusOr<bool> CaptureCursor::Previous(bool& is_first) {
  is_first = false;
  if (index_ > 0) {
    --index_;
    return true;
  }
  bool found = false;
  QUIRE_ASSIGN_OR_RETURN(const bool is_moved,
                         MoveLeaf(/*forward=*/false, found));
  is_first = is_moved && !found;
  return is_moved;
}

absl::Status VisitCaptures(
    const SegmentCaptures& captures, const PartLoader& load,
    absl::FunctionRef<absl::Status(const SegmentCapture&)> visit) {
  if (captures.capture_count == 0) {
    return absl::OkStatus();
  }
  CaptureCache cache;
  CaptureCursor cursor(captures, 0, cache, load);
  QUIRE_RETURN_IF_ERROR(cursor.Seek({}).status());
  uint64_t count = 0;
  std::string last_key;
  SegmentCapturePlace last;
  while (!cursor.at_end() && count < captures.capture_count) {
    const SegmentCapture capture = cursor.Get();
    if (count > 0 && !(last < capture.place())) {
      return Damaged(
          absl::StrCat("capture ", count, " is not after the one before"));
    }
    QUIRE_RETURN_IF_ERROR(visit(capture));
    last_key = std::string(capture.key);
    last = capture.place();
    last.key = last_key;
    ++count;
    QUIRE_RETURN_IF_ERROR(cursor.Next().status());
  }
  return cursor.at_end() && count == captures.capture_count
             ? absl::OkStatus()
             : Damaged(absl::StrCat(
                   "an index has ", count, cursor.at_end() ? "" : " or more",
                   " captures, expected ", captures.capture_count));
}

absl::StatusOr<uint64_t> StoredCapturesSizeBytes(
    const SegmentCaptures& captures, const PartLoader& load) {
  if (captures.capture_count == 0) {
    return 0;
  }
  uint64_t size_bytes = 0;
  std::vector<ContainerPart> level = {captures.root};
  for (uint32_t depth = 0;; ++depth) {
    for (const ContainerPart& part : level) {
      size_bytes += part.stored_size_bytes;
    }
    if (depth == captures.level_count) {
      return size_bytes;
    }
    std::vector<ContainerPart> below;
    for (const ContainerPart& part : level) {
      QUIRE_ASSIGN_OR_RETURN(const std::optional<PartBytes> bytes, load(part));
      if (!bytes.has_value()) {
        return absl::InternalError("a node of captures is not at hand");
      }
      QUIRE_ASSIGN_OR_RETURN(
          const CaptureNode node,
          CaptureNode::Parse(bytes->bytes, captures.data_size_bytes));
      for (uint32_t i = 0; i < node.count(); ++i) {
        below.push_back(node[i].part);
      }
      if (below.size() > captures.capture_count) {
        return Damaged(absl::StrCat("an index of ", captures.capture_count,
                                    " captures has more parts than captures"));
      }
    }
    level = std::move(below);
  }
}

}  // namespace quire
