// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares withdrawn documents of random archives and rules with a search
// through all of them.
#include "server/service/catalog/withdrawn_documents.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "testing/archive/archive_testing.h"
#include "testing/base/status_matchers.h"
#include "testing/base/test_level.h"

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ArchiveWriterOptions Options() {
  ArchiveWriterOptions options;
  options.codec = ParseCodecSpec("copy").value();
  options.block_size_bytes = 4096;
  return options;
}

WithdrawalRule Where(const std::string& filter, Withdrawal action) {
  return {
      .kind = WithdrawalRule::Kind::kWhere,
      .value = filter,
      .action = action,
      .filter = std::make_shared<const Filter>(Filter::Parse(filter).value())};
}

// REQUIRES: filters name size, then ordinal.
bool IsMatch(const WithdrawalRule& rule, const TestDocument& document,
             uint64_t ordinal) {
  switch (rule.kind) {
    case WithdrawalRule::Kind::kId:
      return document.id == rule.value;
    case WithdrawalRule::Kind::kPrefix:
      return absl::StartsWith(document.id, rule.value);
    case WithdrawalRule::Kind::kWhere: {
      const std::vector<FieldView> values = {
          static_cast<int64_t>(document.text.size()),
          static_cast<int64_t>(ordinal)};
      return rule.filter->Matches(values);
    }
  }
  return false;
}

std::optional<Withdrawal> Expected(const std::vector<WithdrawalRule>& rules,
                                   const TestDocument& document,
                                   uint64_t ordinal) {
  for (const WithdrawalRule& rule : rules) {
    if (IsMatch(rule, document, ordinal)) {
      return rule.action;
    }
  }
  return std::nullopt;
}

std::vector<WithdrawalRule> RandomRules(
    const std::vector<TestDocument>& documents, std::mt19937_64& random) {
  std::vector<WithdrawalRule> rules;
  for (uint64_t n = random() % 6; n > 0; --n) {
    const Withdrawal action =
        random() % 2 == 0 ? Withdrawal::kExclude : Withdrawal::kBlock;
    if (random() % 3 == 0) {
      rules.push_back(
          Where(absl::StrCat("size > ", 100 + random() % 150,
                             " or ordinal in (", random() % documents.size(),
                             ", ", random() % documents.size(), ")"),
                action));
      continue;
    }
    const std::string& id = documents[random() % documents.size()].id;
    WithdrawalRule rule;
    const bool is_prefix = random() % 2 == 0;
    rule.kind =
        is_prefix ? WithdrawalRule::Kind::kPrefix : WithdrawalRule::Kind::kId;
    rule.value = is_prefix ? id.substr(0, random() % (id.size() + 1)) : id;
    if (random() % 4 == 0) {
      rule.value += "x";
    }
    rule.action = action;
    rules.push_back(rule);
  }
  return rules;
}

// The action of the first rule for ids.
std::optional<Withdrawal> ExpectedOfId(const std::vector<WithdrawalRule>& rules,
                                       const std::string& id) {
  std::vector<WithdrawalRule> of_ids;
  for (const WithdrawalRule& rule : rules) {
    if (rule.kind != WithdrawalRule::Kind::kWhere) {
      of_ids.push_back(rule);
    }
  }
  return Expected(of_ids, {.id = id}, 0);
}

// Passing a withdrawn id leads to the next one that is not withdrawn.
void ExpectPassed(const Archive& archive, const WithdrawnDocuments& found,
                  const std::string& id) {
  if (!found.Match(id).has_value()) {
    return;
  }
  const auto next_after = [&](const Archive::IdCursor& after, bool listed) {
    std::optional<uint64_t> next;
    archive.VisitListing(
        {.after = &after},
        [&](const Document& document) {
          if (listed && found.Match(document.id).has_value()) {
            return true;
          }
          next = document.ordinal.value;
          return false;
        },
        [](absl::string_view) { return true; });
    return next;
  };
  EXPECT_EQ(next_after(found.Pass(id), /*listed=*/false),
            next_after({.id = id}, /*listed=*/true));
}

