// SPDX-License-Identifier: Apache-2.0
#include "client/quire/payload/payload_decoder.h"

#include <brotli/encode.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"

#include "client/quire/payload/record_header.h"
#include "client/quire/payload/record_testing.h"
#include "testing/base/status_matchers.h"

namespace quire {
namespace {

using ::testing::HasSubstr;

struct Decoded {
  std::string payload;
  absl::Status status;
  std::optional<PlainPayload> plain;
};

Decoded Decode(const std::string& record, size_t piece_size = 1 << 20,
               uint64_t size_bytes_max = kPayloadSizeBytesMax) {
  PayloadDecoder decoder(size_bytes_max);
  Decoded decoded;
  const auto sink = [&](ByteView bytes) {
    decoded.payload.append(AsText(bytes).data(), bytes.size());
    return absl::OkStatus();
  };
  for (size_t at = 0; at < record.size() && decoded.status.ok();
       at += piece_size) {
    decoded.status = decoder.Feed(
        AsBytes(absl::string_view(record).substr(at, piece_size)), sink);
  }
  if (decoded.status.ok()) {
    decoded.status = decoder.Finish(sink);
  }
  decoded.plain = decoder.plain_payload();
  if (decoded.plain.has_value() && decoded.status.ok()) {
    EXPECT_EQ(decoded.payload,
              record.substr(decoded.plain->offset, decoded.plain->size_bytes));
  }
  return decoded;
}

std::string Chunked(absl::string_view text, size_t chunk_size,
                    absl::string_view end = "0\r\n\r\n") {
  std::string out;
  for (; !text.empty(); text.remove_prefix(std::min(chunk_size, text.size()))) {
    const absl::string_view chunk = text.substr(0, chunk_size);
    absl::StrAppend(&out, absl::Hex(chunk.size()), "\r\n", chunk, "\r\n");
  }
  return absl::StrCat(out, end);
}

std::string Deflate(const std::string& text, int window_bits) {
  z_stream stream = {};
  EXPECT_EQ(
      deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY),
      Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<unsigned>(text.size());
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<unsigned>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Gzip(const std::string& text) {
  return Deflate(text, MAX_WBITS + 16);
}

std::string Brotli(const std::string& text) {
  size_t size = BrotliEncoderMaxCompressedSize(text.size()) + 64;
  std::string out(size, '\0');
  EXPECT_TRUE(
      BrotliEncoderCompress(5, 22, BROTLI_MODE_TEXT, text.size(),
                            reinterpret_cast<const uint8_t*>(text.data()),
                            &size, reinterpret_cast<uint8_t*>(out.data())));
  out.resize(size);
  return out;
}

// A checksum detects any damage.
std::string Zstd(const std::string& text, bool has_checksum = true) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, has_checksum ? 1 : 0);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress2(context, out.data(), out.size(), text.data(),
                            text.size()));
  ZSTD_freeCCtx(context);
  return out;
}

// Compressible, and larger than all buffers.
std::string Text() {
  std::mt19937_64 random(5);
  std::string text;
  while (text.size() < 300'000) {
    absl::StrAppend(&text, "<p class=\"a\">", random() % 100000, "</p>\n");
  }
  return text;
}

void ExpectPayload(const std::string& record, const std::string& payload) {
  for (const size_t piece_size : {size_t{1} << 20, size_t{1000}, size_t{7}}) {
    const Decoded decoded = Decode(record, piece_size);
    QUIRE_EXPECT_OK(decoded.status);
    EXPECT_TRUE(decoded.payload == payload)
        << decoded.payload.size() << " bytes in pieces of " << piece_size;
  }
}

