// SPDX-License-Identifier: GPL-3.0-or-later
//
// Documents of one archive that clients must not get: `quired serve
// --withdrawn`.
#ifndef QUIRE_SERVER_SERVICE_CATALOG_WITHDRAWN_DOCUMENTS_H_
#define QUIRE_SERVER_SERVICE_CATALOG_WITHDRAWN_DOCUMENTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#include "codecs/base/mutex.h"
#include "codecs/filter/filter.h"
#include "server/archive/archive.h"
#include "server/archive/archive_part.h"
#include "server/archive/field_reader.h"
#include "server/archive/kept_references.h"

namespace quire {

// Answer to a request for a withdrawn document.
enum class Withdrawal {
  // As if it were not there.
  kExclude,
  // PERMISSION_DENIED.
  kBlock,
};

// Withdraws some documents of an archive.
struct WithdrawalRule {
  enum class Kind {
    // All documents of the id `value`.
    kId,
    // All documents whose id starts with `value`.
    kPrefix,
    // The documents that `filter` matches. Others of their ids stay.
    kWhere,
  };

  Kind kind = Kind::kId;
  // Of kWhere the text of the filter.
  std::string value = {};
  Withdrawal action = Withdrawal::kExclude;
  // Set for kWhere.
  std::shared_ptr<const Filter> filter = nullptr;
  // Line of the rules, for errors. 0: none.
  uint64_t line_number = 0;
};

// Returns rules for the ids of the documents of `before` that were removed for
// good from `after`.
std::vector<WithdrawalRule> RulesForRemoved(const Archive& before,
                                            const Archive& after);

// Services for matching rules with the documents of an archive.
struct WithdrawalMatching {
  // Reads fields; must not return parts that are not at hand. Empty:
  // BlockingPartLoader().
  ArchivePartLoader load_fields = {};
  // Called at least once for each 4096 documents that a filter examines. An
  // error ends the matching. May be empty.
  std::function<absl::Status()> check = {};
  // Reserves memory before it is taken, in bytes, as long as the result lives.
  // May be empty. Errors: FailedPrecondition  there is none.
  std::function<absl::StatusOr<std::shared_ptr<void>>(uint64_t bytes)> reserve =
      {};
};

// Part of an answer's text, in bytes from its start.
struct AnswerRange {
  uint64_t offset = 0;
  uint64_t size_bytes = 0;

  bool operator==(const AnswerRange&) const = default;
};

// Rules and the documents that they match. Of several rules that match a
// document the first decides. Rules for ids and prefixes withdraw ids: all of
// their documents. Other rules select documents, so that an id can have
// withdrawn documents and others. Holds the rules for ids, 40 bytes for each
// run of documents with neighbouring ordinals, and the first and the last id of
// each run of withdrawn ids that are neighbours in their order. Immutable;
// thread-safe.
class WithdrawnDocuments {
 public:
  static constexpr size_t kRunsMax = size_t{1} << 20;
  // A node of a map, with its allocation.
  static constexpr uint64_t kRuleOverheadBytes = 112;

  // Null if no document matches. Searches the ids, evaluates filters over all
  // documents (VisitMatches()), and fills two bitmaps of all documents. With a
  // filter it looks for records that refer to withdrawn ones, too
  // (FindKeptReferences()), and blocks on I/O.
  // Memory is reserved while it runs.
  // Errors: FailedPrecondition  an index of ids is damaged: documents cannot be
  //                             found; or there are more than kRunsMax runs.
  //         NotFound, InvalidArgument  a filter does not fit the fields of the
  //                                    archive.
  //         DataLoss            fields are damaged.
  //         Those of `matching`. All name the line of the rule.
  static absl::StatusOr<std::shared_ptr<const WithdrawnDocuments>> Resolve(
      const Archive& archive, const std::vector<WithdrawalRule>& rules,
      const WithdrawalMatching& matching = {});

