#include "worker/worker.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "core/shape_text.hpp"
#include "report/json.hpp"
#include "run/reasons.hpp"
#include "worker/channel.hpp"

namespace convmish {
namespace {

// Kinds of messages.
constexpr char kHello = 'h';      // worker: free bytes, then a Report with environment and ceilings, no cases
constexpr char kRefused = 'x';    // worker: exit code and message of what opening the device threw
constexpr char kRun = 'r';        // parent: a shape, and the variants as addresses (the child is a copy)
constexpr char kSoFar = 's';      // worker: the cases of the shape as they stand, one a line
constexpr char kDone = 'd';       // worker: the same, finished
constexpr char kException = 'e';  // worker: run_shape() threw this; the worker ends
constexpr char kMachine = 'm';    // worker: the same, but no variant is to blame

constexpr std::chrono::seconds kOpenLimit{60};   // a GPU's driver may take long, whatever a case may take
constexpr std::chrono::seconds kFarewell{10};    // how long a worker that has nothing to do may take to end
constexpr std::chrono::milliseconds kTick{100};  // how often the parent looks at what the child does

/// In memory that both processes map. One writer; a reader that catches a half-changed step shows it for a
/// tick.
struct SharedStep {
  std::atomic<std::uint64_t> sequence{0};
  std::atomic<const Variant*> variant{nullptr};  // valid in both: the child is a copy of the parent
  std::atomic<Step> step{Step{}};
};

SharedStep* map_shared_step() {
  void* const memory =
      ::mmap(nullptr, sizeof(SharedStep), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw EnvironmentError(std::string("mmap: ") + std::strerror(errno));
  return new (memory) SharedStep;
}

struct Request {
  Shape shape;
  std::vector<const Variant*> variants;
};

std::string encode(const Request& request) {
  std::string text = to_string(request.shape);
  for (const Variant* variant : request.variants) text += fmt::format(" {}", fmt::ptr(variant));
  return text;
}

Request decode_request(const std::string& text) {
  Request request;
  std::size_t at = text.find(' ');
  request.shape = parse_shape(text.substr(0, at));
  while (at != std::string::npos) {
    request.variants.push_back(
        reinterpret_cast<const Variant*>(std::stoull(text.substr(at + 1), nullptr, 16)));
    at = text.find(' ', at + 1);
  }
  return request;
}

std::string encode(const std::vector<CaseResult>& results) {
  std::string text;
  for (const CaseResult& result : results) text += to_json_line(result) + '\n';
  return text;
}

std::vector<CaseResult> decode_results(std::string_view text) {
  std::vector<CaseResult> results;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    results.push_back(case_from_json(text.substr(0, end), "worker"));
    text.remove_prefix(end + 1);
  }
  return results;
}

/// The child's life.
void serve(const std::function<OpenedDevice()>& open, RunnerOptions options, SharedStep& shared,
           const Channel& parent) {
  OpenedDevice opened;
  try {
    opened = open();
    Report hello;
    hello.plan.device_reason = opened.reason;
    opened.device->describe(hello.environment);
    hello.environment.device = opened.device->info();
    if (!options.ceilings && options.run.time && opened.ceilings)
      options.ceilings = opened.ceilings(*opened.device);
    hello.ceilings = options.ceilings;
    parent.send(kHello, fmt::format("{}\n{}", opened.device->free_bytes(), to_json(hello)));
  } catch (const InputError& error) {
    parent.send(kRefused, fmt::format("{}{}", static_cast<int>(ExitCode::usage), error.what()));
    return;
  } catch (const std::exception& error) {
    parent.send(kRefused, fmt::format("{}{}", static_cast<int>(ExitCode::environment), error.what()));
    return;
  }
  const RunObserver observer{
      .step =
          [&shared](const Variant& variant, const Step& step) {
            shared.variant = &variant;
            shared.step = step;
            ++shared.sequence;
          },
      .so_far = [&parent](const std::vector<CaseResult>& results) { parent.send(kSoFar, encode(results)); }};
  while (const auto message = parent.receive()) {
    const Request request = decode_request(message->text);
    try {
      parent.send(kDone,
                  encode(run_shape(*opened.device, request.variants, request.shape, options, observer)));
    } catch (const EnvironmentError& error) {
      parent.send(kMachine, error.what());
      return;
    } catch (const std::exception& error) {
      parent.send(kException, error.what());
      return;
    }
    shared.variant = nullptr;
  }
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    return fmt::format("killed by SIG{} ({})", sigabbrev_np(number), sigdescr_np(number));
  }
  return fmt::format("the process ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

struct Worker::Impl {
  ~Impl() {
    channel.close();  // the child's loop ends, unless something that it left behind holds it up
    const auto patience = std::chrono::steady_clock::now() + kFarewell;
    while (child > 0 && ::waitpid(child, nullptr, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > patience) ::kill(child, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    ::munmap(shared, sizeof *shared);
  }

  int reap() {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    child = -1;
    return status;
  }

  /// Waits for the child's next message; kills it when a step outlasts the limit.
  Message await(std::chrono::seconds limit, const RunObserver& observer) {
    auto since = std::chrono::steady_clock::now(), tick = since;
    while (!channel.wait(kTick)) {
      // A much longer tick: this process was stopped, and the child with it.
      const auto last_tick = std::exchange(tick, std::chrono::steady_clock::now());
      if (tick - last_tick > 10 * kTick) since += tick - last_tick;
      if (const std::uint64_t now = shared->sequence; now != seen) {
        seen = now;
        since = std::chrono::steady_clock::now();
      }
      if (const Variant* variant = shared->variant; variant && observer.step)
        observer.step(*variant, shared->step.load());
      if (std::chrono::steady_clock::now() - since < limit) continue;
      ::kill(child, SIGKILL);
      reap();
      throw WorkerDied(
          Verdict::timed_out, std::string(reason::time_limit),
          fmt::format("no end within {} s of: {}", limit.count(), to_string(shared->step.load())));
    }
    if (auto message = channel.receive()) return std::move(*message);
    const int status = reap();
    throw WorkerDied(Verdict::crashed, std::string(reason::process_died),
                     fmt::format("{} during: {}", describe_end(status), to_string(shared->step.load())));
  }

  std::chrono::seconds timeout;
  std::uint64_t seen = 0;  // the last step that was told
  SharedStep* shared = map_shared_step();
  Channel channel{-1};
  pid_t child = -1;
  DeviceReport device;
};

Worker::Worker(const std::function<OpenedDevice()>& open, const RunnerOptions& options,
               std::chrono::seconds timeout)
    : impl_(std::make_unique<Impl>()) {
  impl_->timeout = timeout;
  auto [ours, theirs] = make_channel();
  std::fflush(nullptr);  // or the child would print what is still buffered once more
  impl_->child = ::fork();
  if (impl_->child < 0) throw EnvironmentError(std::string("fork: ") + std::strerror(errno));
  if (impl_->child == 0) {
    ours.close();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlive the parent, whatever ends it
    int code = 0;
    try {
      serve(open, options, *impl_->shared, theirs);
    } catch (const std::exception& error) {  // not to unwind into the parent's copies
      fmt::print(stderr, "convmish-bench: worker: {}\n", error.what());
      code = static_cast<int>(ExitCode::environment);
    }
    std::fflush(nullptr);
    ::_exit(code);  // no destructors of the parent's copies
  }
  impl_->channel = std::move(ours);

  const Message hello = impl_->await(std::max(timeout, kOpenLimit), {});
  if (hello.kind == kRefused) {
    const std::string text = hello.text.substr(1);
    if (hello.text[0] - '0' == static_cast<int>(ExitCode::usage)) throw InputError(text);
    throw EnvironmentError(text);
  }
  const std::size_t line_end = hello.text.find('\n');
  const Report report = report_from_json(hello.text.substr(line_end + 1), "worker");
  impl_->device = {report.environment, report.plan.device_reason, std::stoll(hello.text.substr(0, line_end)),
                   report.ceilings};
}

Worker::~Worker() = default;

const DeviceReport& Worker::device() const {
  return impl_->device;
}
const Variant* Worker::running() const {
  return impl_->shared->variant;
}

std::vector<CaseResult> Worker::run(const Shape& shape, const std::vector<const Variant*>& variants,
                                    const RunObserver& observer) {
  if (!impl_->channel.send(kRun, encode({shape, variants})))
    throw WorkerDied(Verdict::crashed, std::string(reason::process_died), "the worker is gone");
  while (true) {
    const Message answer = impl_->await(impl_->timeout, observer);
    switch (answer.kind) {
      case kSoFar:
        if (observer.so_far) observer.so_far(decode_results(answer.text));
        break;
      case kDone:
        return decode_results(answer.text);
      case kMachine:
        throw EnvironmentError(answer.text);
      default:
        throw WorkerDied(Verdict::crashed, std::string(reason::device_error),
                         fmt::format("{} (during: {})", answer.text, to_string(impl_->shared->step.load())));
    }
  }
}

Supervisor::Supervisor(std::function<OpenedDevice()> open, RunnerOptions options,
                       std::chrono::seconds timeout)
    : open_(std::move(open)),
      options_(std::move(options)),
      timeout_(timeout),
      worker_(std::make_unique<Worker>(open_, options_, timeout_)) {
  options_.ceilings = worker_->device().ceilings;  // of the device: the next worker need not measure anew
}

std::vector<CaseResult> Supervisor::run(const Shape& shape, const std::vector<const Variant*>& variants,
                                        const RunObserver& observer) {
  std::vector<const Variant*> alive = variants;
  std::map<const Variant*, CaseResult> lost;
  const auto with_lost = [&](const std::vector<CaseResult>& done) {  // in the order that was asked for
    std::vector<CaseResult> results;
    auto next = done.begin();
    for (const Variant* variant : variants) {
      const auto it = lost.find(variant);
      results.push_back(it != lost.end() ? it->second : *next++);
    }
    return results;
  };
  RunObserver of_worker{.step = observer.step};
  if (observer.so_far)
    of_worker.so_far = [&](const std::vector<CaseResult>& results) { observer.so_far(with_lost(results)); };
  while (true) {
    try {
      return with_lost(worker_->run(shape, alive, of_worker));
    } catch (const WorkerDied& death) {
      const Variant* const culprit = worker_->running();
      worker_.reset();  // before its successor: the device may be exclusive
      worker_ = std::make_unique<Worker>(open_, options_, timeout_);
      if (!culprit) throw EnvironmentError(std::string("outside any variant: ") + death.what());
      CaseResult result = new_case(*culprit, shape, options_.run, device().environment.device);
      result.verdict = death.verdict;
      result.reason = death.reason;
      result.detail = death.what();
      lost.emplace(culprit, std::move(result));
      std::erase(alive, culprit);
    }
  }
}

}  // namespace convmish
