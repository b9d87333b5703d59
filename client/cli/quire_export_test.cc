// SPDX-License-Identifier: Apache-2.0
//
// quire export of archives with withdrawn documents, against a server that
// fails as told.

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "client/cli/testing/cli_fixture.h"
#include "client/quire/testing/fake_server.h"
#include "codecs/base/bytes.h"
#include "codecs/base/checksum.h"

namespace quire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class QuireExportTest : public CliTest {
 protected:
  QuireExportTest() : CliTest(std::map<std::string, FakeArchive>()) {}
};

TEST_F(QuireExportTest, SkipsWithdrawnDocuments) {
  std::vector<FakeDocument> documents;
  for (int i = 0; i < 40; ++i) {
    documents.push_back({.id = absl::StrCat("d", i),
                         .text = std::string(i % 3 == 0 ? 0 : 700, 'x'),
                         .is_withdrawn = i % 4 == 1 || i < 2 || i > 35,
                         .is_redacted = i == 20 || i == 21 || i == 22});
  }
  // Zeros that are no sign of a withdrawal.
  documents[10].text.append(100, '\0');
  server_->Reload({{"gaps", {.documents = documents}}});
  const std::string tar = directory_ + "/gaps.tar";
  const std::string filtered = directory_ + "/filtered.tar";
  const std::string files = directory_ + "/files";
  for (const std::vector<std::string>& form :
       std::vector<std::vector<std::string>>{
           {"--tar", tar},
           {"--tar", tar, "--keep-going"},
           {"--tar", filtered, "--record-type", ""},
           {"--output-dir", files}}) {
    std::vector<std::string> arguments = {"export", "gaps"};
    arguments.insert(arguments.end(), form.begin(), form.end());
    const ProgramRun run = Run(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("exported 24 documents"));
    EXPECT_THAT(run.err, HasSubstr("; 16 documents are withdrawn\n"));
  }
  const std::string text = FileText(tar);
  EXPECT_EQ(text, FileText(filtered));
  for (const FakeDocument& document : documents) {
    const std::string path = absl::StrCat(files, "/", document.id);
    const bool is_gone = document.is_withdrawn || document.is_redacted;
    EXPECT_EQ(std::filesystem::exists(path), !is_gone) << path;
    EXPECT_EQ(FileText(path), is_gone ? "" : document.text);
    EXPECT_EQ(
        text.find(document.id + std::string(1, '\0')) == std::string::npos,
        is_gone)
        << document.id;
  }
}

TEST_F(QuireExportTest, ListsRedactedDocumentsOnRequestOnly) {
  server_->Reload(
      {{"gaps",
        {.documents = {{.id = "a", .text = "one"},
                       {.id = "b", .text = "2", .is_redacted = true},
                       {.id = "c", .text = "three"}}}}});
  ProgramRun run = Run({"ls", "gaps"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "a\nc\n");
  EXPECT_THAT(run.err, HasSubstr("1 document is withdrawn and not listed"));
  run = Run({"ls", "--json", "gaps", "--record-type", "withdrawn"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("\"ordinal\":1,"));
  EXPECT_THAT(run.err, Not(HasSubstr("not listed")));
  run = Run({"get", "gaps", "--ordinal", "1"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("withdrawn"));
}

class QuireExportChangeTest : public QuireExportTest {
 protected:
  // Serves an archive with nine documents of four bytes.
  void Serve(bool is_withdrawn) {
    std::vector<FakeDocument> documents;
    for (int i = 0; i < 9; ++i) {
      documents.push_back({.id = absl::StrCat("d", i),
                           .text = "text",
                           .is_withdrawn = i == 5 && is_withdrawn});
    }
    server_->Reload({{"now", {.documents = documents}}});
  }

  ProgramRun Export() {
    return Run({"export", "now", "--tar", directory_ + "/now.tar"});
  }

  // Sends `text` in place of document 5.
  static std::function<void(v1::ScanResponse&)> WithText(std::string text) {
    return [text = std::move(text)](v1::ScanResponse& message) {
      message.mutable_data()->replace(20, 4, text);
      message.set_checksum(Checksum64(AsBytes(message.data())));
    };
  }
};

TEST_F(QuireExportChangeTest, AcceptsDocumentsOfZeros) {
  Serve(/*is_withdrawn=*/false);
  FakeFaults faults;
  faults.edit_scan = WithText(std::string(4, '\0'));
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("exported 9 documents"));
}

TEST_F(QuireExportChangeTest, NoticesADocumentThatIsRestored) {
  Serve(/*is_withdrawn=*/true);
  FakeFaults faults;
  faults.edit_scan = WithText("text");
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("withdrawn or restored during it"));
}

TEST_F(QuireExportChangeTest, NoticesADocumentThatIsWithdrawn) {
  Serve(/*is_withdrawn=*/true);
  FakeFaults faults;
  faults.edit_list = [](v1::ListDocumentsResponse& page) {
    v1::Document withdrawn = page.documents(4);
    withdrawn.set_ordinal(5);
    withdrawn.set_id("d5");
    withdrawn.mutable_range()->set_offset(20);
    page.mutable_documents()->Add(std::move(withdrawn));
    for (int i = page.documents_size() - 1; i > 5; --i) {
      page.mutable_documents()->SwapElements(i, i - 1);
    }
  };
  server_->SetFaults(faults);
  const ProgramRun run = Export();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("document number 5 was withdrawn during the "
                                 "export; run it again"));
}

}  // namespace
}  // namespace quire