TEST(WithdrawnDocumentsTest, FindsWhatASearchThroughAllDocumentsFinds) {
  std::mt19937 seeds(TestSeed());
  for (int round = 0; round < 90; ++round) {
    const uint64_t seed = (uint64_t{seeds()} << 32) | seeds();
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    const TemporaryDirectory directory;
    const std::vector<TestSegment> segments = {
        RandomTestSegment(random() % 30 + 1, 200, random),
        RandomTestSegment(random() % 30 + 1, 200, random)};
    std::vector<TestDocument> documents = segments[0];
    documents.insert(documents.end(), segments[1].begin(), segments[1].end());
    QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), segments));
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                               Archive::Open(directory / "a"));
    const std::vector<WithdrawalRule> rules = RandomRules(documents, random);
    QUIRE_ASSERT_OK_AND_ASSIGN(const auto found,
                               WithdrawnDocuments::Resolve(*archive, rules));
    std::vector<std::optional<Withdrawal>> expected;
    uint64_t count = 0;
    for (uint64_t i = 0; i < documents.size(); ++i) {
      expected.push_back(Expected(rules, documents[i], i));
      count += expected.back().has_value() ? 1 : 0;
    }
    ASSERT_EQ(found == nullptr, count == 0);
    if (found == nullptr) {
      continue;
    }
    EXPECT_EQ(found->document_count(), count);
    std::string text;
    for (uint64_t i = 0; i < documents.size(); ++i) {
      EXPECT_EQ(found->Match(documents[i].id),
                ExpectedOfId(rules, documents[i].id));
      EXPECT_TRUE(found->has_selected() || !expected[i].has_value() ||
                  found->Match(documents[i].id) == expected[i]);
      EXPECT_EQ(found->Find({i}), expected[i]);
      uint64_t next = i;
      while (next < documents.size() && expected[next].has_value()) {
        ++next;
      }
      EXPECT_EQ(found->NextListed(i), next);
      text.append(documents[i].text.size(),
                  expected[i].has_value() ? '0' : 'x');
    }
    for (int i = 0; i < 20; ++i) {
      const uint64_t offset = random() % (text.size() + 1);
      const uint64_t size = random() % (text.size() - offset + 1);
      std::string zeroed(size, 'x');
      uint64_t last_end = 0;
      for (const AnswerRange& zero : found->ZerosIn({{offset}, size})) {
        EXPECT_GT(zero.size_bytes, 0u);
        EXPECT_TRUE(zero.offset > last_end || zero.offset == 0);
        last_end = zero.offset + zero.size_bytes;
        ASSERT_LE(last_end, size);
        zeroed.replace(zero.offset, zero.size_bytes, zero.size_bytes, '0');
      }
      EXPECT_EQ(zeroed, text.substr(offset, size));
      bool has_document = false;
      uint64_t start = 0;
      for (uint64_t k = 0; k < documents.size(); ++k) {
        const uint64_t end = start + documents[k].text.size();
        const bool is_in = start == end
                               ? start >= offset && start <= offset + size
                               : start < offset + size && end > offset;
        has_document |= size > 0 && expected[k].has_value() && is_in;
        start = end;
      }
      EXPECT_EQ(found->HasDocumentIn({{offset}, size}), has_document);
      const std::string& id = documents[random() % documents.size()].id;
      const std::string prefix = id.substr(0, random() % (id.size() + 1));
      bool has_listed = false;
      for (uint64_t k = 0; k < documents.size(); ++k) {
        has_listed |= absl::StartsWith(documents[k].id, prefix) &&
                      !expected[k].has_value();
      }
      uint64_t work = 0;
      EXPECT_EQ(
          found->PassPrefix(*archive, prefix, nullptr, 1000, work).has_value(),
          !has_listed);
      ExpectPassed(*archive, *found, id);
    }
  }
}

// Half of the ids are withdrawn by a rule each: passing them takes no search
// for each, and the next document is not withdrawn.
TEST(WithdrawnDocumentsTest, PassesNeighboursAtOnce) {
  constexpr uint64_t kCount = 2000;
  TestSegment documents;
  std::vector<WithdrawalRule> rules;
  for (uint64_t i = 0; i < 2 * kCount; ++i) {
    documents.push_back(
        {.id = absl::StrCat(i < kCount ? "a/" : "b/", 10000 + i)});
    if (i < kCount) {
      rules.push_back({.value = documents.back().id});
    }
  }
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), {documents}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto found,
                             WithdrawnDocuments::Resolve(*archive, rules));
  EXPECT_EQ(found->Pass("a/10000").id, documents[kCount - 1].id);
  uint64_t work = 0;
  EXPECT_TRUE(
      found->PassPrefix(*archive, "a/", nullptr, 1000, work).has_value());
  EXPECT_FALSE(
      found->PassPrefix(*archive, "", nullptr, 1000, work).has_value());
  EXPECT_LT(work, 20u);
}

TEST(WithdrawnDocumentsTest, ChargesARunForEachIdWithoutNeighbours) {
  constexpr uint64_t kCount = 100;
  TestSegment documents;
  std::vector<WithdrawalRule> rules;
  uint64_t rules_bytes = 0;
  for (uint64_t i = 0; i < 2 * kCount; ++i) {
    documents.push_back(
        {.id = std::string(1000, 'a') + absl::StrCat(1000 + i)});
    if (i % 2 == 0) {
      rules.push_back({.value = documents.back().id});
      rules_bytes += WithdrawnDocuments::RuleBytes(rules.back());
    }
  }
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), {documents}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto found,
                             WithdrawnDocuments::Resolve(*archive, rules));
  // Each run has its first and its last id.
  EXPECT_GT(found->memory_bytes(), rules_bytes + kCount * 2 * 1000);
}

