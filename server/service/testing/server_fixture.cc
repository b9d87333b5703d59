// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/testing/server_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"

#include "proto/error_details.h"

#include "codecs/base/byte_size.h"
#include "codecs/base/checksum.h"
#include "codecs/fsst/table/symbol_table.h"
#include "codecs/fsst/training/symbol_trainer.h"
#include "codecs/surt/surt_key.h"
#include "server/archive/archive.h"
#include "server/archive/archive_writer.h"
#include "server/archive/deposits/deposit_draft.h"
#include "server/archive/files/sha256.h"
#include "server/archive/format/archive_format.h"
#include "server/service/limits/memory_plan.h"
#include "testing/codecs/test_codec.h"

namespace quire {
namespace {

// A deposited file that is the document's text.
std::shared_ptr<DepositDraft> DraftOf(const TestDocument& document) {
  Sha256Summer sum;
  sum.Add(AsBytes(document.text));
  return std::make_shared<DepositDraft>(
      DepositDraft::File{.path = document.deposit_path,
                         .size_bytes = document.text.size(),
                         .digest = sum.Finish(),
                         .items = {{.kind = DepositItem::Kind::kText,
                                    .size_bytes = document.text.size(),
                                    .text_size_bytes = document.text.size()}}});
}

}  // namespace

std::vector<TestDocument> MakeDocuments(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TestDocument> documents;
  for (size_t i = 0; i < count; ++i) {
    TestDocument document;
    document.id = absl::StrCat("dir", i % 7, "/page", i);
    const uint64_t size_bytes = i % 10 == 3 ? 0 : random() % 40000;
    while (document.text.size() < size_bytes) {
      absl::StrAppend(&document.text, "<p>", random() % 1000, " words of page ",
                      i, "</p>\n");
    }
    document.text.resize(size_bytes);
    documents.push_back(std::move(document));
  }
  return documents;
}

std::vector<TestDocument> DocumentsOfRandomIds(uint64_t count) {
  std::vector<TestDocument> documents;
  for (uint64_t i = 0; i < count; ++i) {
    documents.push_back({absl::StrCat(absl::Hex(i * 0x9E3779B97F4A7C15u), "-",
                                      absl::Hex(i * 0xC2B2AE3D27D4EB4Fu)),
                         ""});
  }
  return documents;
}

std::string Concatenate(const std::vector<TestDocument>& documents) {
  std::string all;
  for (const TestDocument& document : documents) {
    all += document.text;
  }
  return all;
}

std::string TrainTable(const std::vector<TestDocument>& documents) {
  std::vector<ByteView> texts;
  texts.reserve(documents.size());
  for (const TestDocument& document : documents) {
    texts.push_back(AsBytes(document.text));
  }
  return TrainSymbolTable(texts).Serialise();
}

std::string HttpGet(const std::string& address, const std::string& path) {
  const size_t colon = address.rfind(':');
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port =
      htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
    if (write(fd, request.data(), request.size()) ==
        static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) {
        answer.append(buffer, static_cast<size_t>(got));
      }
    }
  }
  close(fd);
  const size_t body = answer.find("\r\n\r\n");
  return body == std::string::npos ? "" : answer.substr(body + 4);
}

uint64_t LeastMemoryBytes(const std::vector<std::string>& paths,
                          bool can_reload) {
  std::vector<ArchiveNeed> needs;
  uint64_t memory_bytes = 0;
  for (const std::string& path : paths) {
    const auto outline = Archive::ReadOutline(path);
    QUIRE_EXPECT_OK(outline);
    if (outline.ok()) {
      needs.push_back({path, outline->memory_bytes});
      memory_bytes += outline->memory_bytes;
    }
  }
  for (;; memory_bytes += 16 * kKiB) {
    const auto plan = PlanMemory(memory_bytes, needs);
    if (plan.ok() && (plan->reload_bytes > 0 || !can_reload)) {
      return memory_bytes;
    }
  }
}

namespace {

// Reverses the order of the pieces of `text`.
LayoutSection ReverseText(std::string& text) {
  LayoutSection layout;
  layout.stored_text_size_bytes = text.size();
  TextChecksummer checksummer;
  checksummer.Add(AsBytes(text));
  layout.checksums = checksummer.Take();
  std::mt19937_64 random(text.size());
  std::string reversed;
  for (size_t at = 0; at < text.size();) {
    const size_t size =
        std::min<size_t>(12000 + random() % 28000, text.size() - at);
    at += size;
    layout.runs.push_back({size, text.size() - at});
    reversed.insert(0, text, at - size, size);
  }
  text = std::move(reversed);
  return layout;
}

}  // namespace

