#include "tools/inspect/live.h"

#include <fmt/format.h>
#include <httplib.h>

#include <mutex>
#include <random>
#include <thread>

#include "autograd/error.h"

namespace tapehead {

namespace {

std::string random_token() {
  std::random_device random;  // of the system
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return token;
}

}  // namespace

struct LiveServer::Inside {
  std::mutex mutex;  // of report
  Report report;
  std::string token = random_token(), url, origin;
  httplib::Server server;
  std::thread thread;

  std::string page() {
    const std::lock_guard<std::mutex> hold(mutex);
    constexpr std::size_t kBudget = 16'000'000;
    if (report.history.empty()) return {};
    return report_html(report, kBudget);
  }
  std::string state() {
    const std::lock_guard<std::mutex> hold(mutex);
    const std::uint64_t step = report.metrics.steps.empty() ? 0 : report.metrics.steps.back().step;
    return fmt::format(R"({{"snapshots": {}, "step": {}}})", report.history.size(), step);
  }
};

LiveServer::LiveServer(Report base) : inside_(std::make_unique<Inside>()) {
  Inside& in = *inside_;
  in.report = std::move(base);
  const int port = in.server.bind_to_any_port("127.0.0.1");
  if (port <= 0) throw Error(error_line("live", "no port of this machine can be bound"));
  in.origin = fmt::format("127.0.0.1:{}", port);
  in.url = fmt::format("http://{}/{}/", in.origin, in.token);
  in.report.live = "http://" + in.origin;
  in.server.set_default_headers({{"Cache-Control", "no-store"},
                                 {"X-Content-Type-Options", "nosniff"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"Cross-Origin-Resource-Policy", "same-origin"}});
  in.server.set_pre_routing_handler([&in](const httplib::Request& request, httplib::Response& response) {
    if (request.get_header_value("Host") == in.origin) return httplib::Server::HandlerResponse::Unhandled;
    response.status = 403;
    return httplib::Server::HandlerResponse::Handled;
  });
  in.server.Get("/" + in.token + "/", [&in](const httplib::Request&, httplib::Response& response) {
    const std::string page = in.page();
    if (page.empty()) response.status = 503;  // the first snapshot is about to be taken
    response.set_content(page.empty() ? "Training is about to begin: load this again." : page,
                         page.empty() ? "text/plain" : "text/html; charset=utf-8");
  });
  in.server.Get("/" + in.token + "/state", [&in](const httplib::Request&, httplib::Response& response) {
    response.set_content(in.state(), "application/json");
  });
  in.thread = std::thread([&in] { in.server.listen_after_bind(); });
}

LiveServer::~LiveServer() {
  inside_->server.stop();
  inside_->thread.join();
}

const std::string& LiveServer::url() const { return inside_->url; }

void LiveServer::add(const Metrics::Step& step) {
  const std::lock_guard<std::mutex> hold(inside_->mutex);
  inside_->report.metrics.steps.push_back(step);
}

void LiveServer::add(const Metrics::Evaluation& evaluation) {
  const std::lock_guard<std::mutex> hold(inside_->mutex);
  inside_->report.metrics.evaluations.push_back(evaluation);
}

void LiveServer::add(const AttentionHistory& history) {
  PackedSnapshot snapshot = history.snapshots.back();
  snapshot.parameters.clear();
  const std::lock_guard<std::mutex> hold(inside_->mutex);
  AttentionHistory& ours = inside_->report.history;
  if (ours.heads.empty()) ours.heads = history.heads;
  ours.snapshots.push_back(std::move(snapshot));
}

}  // namespace tapehead
