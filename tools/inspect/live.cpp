#include "tools/inspect/live.h"

#include <fmt/format.h>
#include <httplib.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <ctime>
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

// The processor's time that this thread has taken, in seconds.
double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

using Clock = std::chrono::steady_clock;
// A page asks every second.
constexpr std::chrono::milliseconds kPatience{2500};

struct LiveServer::Inside {
  std::mutex mutex;  // of all up to the next empty line
  Report report;
  bool ended = false, told = false;  // told: a page knows of the end
  double serving = 0;                // seconds
  std::optional<Clock::time_point> asked;
  std::condition_variable on_told;

  std::string token = random_token(), url, origin;
  httplib::Server server;
  std::thread thread;

  // Training waits for a copy at most, never for a page to be made.
  std::string page() {
    constexpr std::size_t kBudget = 16'000'000;
    std::unique_lock<std::mutex> hold(mutex);
    Report copy = report;
    hold.unlock();
    return copy.history.empty() ? std::string() : report_html(std::move(copy), kBudget);
  }

  void tell() {
    const std::lock_guard<std::mutex> hold(mutex);
    told = true;
    on_told.notify_all();
  }

  // Gives make()'s text as an answer, and counts the time that making it took.
  template <class F>
  std::string timed(F make) {
    const double start = thread_seconds();
    std::string text = make();
    const std::lock_guard<std::mutex> hold(mutex);
    serving += thread_seconds() - start;
    return text;
  }

  // The curves, and the snapshots after a step; a page that has none yet asks with -1.
  std::string growth(std::int64_t after) {
    Report part;
    std::unique_lock<std::mutex> hold(mutex);
    const bool end = ended;
    asked = Clock::now();
    part.rule = report.rule;
    part.metrics = report.metrics;
    part.history.heads = report.history.heads;
    for (const PackedSnapshot& snapshot : report.history.snapshots)
      if (static_cast<std::int64_t>(snapshot.step) > after) part.history.snapshots.push_back(snapshot);
    hold.unlock();
    return report_growth(part, end);
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
    const std::string page = in.timed([&] { return in.page(); });
    if (page.empty()) response.status = 503;  // the first snapshot is about to be taken
    response.set_content(page.empty() ? "Training is about to begin: load this again." : page,
                         page.empty() ? "text/plain" : "text/html; charset=utf-8");
  });
  in.server.Get("/" + in.token + "/more", [&in](const httplib::Request& request, httplib::Response& response) {
    const std::string after = request.get_param_value("after");
    std::int64_t step = -1;
    const auto [end, error] = std::from_chars(after.data(), after.data() + after.size(), step);
    if (error == std::errc() && end == after.data() + after.size())
      response.set_content(in.timed([&] { return in.growth(step); }), "application/json");
    else
      response.status = 400;
  });
  in.server.set_logger([&in](const httplib::Request&, const httplib::Response& response) {  // it has been sent
    if (response.body.ends_with("\"done\":true}")) in.tell();
  });
  in.thread = std::thread([&in] { in.server.listen_after_bind(); });
}

LiveServer::~LiveServer() {
  std::unique_lock<std::mutex> hold(inside_->mutex);
  inside_->ended = true;
  if (inside_->asked && Clock::now() - *inside_->asked < kPatience)
    inside_->on_told.wait_for(hold, kPatience, [this] { return inside_->told; });
  hold.unlock();
  inside_->server.stop();
  inside_->thread.join();
}

const std::string& LiveServer::url() const { return inside_->url; }

double LiveServer::serving_seconds() const {
  const std::lock_guard<std::mutex> hold(inside_->mutex);
  return inside_->serving;
}

template <class F>
void LiveServer::change(F f) {
  const Clock::time_point start = Clock::now();
  {
    const std::lock_guard<std::mutex> hold(inside_->mutex);
    f(inside_->report);
  }
  seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
}

void LiveServer::add(const Metrics::Step& step) {
  change([&](Report& report) { report.metrics.steps.push_back(step); });
}

void LiveServer::add(const Metrics::Evaluation& evaluation) {
  change([&](Report& report) { report.metrics.evaluations.push_back(evaluation); });
}

void LiveServer::add(const AttentionHistory& history) {
  change([&](Report& report) {
    AttentionHistory& ours = report.history;
    if (ours.heads.empty()) ours.heads = history.heads;
    for (const PackedSnapshot& s : history.snapshots)
      if (ours.empty() || s.step > ours.snapshots.back().step)
        ours.snapshots.push_back({s.step, s.loss, s.exact_match, s.reason, s.weights, {}});
  });
}

}  // namespace tapehead