void ServerTest::WriteArchive(const std::string& path,
                              const std::vector<TestDocument>& documents,
                              const std::string& codec_name,
                              const std::string& symbol_table,
                              bool is_reordered) {
  ArchiveWriterOptions options;
  const TestCodec test_codec = ParseTestCodec(codec_name);
  options.codec = test_codec.spec;
  options.block_size_bytes = 16 << 10;
  options.replace = true;
  auto context = std::make_shared<CodecContext>();
  if (FindCodec(options.codec.id)->needs_dictionary) {
    context->dictionary = Concatenate(documents).substr(0, 100000);
  }
  context->symbol_table = symbol_table;
  QUIRE_ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<PayloadCodec> codec,
      MakePayloadCodec(options.codec, context, CodecUse::kEncodeAndDecode,
                       test_codec.inflated_text_size_max));
  QUIRE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ArchiveWriter> writer,
                             ArchiveWriter::Create(path, options, context));
  if (!symbol_table.empty()) {
    QUIRE_ASSERT_OK(writer->SetSymbolTable(symbol_table));
  }
  if (!fields_.empty()) {
    QUIRE_ASSERT_OK(writer->SetFields(fields_));
  }
  DocumentIndexBuilder index;
  QUIRE_ASSERT_OK(index.AddFieldColumns(fields_));
  for (const TestDocument& document : documents) {
    NewDocument added = {.id = document.id,
                         .size_bytes = document.text.size(),
                         .capture_time_ms = document.capture_time_ms.value_or(
                             static_cast<int64_t>(document.text.size())),
                         .record_type = document.record_type,
                         .media_type = "text/html",
                         .fields = document.fields};
    const std::string key = SurtKey(document.url);
    if (!document.url.empty()) {
      added.capture = NewCapture{.key = key,
                                 .url = document.url,
                                 .status = document.status,
                                 .digest = "sha1:of the text"};
    }
    if (!document.deposit_path.empty()) {
      added.deposit = DraftOf(document);
    }
    QUIRE_ASSERT_OK(is_reordered ? index.Add(added)
                                 : writer->AddDocument(added));
  }
  std::string all = Concatenate(documents);
  if (is_reordered) {
    LayoutSection layout = ReverseText(all);
    QUIRE_ASSERT_OK(writer->SetLayout(std::move(layout), std::move(index)));
  }
  const auto scratch = codec->NewScratch();
  std::string stored(codec->StoredSizeMax(size_t{4} * options.block_size_bytes),
                     '\0');
  std::mt19937_64 random(17);
  for (size_t at = 0, next = 0; at < all.size(); at = next) {
    const size_t size_max =
        test_codec.inflated_text_size_max != 0
            ? 512 + random() % (size_t{3} * options.block_size_bytes)
            : options.block_size_bytes;
    const ByteView raw =
        AsBytes(all).subspan(at, std::min(size_max, all.size() - at));
    next = at + raw.size();
    QUIRE_ASSERT_OK_AND_ASSIGN(
        const Payload payload,
        codec->Encode(raw, AsMutableBytes(stored), *scratch));
    QUIRE_ASSERT_OK(writer->AppendBlock(raw, payload));
  }
  QUIRE_ASSERT_OK(writer->Commit());
}

void ServerTest::StartServer(ServerOptions options) {
  ListenServer(std::move(options));
  ASSERT_NE(server_, nullptr);
  QUIRE_ASSERT_OK(server_->OpenArchives());
}

void ServerTest::ListenServer(ServerOptions options) {
  if (options.archives.empty()) {
    options.archives = {{"docs", archive_path()}};
  }
  if (options.listen_address == ServerOptions().listen_address) {
    options.listen_address = "127.0.0.1:0";
  }
  changes_ = {.archives = options.archives,
              .default_quota = options.default_quota};
  QUIRE_ASSERT_OK_AND_ASSIGN(server_, Server::Listen(options));
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(64 << 20);
  stub_ = v1::Archive::NewStub(grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), arguments));
}

std::vector<std::string> ServerTest::Reload() {
  std::vector<std::string> texts;
  for (LogLine& line : server_->Reload(changes_)) {
    texts.push_back(std::move(line.text));
  }
  return texts;
}

std::string ServerTest::ReasonIn(const grpc::Status& status) {
  const auto details = ParseErrorDetails(status.error_details());
  return details.has_value() ? details->reason : "";
}

}  // namespace quire
