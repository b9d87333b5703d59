// SPDX-License-Identifier: GPL-3.0-or-later
#include "server/service/admin_server.h"

#include <CivetServer.h>

#include <exception>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

#include "codecs/base/status_macros.h"
#include "server/service/listen_address.h"

namespace quire {
namespace {

// One that reads its answer slowly has one of them.
constexpr char kThreads[] = "4";
constexpr char kRequestTimeoutMs[] = "10000";

struct Page {
  int code = 200;
  std::string text;
};

bool Send(mg_connection* connection, const char* type, const Page& page) {
  mg_printf(connection,
            "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n",
            page.code, page.code == 200 ? "OK" : "Service Unavailable", type,
            page.text.size());
  if (std::string(mg_get_request_info(connection)->request_method) != "HEAD") {
    mg_write(connection, page.text.data(), page.text.size());
  }
  return true;
}

// A page that a function makes.
class PageHandler final : public CivetHandler {
 public:
  PageHandler(const char* type, std::function<Page()> make)
      : type_(type), make_(std::move(make)) {}

  bool handleGet(CivetServer* /*server*/, mg_connection* connection) override {
    return Send(connection, type_, make_());
  }

  bool handleHead(CivetServer* /*server*/, mg_connection* connection) override {
    return Send(connection, type_, make_());
  }

 private:
  const char* const type_;
  const std::function<Page()> make_;
};

class AdminServerImpl final : public AdminServer {
 public:
  // Throws CivetException.
  AdminServerImpl(const std::string& address, const AdminPages& pages)
      : metrics_("text/plain; version=0.0.4; charset=utf-8",
                 [pages] { return Page{.text = pages.metrics()}; }),
        health_("text/plain", [] { return Page{.text = "alive\n"}; }),
        ready_("text/plain",
               [pages] {
                 return pages.is_ready()
                            ? Page{.text = "ready\n"}
                            : Page{.code = 503,
                                   .text =
                                       "archives are being opened, or the "
                                       "server drains\n"};
               }),
        server_(std::vector<std::string>{
            "listening_ports", address, "num_threads", kThreads,
            "request_timeout_ms", kRequestTimeoutMs}) {
    server_.addHandler("/metrics$", metrics_);
    server_.addHandler("/healthz$", health_);
    server_.addHandler("/readyz$", ready_);
    const std::vector<int> ports = server_.getListeningPorts();
    address_ = WithPort(address, ports.empty() ? 0 : ports.front());
  }

  const std::string& address() const override { return address_; }

 private:
  PageHandler metrics_;
  PageHandler health_;
  PageHandler ready_;
  std::string address_;
  // The last: it ends before what it shows.
  CivetServer server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Open(
    const std::string& address, const AdminPages& pages) {
  QUIRE_RETURN_IF_ERROR(CheckMetricsAddress(address));
  try {
    return std::make_unique<AdminServerImpl>(address, pages);
  } catch (const std::exception&) {
    // What it says names classes of the library that serves it.
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot serve metrics on ", address, ": ", WhyNotListening(address),
        "; choose another address with --admin or --metrics"));
  }
}

}  // namespace quire