  // Blocks all documents of an archive: for one in which those to be withdrawn
  // cannot be found. Null if it has none.
  static std::shared_ptr<const WithdrawnDocuments> All(const Archive& archive);

  // Returns the action of the first rule for ids or prefixes that matches the
  // id, which need not be in the archive.
  std::optional<Withdrawal> Match(absl::string_view id) const;

  // True for All().
  bool is_substitute() const { return is_substitute_; }

  // True if rules selected documents whose ids may have others that stay.
  bool has_selected() const { return has_selected_; }

  // Returns the action for a document of the archive.
  std::optional<Withdrawal> Find(DocumentOrdinal ordinal) const;

  // Returns the first ordinal from `ordinal` on whose document is not
  // withdrawn. It may be past the last document.
  uint64_t NextListed(uint64_t ordinal) const;

  // Returns the parts of a range that are text of withdrawn documents, in order
  // and not adjacent.
  std::vector<AnswerRange> ZerosIn(LogicalRange range) const;

  // True if a withdrawn document is in the range. One without text is in all
  // ranges that it touches. False for an empty range.
  bool HasDocumentIn(LogicalRange range) const;

  // Returns the position in a listing by id after a withdrawn id, and after
  // those that follow it as long as they are withdrawn. The next document of
  // the present state does not have a withdrawn id; one of an earlier state
  // may. REQUIRES: Match(id).
  Archive::IdCursor Pass(absl::string_view id) const;

  // Returns a hash of ZerosIn() of a state of the archive, the same on all
  // servers; 0 if there are none. REQUIRES: `state_size_bytes` is the size of
  // the archive's logical space, or of that of an earlier state.
  uint64_t ZerosHash(uint64_t state_size_bytes) const;

  // Unset if some document whose id starts with `prefix` and that comes after
  // `after`, which may be null, is not withdrawn. Otherwise the position after
  // all of them; or a position among them, if the work reached `work_max`. Adds
  // the entries and searches of Archive::ListingCost to `work`: a few in each
  // segment, if the view is of the present state, and one for each document
  // that a rule selected. REQUIRES: `view` is of the archive passed to
  // Resolve().
  std::optional<Archive::IdCursor> PassPrefix(const ArchiveView& view,
                                              absl::string_view prefix,
                                              const Archive::IdCursor* after,
                                              uint64_t work_max,
                                              uint64_t& work) const;

  // Records that stay and may refer to withdrawn documents, if a rule has a
  // filter.
  const KeptReferences& references() const { return references_; }

  // Number of withdrawn documents.
  uint64_t document_count() const { return document_count_; }

  size_t run_count() const { return runs_.size(); }

  // Upper bound on the memory of a copy of a rule here, in bytes; and of all of
  // this.
  static uint64_t RuleBytes(const WithdrawalRule& rule) {
    return kRuleOverheadBytes + rule.value.size();
  }

  uint64_t memory_bytes() const {
    return rules_bytes_ + runs_.capacity() * sizeof(Run) + id_runs_bytes_ +
           state_zeros_.capacity() * sizeof(StateZeros) + ReferencesBytes();
  }

 private:
  // Withdrawn documents with neighbouring ordinals, and their text.
  struct Run {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t text_begin = 0;
    uint64_t text_end = 0;
    Withdrawal action = Withdrawal::kExclude;
    // The first, and the last, has no text.
    bool begins_empty = false;
    bool ends_empty = false;
  };

  // The action of the first rule for a value, and the rule's index.
  struct Action {
    size_t index = 0;
    Withdrawal action = Withdrawal::kExclude;
  };

  // Withdrawn documents that follow each other in the order of ids.
  struct IdRun {
    // The first id, or the prefix of a rule that all first ids have.
    std::string begin;
    Archive::IdCursor last;
  };

  // Hash of the withdrawn ranges of one state.
  struct StateZeros {
    uint64_t state_size_bytes = 0;
    uint64_t hash = 0;
  };

