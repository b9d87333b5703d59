// SPDX-License-Identifier: Apache-2.0
#include "loadtest/generator/load_tables.h"

#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"

#include "client/quire/client.h"
#include "client/quire/client_status.h"
#include "client/quire/internal/connection.h"
#include "codecs/base/status_macros.h"
#include "codecs/block_codec.h"

namespace quire {
namespace {

std::optional<uint64_t> ParseHash(bool is_set, const std::string& text) {
  uint64_t hash = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, hash, 16);
  return is_set && error == std::errc() && rest == end
             ? std::optional<uint64_t>(hash)
             : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadTables>> LoadTables::Fetch(
    const std::shared_ptr<grpc::Channel>& channel,
    const v1::ArchiveDescription& archive, const LoadOptions& options) {
  std::unique_ptr<LoadTables> tables(new LoadTables(channel, archive, options));
  TableStoreOptions stores;
  stores.dictionary_size_bytes_max = SIZE_MAX;
  TableSource* const source = tables.get();
  tables->wire_ = std::make_unique<WireState>(stores, source);
  QUIRE_RETURN_IF_ERROR(tables->FetchAll());
  return tables;
}

absl::Status LoadTables::FetchAll() {
  const std::optional<uint64_t> symbols =
      ParseHash(archive_.has_symbol_table_hash(), archive_.symbol_table_hash());
  if (encoding_ == AnswerEncoding::kFsst) {
    if (!symbols.has_value()) {
      return absl::FailedPreconditionError(
          absl::StrCat("archive '", archive_.name(), "' has no symbol table"));
    }
    QUIRE_RETURN_IF_ERROR(
        wire_->tables().GetFsstDecoder(archive_.name(), *symbols).status());
  } else {
    const CodecInfo* codec = FindCodec(archive_.codec());
    if (codec == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          "there is no decoder of the codec '", archive_.codec(), "'"));
    }
    const std::optional<uint64_t> dictionary =
        ParseHash(archive_.has_dictionary_hash(), archive_.dictionary_hash());
    QUIRE_RETURN_IF_ERROR(
        wire_->tables()
            .GetStoredCodec(
                archive_.name(), *codec, 0, dictionary,
                codec->id == CodecId::kFsst ? symbols : std::nullopt)
            .status());
  }
  is_complete_ = true;
  return absl::OkStatus();
}

std::unique_ptr<WireCall> LoadTables::StartCall() {
  return std::make_unique<WireCall>(wire_.get(), "", encoding_,
                                    ClientOptions().message_size_bytes_max);
}

absl::StatusOr<std::string> LoadTables::FetchSymbolTable(
    absl::string_view archive, uint64_t hash, size_t /*size_bytes_max*/) {
  if (is_complete_) {
    return absl::InternalError("an answer names another symbol table");
  }
  grpc::ClientContext context;
  AddArchiveHeader(archive, context);
  context.set_deadline(std::chrono::system_clock::now() + deadline_);
  v1::GetSymbolTableRequest request;
  request.set_hash(FormatTableHash(hash));
  v1::GetSymbolTableResponse response;
  QUIRE_RETURN_IF_ERROR(
      StatusFromGrpc(stub_->GetSymbolTable(&context, request, &response)));
  return std::move(*response.mutable_table());
}

absl::StatusOr<std::string> LoadTables::FetchDictionary(
    absl::string_view archive, uint64_t hash, size_t /*size_bytes_max*/) {
  if (is_complete_) {
    return absl::InternalError("an answer names another dictionary");
  }
  grpc::ClientContext context;
  AddArchiveHeader(archive, context);
  v1::GetDictionaryRequest request;
  request.set_hash(FormatTableHash(hash));
  StreamWatchdog watchdog(context, absl::FromChrono(deadline_));
  watchdog.Arm();
  const auto reader = stub_->GetDictionary(&context, request);
  v1::GetDictionaryResponse response;
  std::string text;
  while (reader->Read(&response)) {
    text += response.data();
    watchdog.Arm();
  }
  QUIRE_RETURN_IF_ERROR(watchdog.Explain(StatusFromGrpc(reader->Finish())));
  return text;
}

}  // namespace quire