TEST(PayloadDecoderTest, TakesHeadersOff) {
  ExpectPayload(Response("Content-Length: 4\r\n", "body"), "body");
  ExpectPayload(Response("", ""), "");
  ExpectPayload(Response("Content-Length: 0\r\n", ""), "");
  // Longer than the header says: some crawlers decode but keep the header.
  ExpectPayload(Response("Content-Length: 3\r\n", "body"), "body");
  ExpectPayload(Record("request", "POST /a HTTP/1.1\r\nHost: x\r\n\r\nform=1"),
                "form=1");
  ExpectPayload(Record("request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "");
  ExpectPayload(Record("response",
                       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n"
                       "Link: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody"),
                "body");
  ExpectPayload(Record("response", "HTTP/1.0 200\nA: b\n\nbody"), "body");
  // Also if what follows an interim response is not HTTP.
  ExpectPayload(Record("response", "HTTP/1.1 103 Hints\r\n\r\nHTTX body"),
                "HTTX body");
}

TEST(PayloadDecoderTest, TakesTheBlockOfOtherRecords) {
  const std::string text = "HTTP/1.1 200 OK\r\n\r\nquoted";
  ExpectPayload(Record("resource", text, "", "text/plain"), text);
  ExpectPayload(Record("conversion", text, "", "text/plain"), text);
  ExpectPayload(Record("warcinfo", text, "", "application/warc-fields"), text);
  ExpectPayload(Record("response", text, "", "text/dns"), text);
  ExpectPayload(Record("response", "ICY 200 OK\r\n\r\nmusic"),
                "ICY 200 OK\r\n\r\nmusic");
  ExpectPayload(Record("response", std::string(3 << 20, 'x')),
                std::string(3 << 20, 'x'));
  ExpectPayload(
      Record("revisit", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
             "WARC-Truncated: length\r\n"),
      "");
}

TEST(PayloadDecoderTest, LocatesPayloadsThatAreNotCoded) {
  for (const size_t piece_size : {size_t{1}, size_t{1000}}) {
    for (const std::string& record :
         {Response("Content-Length: 4\r\n", "body"), Response("", "body"),
          Record("response", "no header"),
          Record("response",
                 "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nbody"),
          Record("resource", "body", "", "text/plain")}) {
      EXPECT_TRUE(Decode(record, piece_size).plain.has_value()) << record;
    }
    for (const std::string& record :
         {Response("Content-Length: 5\r\n", "body"),
          Response("Transfer-Encoding: chunked\r\n", Chunked("body", 2)),
          Response("Content-Encoding: gzip\r\n", "not coded"),
          Record("response", "HTTP/1.1 200 OK\r\n\r\nbody",
                 "WARC-Truncated: length\r\n"),
          Record("revisit", "HTTP/1.1 200 OK\r\n\r\n")}) {
      EXPECT_FALSE(Decode(record, piece_size).plain.has_value()) << record;
    }
  }
}

TEST(PayloadDecoderTest, TellsWhatTheHeadersSay) {
  PayloadDecoder decoder;
  const auto sink = [](ByteView) { return absl::OkStatus(); };
  EXPECT_EQ(decoder.warc(), nullptr);
  EXPECT_EQ(decoder.http(), nullptr);
  const std::string record = Record(
      "Response",
      "HTTP/1.1 404 Not Found\r\ncontent-type: Text/HTML; charset=x\r\n"
      "Content-Length: 5\r\nContent-Length: 7\r\n\r\n",
      "WARC-Target-URI: <http://a/>\r\nWARC-Date: 2022-01-01T00:00:00Z\r\n"
      "WARC-Refers-To-Target-URI: http://b/\r\n"
      "WARC-Refers-To-Date: 2021-01-01T00:00:00Z\r\n"
      "WARC-Payload-Digest: sha1:ABC\r\nWARC-Payload-Digest: sha1:DEF\r\n");
  QUIRE_ASSERT_OK(decoder.Feed(AsBytes(record), sink));
  ASSERT_NE(decoder.warc(), nullptr);
  EXPECT_EQ(decoder.warc()->type, "response");
  EXPECT_EQ(decoder.warc()->target_uri, "http://a/");
  EXPECT_EQ(decoder.warc()->date, "2022-01-01T00:00:00Z");
  EXPECT_EQ(decoder.warc()->refers_to_target_uri, "http://b/");
  EXPECT_EQ(decoder.warc()->refers_to_date, "2021-01-01T00:00:00Z");
  EXPECT_EQ(decoder.warc()->payload_digest, "sha1:ABC");
  ASSERT_NE(decoder.http(), nullptr);
  EXPECT_EQ(decoder.http()->status_code, 404);
  EXPECT_EQ(decoder.http()->content_type, "Text/HTML; charset=x");
  EXPECT_EQ(decoder.http()->content_length, 5u);
}

TEST(PayloadDecoderTest, TakesChunksOff) {
  const std::string text = Text();
  for (const size_t chunk_size : {size_t{1} << 20, size_t{10000}}) {
    ExpectPayload(
        Response("Transfer-Encoding: chunked\r\n", Chunked(text, chunk_size)),
        text);
  }
  ExpectPayload(Response("transfer-encoding: Chunked\r\nContent-Length: 99\r\n",
                         "3;ext=\"a\"\r\nabc\r\nA \r\n0123456789\r\n00\r\n"
                         "Trailer: x\r\n\r\nbehind"),
                "abc0123456789");
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n", "0\r\n\r\n"), "");
  // The last line end is often missing.
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n"),
                "a");
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n", "1\na\n0\n\n"), "a");
}

TEST(PayloadDecoderTest, TakesCodingsOff) {
  const std::string text = Text();
  ExpectPayload(Response("Content-Encoding: gzip\r\n", Gzip(text)), text);
  ExpectPayload(Response("Content-Encoding: x-GZip\r\n", Gzip(text)), text);
  ExpectPayload(Response("Content-Encoding: gzip\r\n",
                         Gzip(text) + Gzip("more") + "trailing"),
                text + "more");
  ExpectPayload(
      Response("Content-Encoding: deflate\r\n", Deflate(text, MAX_WBITS)),
      text);
  ExpectPayload(
      Response("Content-Encoding: deflate\r\n", Deflate(text, -MAX_WBITS)),
      text);
  ExpectPayload(Response("Content-Encoding: br\r\n", Brotli(text)), text);
  ExpectPayload(Response("Content-Encoding: zstd\r\n", Zstd(text) + Zstd("b")),
                text + "b");
  // The end is decoded after the last byte was taken.
  ExpectPayload(Response("Content-Encoding: zstd\r\n",
                         Zstd(text, /*has_checksum=*/false)),
                text);
  ExpectPayload(Response("Content-Encoding: identity\r\n", text), text);
  for (const char* coding : {"gzip", "deflate", "br", "zstd"}) {
    ExpectPayload(
        Response(absl::StrCat("Content-Encoding: ", coding, "\r\n"), ""), "");
  }
}

TEST(PayloadDecoderTest, TakesSeveralOff) {
  const std::string text = Text();
  ExpectPayload(Response("Content-Encoding: gzip\r\n"
                         "Transfer-Encoding: chunked\r\n",
                         Chunked(Gzip(text), 777)),
                text);
  ExpectPayload(
      Response("Content-Encoding: gzip, br\r\n"
               "Content-Encoding: zstd\r\n"
               "Transfer-Encoding: deflate, chunked\r\n",
               Chunked(Deflate(Zstd(Brotli(Gzip(text))), MAX_WBITS), 100)),
      text);
}

TEST(PayloadDecoderTest, LeavesWhatIsNotCodedAsItIs) {
  const std::string text = "<html>decoded by the crawler</html>";
  // The length is that of the coded body, which may be a little larger.
  ExpectPayload(
      Response("Content-Encoding: gzip\r\nContent-Length: 55\r\n", text), text);
  EXPECT_THAT(
      Decode(
          Response("Content-Encoding: gzip\r\nContent-Length: 9999\r\n", text))
          .status,
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("is cut short")));
  ExpectPayload(Response("Content-Encoding: zstd\r\n", text), text);
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n", text), text);
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n", text + "\r\nmore"),
                text + "\r\nmore");
  ExpectPayload(
      Response("Transfer-Encoding: chunked\r\n", std::string(100'000, 'x')),
      std::string(100'000, 'x'));
  ExpectPayload(Response("Content-Encoding: zstd\r\n", "x"), "x");
}

// A first line of hexadecimal digits makes no chunk.
TEST(PayloadDecoderTest, LeavesNumbersThatBeginABody) {
  const std::string bodies[] = {"1\r\nabc\r\n",
                                "12\n13\n14\n",
                                "10\r\n11\r\n12\r\n13\r\n14\r\n15\r\n",
                                "3;4\r\nabcd\r\n",
                                "0\n",
                                "0\r\n",
                                "0\n1\n2\n",
                                "0\r\n\r\ntext after an empty line",
                                "0\nname: text\n\ntext after an empty line",
                                "beef\nis the first of many lines\n",
                                "ffff\n" + std::string(100'000, 'x')};

  for (const std::string& body : bodies) {
    ExpectPayload(Response("Transfer-Encoding: chunked\r\n", body), body);
  }
}

// The record is shorter than its length says.
TEST(PayloadDecoderTest, GivesTheFirstChunkOfACutRecord) {
  const std::string record =
      Response("Transfer-Encoding: chunked\r\n", Chunked("some text", 100));
  const size_t end = record.find("text");
  const Decoded decoded = Decode(record.substr(0, end));
  EXPECT_THAT(decoded.status, HasCode(absl::StatusCode::kDataLoss));
  EXPECT_EQ(decoded.payload, "some ");
}

TEST(PayloadDecoderTest, TakesLargeFirstChunks) {
  const std::string text = std::string(200'000, 'x');
  ExpectPayload(
      Response("Transfer-Encoding: chunked\r\n", Chunked(text, 150'000)), text);
  ExpectPayload(Response("Transfer-Encoding: chunked\r\n",
                         "0\r\nExpires: never\r\n\r\n\r\n"),
                "");
}

// One rule for all codings, whatever the body is.
TEST(PayloadDecoderTest, PassesCodingsThatDoNotApply) {
  std::mt19937_64 random(7);
  std::string noise(20'000, '\0');
  for (char& c : noise) {
    c = static_cast<char>(random());
  }
  const std::string png = "\x89PNG\r\n\x1A\n" + std::string(4, '\0') + noise;
  std::vector<std::string> bodies = {
      "x", ";", "ok", "{}", "<html>decoded</html>", Text(), "alma mater",
      "x^ and text", png, noise, "\xe9t\xe9",
      // The start of an uncompressed part in brotli.
      "aazaazaazaaz" + Text().substr(0, 1000),
      "caf\xe9 " + Text().substr(0, 5000)};
  for (const char* coding :
       {"utf-8",    "UTF-8", "none",   "binary",       "text/html",
        "*",        "gzip",  "x-gzip", "GZIP",         "deflate",
        "Deflate",  "br",    "BR",     "zstd",         "ZStd",
        "compress", "dcb",   "dcz",    "pack200-gzip", "utf-8, gzip",
        "gzip, br"}) {
    for (const std::string& body : bodies) {
      // An empty stream of brotli.
      if (body == ";" && absl::EndsWithIgnoreCase(coding, "br")) {
        continue;
      }
      const Decoded decoded = Decode(
          Response(absl::StrCat("Content-Encoding: ", coding,
                                "\r\nContent-Length: ", body.size(), "\r\n"),
                   body),
          999);
      QUIRE_EXPECT_OK(decoded.status);
      EXPECT_TRUE(decoded.payload == body)
          << coding << " of " << body.substr(0, 20);
    }
  }
  ExpectPayload(
      Response("Transfer-Encoding: utf-8, chunked\r\n", Chunked("text", 2)),
      "text");
  // Those that apply are removed, in any case.
  ExpectPayload(Response("Content-Encoding: GZIP, utf-8\r\n", Gzip("a")), "a");
  ExpectPayload(Response("Content-Encoding: BR\r\n", ";"), "");
}

TEST(PayloadDecoderTest, TakesSmallBodiesOff) {
  const std::string text = Text();
  for (size_t size = 0; size < 300; ++size) {
    const std::string part = text.substr(1000, size);
    const std::pair<const char*, std::string> coded[] = {
        {"gzip", Gzip(part)},
        {"br", Brotli(part)},
        {"zstd", Zstd(part)},
        {"deflate", Deflate(part, MAX_WBITS)},
        {"deflate", Deflate(part, -MAX_WBITS)}};
    for (const auto& [coding, body] : coded) {
      const Decoded decoded = Decode(
          Response(absl::StrCat("Content-Encoding: ", coding, "\r\n"), body));
      QUIRE_EXPECT_OK(decoded.status);
      EXPECT_EQ(decoded.payload, part) << coding;
    }
  }
}

// Bytes before the end are output, and the message names the missing part.
TEST(PayloadDecoderTest, TellsThatAPayloadIsCutShort) {
  const std::string text = Text();
  const std::string begin = "HTTP/1.1 200 OK\r\n";

  const struct {
    std::string record;
    std::string payload;
    const char* message;
  } cases[] = {
      {Response("Content-Length: 9\r\n", "body"), "body",
       "its body has 4 bytes, the Content-Length of HTTP says 9"},
      {Record("response", begin + "\r\nbody", "WARC-Truncated: length\r\n"),
       "body", "by the crawler (WARC-Truncated: length)"},
      {Record("resource", "body", "WARC-Truncated: time\r\n", "text/plain"),
       "body", "by the crawler (WARC-Truncated: time)"},
      {Record("response", begin), "", "inside its HTTP header"},
      // Two line ends follow the body.
      {Response("", "a longer body").substr(0, Response("", "").size() + 1),
       "a lon", "8 of the 32 bytes of its block are missing"},
      {"WARC/1.1\r\nWARC-Type: response\r\n", "", "inside its WARC header"},
      {"", "", "no bytes"},
      {Response("Transfer-Encoding: chunked\r\n", "5\r\nabc"), "abc",
       "2 bytes of a chunk are missing"},
      {Response("Transfer-Encoding: chunked\r\n", "3\r\nabc"), "abc",
       "at the end of a chunk"},
      {Response("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n"), "abc",
       "its last chunk is missing"},
      {Response("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n1"), "abc",
       "its last chunk is missing"}};

  for (const auto& c : cases) {
    for (const size_t piece_size : {size_t{1} << 20, size_t{3}}) {
      const Decoded decoded = Decode(c.record, piece_size);
      EXPECT_THAT(decoded.status,
                  FailsWith(absl::StatusCode::kDataLoss, HasSubstr(c.message)));
      EXPECT_EQ(decoded.payload, c.payload) << c.message;
    }
  }
  for (const auto& [coding, coded] : {std::pair("gzip", Gzip(text)),
                                      {"br", Brotli(text)},
                                      {"zstd", Zstd(text)},
                                      {"deflate", Deflate(text, MAX_WBITS)}}) {
    const std::string fields =
        absl::StrCat("Content-Encoding: ", coding, "\r\n");
    const Decoded decoded =
        Decode(Response(fields, coded.substr(0, coded.size() - 9)));
    EXPECT_THAT(decoded.status, FailsWith(absl::StatusCode::kDataLoss,
                                          HasSubstr("is cut short")));
    EXPECT_TRUE(text.starts_with(decoded.payload)) << coding;
    EXPECT_GT(decoded.payload.size(), 0u) << coding;
  }
}

// The decoder needs no minimum of coded bytes.
TEST(PayloadDecoderTest, DecodesTheBeginOfShortBodies) {
  const std::string text = Text().substr(0, 500);
  for (const auto& [coding, coded] : {std::pair("gzip", Gzip(text)),
                                      {"br", Brotli(text)},
                                      {"deflate", Deflate(text, MAX_WBITS)},
                                      {"deflate", Deflate(text, -MAX_WBITS)}}) {
    const std::string field = absl::StrCat("Content-Encoding: ", coding);
    const std::string cut = coded.substr(0, coded.size() - 9);
    const std::string whole = Response(field + "\r\n", coded);
    const std::string chunked = field + "\r\nTransfer-Encoding: chunked\r\n";
    for (const std::string& record :
         {whole.substr(0, whole.size() - 4 - 9),
          Response(
              absl::StrCat(field, "\r\nContent-Length: ", coded.size(), "\r\n"),
              cut),
          Response(chunked, Chunked(cut, 50, "")),
          Response(chunked, Chunked(cut, 50, "xyz\r\n")),
          Response(chunked, Chunked(coded, 1 << 20).substr(0, coded.size())),
          Record("response",
                 absl::StrCat("HTTP/1.1 200 OK\r\n", field, "\r\n\r\n", cut),
                 "WARC-Truncated: length\r\n")}) {
      for (const size_t piece_size : {size_t{1} << 20, size_t{3}}) {
        const Decoded decoded = Decode(record, piece_size);
        EXPECT_THAT(decoded.status, HasCode(absl::StatusCode::kDataLoss));
        EXPECT_TRUE(text.starts_with(decoded.payload)) << record;
        EXPECT_GT(decoded.payload.size(), text.size() / 4) << record;
      }
    }
  }
  // Less than a coding is recognised by.
  for (const auto& [fields, body, payload] :
       {std::tuple("Content-Encoding: gzip\r\n", "\x1F", ""),
        {"Content-Encoding: gzip\r\n", "a", "a"},
        {"Content-Encoding: zstd\r\n", "\x28\xB5", ""},
        {"Content-Encoding: zstd\r\n", "P", ""},
        {"Content-Encoding: deflate\r\n", "x", ""},
        {"Content-Encoding: zstd\r\n", "abc", "abc"},
        {"Content-Encoding: br\r\n", "abc", "abc"},
        {"Content-Encoding: deflate\r\n", "abc", "abc"},
        {"Transfer-Encoding: chunked\r\n", "abc def", "abc def"},
        {"Transfer-Encoding: chunked\r\n", "5", ""}}) {
    const std::string whole = Response(fields, absl::StrCat(body, "more"));
    const Decoded decoded = Decode(whole.substr(0, whole.size() - 8));
    EXPECT_THAT(decoded.status, FailsWith(absl::StatusCode::kDataLoss,
                                          HasSubstr("is cut short")));
    EXPECT_EQ(decoded.payload, payload) << fields << body;
  }
}

TEST(PayloadDecoderTest, TakesHeadersOfArcRecordsOff) {
  const std::string text = Text();
  ExpectPayload(
      ArcRecord("http://e.org/", "HTTP/1.1 200 OK\r\nX: y\r\n\r\nabc"), "abc");
  ExpectPayload(ArcRecord("http://e.org/a b",
                          absl::StrCat("HTTP/1.1 200 OK\r\n"
                                       "Content-Encoding: gzip\r\n\r\n",
                                       Gzip(text))),
                text);
  // Without a status line, and without HTTP.
  ExpectPayload(ArcRecord("http://e.org/", "<html>"), "<html>");
  ExpectPayload(ArcRecord("dns:e.org", "1.2.3.4\n"), "1.2.3.4\n");
  ExpectPayload(ArcRecord("filedesc://x.arc", "1 0 X\nURL\n"), "1 0 X\nURL\n");
  EXPECT_THAT(Decode(ArcRecord("http://e.org/", "HTTP/1.1 200 OK\r\n\r\nabc")
                         .substr(0, 68))
                  .status,
              FailsWith(absl::StatusCode::kDataLoss,
                        HasSubstr("of its block are missing")));
  EXPECT_THAT(
      Decode("http://e.org/ 1.2.3.4 20050622190850 text/html\n\nabc").status,
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("WARC record")));
}

TEST(PayloadDecoderTest, NamesTheFieldsOfArcRecords) {
  PayloadDecoder decoder;
  QUIRE_EXPECT_OK(decoder.Feed(
      AsBytes(ArcRecord("http://e.org/", "HTTP/1.1 404 X\r\n\r\nabc")),
      [](ByteView) { return absl::OkStatus(); }));
  ASSERT_NE(decoder.warc(), nullptr);
  EXPECT_EQ(decoder.warc()->type, "response");
  EXPECT_EQ(decoder.warc()->target_uri, "http://e.org/");
  EXPECT_EQ(decoder.warc()->date, "2005-06-22T19:08:50Z");
  ASSERT_NE(decoder.http(), nullptr);
  EXPECT_EQ(decoder.http()->status_code, 404);
}

TEST(PayloadDecoderTest, ReadsRecordsInLowerCase) {
  std::string record = Response("", "body");
  record.replace(0, 5, "warc/");
  ExpectPayload(record, "body");
  EXPECT_EQ(FindHttpStatus(AsBytes(record)).code, 200);
}

TEST(PayloadDecoderTest, PassesOverEmptyLinesBeforeHttp) {
  for (const char* const blank : {"\r\n", "\n\r\n", "\r\n\r\n\r\n"}) {
    ExpectPayload(
        Record("response", absl::StrCat(blank, "HTTP/1.1 200 OK\r\n\r\nabc")),
        "abc");
    ExpectPayload(
        Record("request", absl::StrCat(blank, "POST / HTTP/1.1\r\n\r\nabc")),
        "abc");
    // No HTTP: nothing is taken off.
    for (const char* const body : {"", "\r", "abc", "\rHTTP/1.1 200 OK"}) {
      ExpectPayload(Record("response", absl::StrCat(blank, body)),
                    absl::StrCat(blank, body));
    }
  }
  const std::string many = std::string(100, '\n') + "HTTP/1.1 200 OK\r\n\r\n";
  ExpectPayload(Record("response", many), many);
  ExpectPayload(Record("response", std::string(2'000'000, '\n')),
                std::string(2'000'000, '\n'));
}

TEST(PayloadDecoderTest, ResponsesWithoutABodyAreComplete) {
  for (const char* status : {"204 No Content", "304 Not Modified"}) {
    ExpectPayload(
        Record("response", absl::StrCat("HTTP/1.1 ", status,
                                        "\r\nContent-Length: 9\r\n"
                                        "Transfer-Encoding: chunked\r\n\r\n")),
        "");
    ExpectPayload(Record("response", absl::StrCat("HTTP/1.1 ", status,
                                                  "\r\nContent-Length: 9\r\n"
                                                  "\r\n")),
                  "");
  }
}

// Answers to HEAD, and redirects.
TEST(PayloadDecoderTest, BodiesOfNoByteAreComplete) {
  for (const char* status : {"200 OK", "301 Moved Permanently", "404 None"}) {
    for (const char* fields :
         {"Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n",
          "Content-Encoding: gzip\r\nContent-Length: 9\r\n",
          "Content-Encoding: br\r\nTransfer-Encoding: gzip, chunked\r\n"}) {
      ExpectPayload(Record("response", absl::StrCat("HTTP/1.1 ", status, "\r\n",
                                                    fields, "\r\n")),
                    "");
    }
  }
  EXPECT_TRUE(Decode(Response("Content-Length: 9\r\n", "")).plain.has_value());
  EXPECT_THAT(
      Decode(Record("response",
                    "HTTP/1.1 301 Moved\r\nContent-Length: 9\r\n\r\n",
                    "WARC-Truncated: length\r\n"))
          .status,
      FailsWith(absl::StatusCode::kDataLoss, HasSubstr("by the crawler")));
}

TEST(PayloadDecoderTest, RefusesDamage) {
  const std::string text = Text();
  for (const auto& [coding, coded] : {std::pair("gzip", Gzip(text)),
                                      {"br", Brotli(text)},
                                      {"zstd", Zstd(text)},
                                      {"deflate", Deflate(text, MAX_WBITS)}}) {
    std::string damaged = coded;
    for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i) {
      damaged[i] = static_cast<char>(~damaged[i]);
    }
    const Decoded decoded = Decode(
        Response(absl::StrCat("Content-Encoding: ", coding, "\r\n"), damaged));
    EXPECT_THAT(decoded.status, HasCode(absl::StatusCode::kDataLoss)) << coding;
  }

  const struct {
    std::string record;
    const char* message;
  } cases[] = {
      {Response("Content-Encoding: compress\r\n", "\x1F\x9Dx"), "\"compress\""},
      {Response("Content-Encoding: aes128gcm\r\n", "\x01\x02"),
       "\"aes128gcm\""},
      {Response("Transfer-Encoding: chunked\r\n", "1\r\na\r\nxyz\r\n"),
       "\"xyz\\x0D\\x0A\" where a chunk must begin"},
      {Response("Transfer-Encoding: chunked\r\n", "1\r\na\r\n1\r\nabc\r\n"),
       "where a chunk must end"},
      // Sizes of over 64 bits: 17 digits that end like a small number.
      {Response("Transfer-Encoding: chunked\r\n",
                "1\r\na\r\n10000000000000001\r\nb\r\n0\r\n\r\n"),
       "where a chunk must begin"},
      {Response("Transfer-Encoding: chunked\r\n",
                "1\r\na\r\nF0000000000000001\r\nb\r\n0\r\n\r\n"),
       "where a chunk must begin"},
      {Response("Content-Encoding: gzip,gzip,gzip,gzip,gzip,gzip\r\n", "x"),
       "6 codings"},
      {"HTTP/1.1 200 OK\r\n\r\nbody", "where a WARC record must start"},
      {"WARC/1.1\r\nWARC-Type: response\r\n\r\nbody", "Content-Length"},
      {"WARC/1.1\r\nContent-Length: -1\r\n\r\nbody", "got \"-1\""},
      {"WARC/1.1\r\n" + std::string(2 << 20, 'x'),
       "no empty line ends the WARC header within 1 MiB"}};

  for (const auto& c : cases) {
    EXPECT_THAT(Decode(c.record).status,
                FailsWith(absl::StatusCode::kDataLoss, HasSubstr(c.message)));
  }
}

TEST(PayloadDecoderTest, BoundsWhatCodedBodiesDecodeTo) {
  const std::string zeros(1 << 20, '\0');
  // Each layer expands its input.
  const std::string records[] = {
      Response("Content-Encoding: gzip\r\n", Gzip(zeros)),
      Response("Content-Encoding: br\r\n", Brotli(zeros)),
      Response("Content-Encoding: zstd\r\n", Zstd(zeros)),
      Response("Content-Encoding: gzip, gzip\r\n", Gzip(Gzip(zeros))),
      Response("Transfer-Encoding: chunked\r\n", Chunked(zeros, 1000))};
  for (const std::string& record : records) {
    const Decoded decoded = Decode(record, 1 << 20, zeros.size() - 1);
    EXPECT_THAT(decoded.status, FailsWith(absl::StatusCode::kResourceExhausted,
                                          HasSubstr("decodes to more than")));
    EXPECT_LT(decoded.payload.size(), zeros.size());
    EXPECT_TRUE(Decode(record, 1 << 20, zeros.size()).payload == zeros);
  }
  // Uncoded payloads have no limit.
  QUIRE_EXPECT_OK(Decode(Response("", zeros), 1 << 20, 1).status);
}

TEST(PayloadDecoderTest, ReturnsWhatTheSinkReturns) {
  PayloadDecoder decoder;
  EXPECT_THAT(decoder.Feed(
                  AsBytes(Response("Content-Encoding: gzip\r\n", Gzip("text"))),
                  [](ByteView) { return absl::AbortedError("full"); }),
              FailsWith(absl::StatusCode::kAborted, HasSubstr("full")));
}

}  // namespace
}  // namespace quire