  uint64_t ReferencesBytes() const;

  explicit WithdrawnDocuments(const std::vector<WithdrawalRule>& rules);

  // Returns the shortest prefix of a rule that `id` starts with.
  std::optional<absl::string_view> CoveringPrefix(absl::string_view id) const;
  // Returns the last position that a rule for the id covers: its shortest
  // prefix, or else the id itself.
  Archive::IdCursor LastOfRule(absl::string_view id) const;
  // Sets `id_runs_` from the rules that match documents.
  void FindIdRuns(const Archive& archive,
                  std::vector<absl::string_view> matched);
  void HashZeros(const ArchiveInfo& info);

  class Marks;
  // Marks the documents that the rules match. Adds the values of rules for ids
  // that match one to `matched`.
  absl::Status MarkDocuments(const Archive& archive,
                             const std::vector<WithdrawalRule>& rules,
                             const WithdrawalMatching& matching, Marks& marks,
                             std::vector<absl::string_view>& matched);
  // Sets `runs_`. Errors: FailedPrecondition  too many, or no memory.
  absl::Status FindRuns(const Archive& archive, const Marks& marks,
                        const WithdrawalMatching& matching);
  // Errors: as FindKeptReferences(); FailedPrecondition  no memory.
  absl::StatusOr<KeptReferences> FindReferences(
      const Archive& archive, const WithdrawalMatching& matching) const;

  absl::flat_hash_map<std::string, Action> ids_;
  std::map<std::string, Action, std::less<>> prefixes_;
  // Sizes of the prefixes, ascending, each once.
  std::vector<size_t> prefix_sizes_;
  std::vector<Run> runs_;
  std::vector<IdRun> id_runs_;
  uint64_t id_runs_bytes_ = 0;
  // By size, ascending.
  std::vector<StateZeros> state_zeros_;
  uint64_t document_count_ = 0;
  uint64_t rules_bytes_ = 0;
  KeptReferences references_;
  bool has_selected_ = false;
  bool is_substitute_ = false;
};

// The withdrawn documents of an archive at one moment.
struct WithdrawalSnapshot {
  // Null if there are none.
  std::shared_ptr<const WithdrawnDocuments> documents = nullptr;
  // Number of changes before that moment.
  uint64_t generation = 0;

  bool has_documents() const { return documents != nullptr; }
};

// The withdrawn documents in force for a served archive. Thread-safe; costs two
// loads while there are none.
class WithdrawalInForce {
 public:
  WithdrawalSnapshot Get() const ABSL_LOCKS_EXCLUDED(mutex_) {
    // A change in between is noticed later, by its generation.
    const uint64_t before = generation();
    if (!is_set_.load(std::memory_order_acquire)) {
      return {.generation = before};
    }
    MutexLock lock(&mutex_);
    return {.documents = documents_, .generation = generation()};
  }

  void Set(std::shared_ptr<const WithdrawnDocuments> documents)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    documents_.swap(documents);
    is_set_.store(documents_ != nullptr, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_release);
  }

  // Rules for documents that were removed from newer contents of the archive,
  // while calls still read this one. They apply after those of the operator.
  std::vector<WithdrawalRule> removed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return removed_;
  }

  void SetRemoved(std::vector<WithdrawalRule> removed)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    removed_.swap(removed);
  }

  // Number of calls of Set(). What was found by a snapshot of the same
  // generation need not be looked up again.
  uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> is_set_ = false;
  std::atomic<uint64_t> generation_ = 0;
  mutable Mutex mutex_;
  std::shared_ptr<const WithdrawnDocuments> documents_ ABSL_GUARDED_BY(mutex_);
  std::vector<WithdrawalRule> removed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace quire

#endif  // QUIRE_SERVER_SERVICE_CATALOG_WITHDRAWN_DOCUMENTS_H_