// In an earlier state the documents between the withdrawn ones may be absent.
TEST(WithdrawnDocumentsTest, LimitsItsWorkInAnEarlierState) {
  constexpr uint64_t kCount = 1000;
  TestSegment documents;
  std::vector<WithdrawalRule> rules;
  for (uint64_t i = 0; i < 2 * kCount; ++i) {
    // The later ones come between the earlier ones.
    documents.push_back(
        {.id = absl::StrCat(10000 + i % kCount, i < kCount ? "" : "x")});
    if (i < kCount) {
      rules.push_back({.value = documents.back().id});
    }
  }
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), {documents}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto found,
                             WithdrawnDocuments::Resolve(*archive, rules));
  ArchiveView view = *archive;
  view.document_count = kCount;
  uint64_t work = 0;
  std::optional<Archive::IdCursor> passed;
  int calls = 0;
  do {
    work = 0;
    const std::optional<Archive::IdCursor> after = passed;
    passed = found->PassPrefix(view, "1", after ? &*after : nullptr, 100, work);
    ASSERT_TRUE(passed.has_value());
    EXPECT_LT(work, 120u);
    ++calls;
  } while (!passed->is_common_prefix);
  EXPECT_GT(calls, 10);
  EXPECT_EQ(passed->id, "1");
}

TEST(WithdrawnDocumentsTest, JoinsTheTextOfNeighbours) {
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(),
                                   {{{.id = "a", .text = "12"},
                                     {.id = "b"},
                                     {.id = "c", .text = "345"},
                                     {.id = "d", .text = "6"}}}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto found,
      WithdrawnDocuments::Resolve(
          *archive,
          {{.value = "a", .action = Withdrawal::kBlock}, {.value = "c"}}));
  EXPECT_THAT(found->ZerosIn({{0}, 6}), ElementsAre(AnswerRange{0, 5}));
  EXPECT_THAT(found->ZerosIn({{1}, 2}), ElementsAre(AnswerRange{0, 2}));
  EXPECT_EQ(found->run_count(), 2u);
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto empty, WithdrawnDocuments::Resolve(
                                                   *archive, {{.value = "b"}}));
  EXPECT_THAT(empty->ZerosIn({{0}, 6}), IsEmpty());
  // Documents "a" and "c" have 2 and 3 bytes.
  EXPECT_TRUE(empty->HasDocumentIn({{0}, 6}));
  EXPECT_TRUE(empty->HasDocumentIn({{0}, 2}));
  EXPECT_TRUE(empty->HasDocumentIn({{2}, 3}));
  EXPECT_FALSE(empty->HasDocumentIn({{3}, 3}));
  EXPECT_FALSE(empty->HasDocumentIn({{2}, 0}));
}

// Of documents that a filter selected, a prefix is passed in steps.
TEST(WithdrawnDocumentsTest, LimitsItsWorkOverSelectedDocuments) {
  TestSegment documents;
  for (uint64_t i = 0; i < 1000; ++i) {
    documents.push_back({.id = absl::StrCat("a/", 10000 + i)});
  }
  documents.push_back({.id = "a/x", .text = "text"});
  const TemporaryDirectory directory;
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), {documents}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto found, WithdrawnDocuments::Resolve(
                            *archive, {Where("size = 0", Withdrawal::kBlock)}));
  EXPECT_EQ(found->document_count(), 1000u);
  EXPECT_EQ(found->run_count(), 1u);
  std::optional<Archive::IdCursor> passed;
  int calls = 0;
  do {
    uint64_t work = 0;
    const std::optional<Archive::IdCursor> after = passed;
    passed =
        found->PassPrefix(*archive, "a/", after ? &*after : nullptr, 100, work);
    EXPECT_GT(work, 0u);
    EXPECT_LT(work, 300u);
    ++calls;
  } while (passed.has_value() && calls < 1000);
  EXPECT_GT(calls, 5);
  EXPECT_LT(calls, 100);
}

TEST(WithdrawnDocumentsTest, ReadsFieldsAndReservesMemory) {
  const TemporaryDirectory directory;
  ArchiveWriterOptions options = Options();
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto writer,
      ArchiveWriter::Create(directory / "a", options, nullptr));
  QUIRE_ASSERT_OK(writer->SetFields({{"n", FieldType::kInteger}}));
  TestSegment segment;
  for (int64_t i = 0; i < 100; ++i) {
    segment.push_back({.id = absl::StrCat(i), .fields = {i}});
  }
  QUIRE_ASSERT_OK(WriteTestSegment(segment, 4096, nullptr, *writer));
  QUIRE_ASSERT_OK(writer->Commit().status());
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  std::vector<WithdrawalRule> rules = {
      Where("n in (3, 4, 90)", Withdrawal::kExclude)};
  rules[0].line_number = 7;
  uint64_t load_count = 0;
  uint64_t reserved_bytes = 0;
  WithdrawalMatching matching = {
      .load_fields =
          [&](const ArchivePart& part) {
            ++load_count;
            return BlockingPartLoader(*archive)(part);
          },
      .reserve =
          [&](uint64_t bytes) {
            reserved_bytes += bytes;
            return std::make_shared<int>(0);
          }};
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto found, WithdrawnDocuments::Resolve(*archive, rules, matching));
  EXPECT_EQ(found->document_count(), 3u);
  EXPECT_EQ(found->run_count(), 2u);
  EXPECT_EQ(found->Find({3}), Withdrawal::kExclude);
  EXPECT_EQ(found->Match("3"), std::nullopt);
  EXPECT_EQ(load_count, 2u);
  EXPECT_GE(reserved_bytes, 2 * 40u);
  const auto fails = [&](absl::Status status) {
    return FailsWith(status.code(),
                     HasSubstr(absl::StrCat(
                         archive->path(), ": line 7 of the rules of withdrawal",
                         ": ", status.message())));
  };
  matching.check = [] { return absl::CancelledError("stop"); };
  EXPECT_THAT(WithdrawnDocuments::Resolve(*archive, rules, matching),
              fails(absl::CancelledError("stop")));
  matching.check = {};
  matching.load_fields = [](const ArchivePart&) {
    return absl::DataLossError("damaged");
  };
  EXPECT_THAT(WithdrawnDocuments::Resolve(*archive, rules, matching),
              FailsWith(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
  matching.reserve = [](uint64_t) {
    return absl::FailedPreconditionError("no memory");
  };
  EXPECT_THAT(
      WithdrawnDocuments::Resolve(*archive, rules, matching),
      FailsWith(absl::StatusCode::kFailedPrecondition, HasSubstr("no memory")));
  rules[0] = Where("m = 3", Withdrawal::kExclude);
  rules[0].line_number = 7;
  EXPECT_THAT(WithdrawnDocuments::Resolve(*archive, rules),
              fails(absl::NotFoundError("column 1: no field \"m\"")));
}

TEST(WithdrawnDocumentsTest, BlocksAll) {
  std::mt19937_64 random(1);
  const TemporaryDirectory directory;
  const TestSegment documents = RandomTestSegment(50, 100, random);
  QUIRE_ASSERT_OK(WriteTestArchive(directory / "a", Options(), {documents}));
  QUIRE_ASSERT_OK_AND_ASSIGN(const auto archive,
                             Archive::Open(directory / "a"));
  const auto all = WithdrawnDocuments::All(*archive);
  ASSERT_NE(all, nullptr);
  EXPECT_TRUE(all->is_substitute());
  EXPECT_EQ(all->document_count(), 50u);
  for (uint64_t i = 0; i < 50; ++i) {
    EXPECT_EQ(all->Find({i}), Withdrawal::kBlock);
    EXPECT_EQ(all->Match(documents[i].id), Withdrawal::kBlock);
    ExpectPassed(*archive, *all, documents[i].id);
  }
  EXPECT_EQ(all->NextListed(0), 50u);
  const uint64_t size = archive->info().size_bytes;
  EXPECT_THAT(all->ZerosIn({{0}, size}), ElementsAre(AnswerRange{0, size}));
  uint64_t work = 0;
  EXPECT_TRUE(all->PassPrefix(*archive, "", nullptr, 100, work).has_value());
  EXPECT_NE(all->ZerosHash(size), 0u);
}

// Without ids nothing can be withdrawn.
TEST(WithdrawnDocumentsTest, RefusesAnArchiveWithoutIds) {
  const TemporaryDirectory directory;
  const std::string path = directory / "a";
  QUIRE_ASSERT_OK(
      WriteTestArchive(path, Options(), {{{.id = "unique", .text = "12"}}}));
  std::string bytes = ReadTestFile(path + "/segment-00000000");
  bytes[bytes.find("unique")] = 'U';
  WriteTestFile(path + "/segment-00000000", bytes);
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const auto archive,
      Archive::Open(path, {.without_damaged_indexes = true}));
  EXPECT_THAT(WithdrawnDocuments::Resolve(*archive, {{.value = "unique"}}),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        HasSubstr("an index is damaged")));
  EXPECT_THAT(WithdrawnDocuments::Resolve(*archive, {}), IsOk());
}

}  // namespace
}  // namespace quire
