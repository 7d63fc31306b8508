// Streams: a thread each.
#include "tests/fakes/gpu.hpp"

namespace stepcast::fakes {
namespace {

thread_local const Stream::Running* running = nullptr;

}  // namespace

Stream::Stream(Gpu& gpu, std::size_t slot) : gpu_(gpu), slot_(slot) {
  thread_ = std::thread([this] { run(); });
}

Stream::~Stream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Stream::push(Kind kind, Operation operation) {
  Item item{kind, {}, std::move(operation)};
  {
    const std::lock_guard lock(gpu_.mutex);
    gpu_.host.times[0] = ++gpu_.times[0];
    item.host = gpu_.host;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.size() < kDepth; });
  queue_.push_back(std::move(item));
  changed_.notify_all();
}

void Stream::synchronize() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  const std::lock_guard gpu_lock(gpu_.mutex);
  gpu_.host.join(clock_);
}

void Stream::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || closing_; });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    busy_ = true;
    lock.unlock();
    execute(item);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

/// After a fault nothing runs on the GPU any more; what waits for others still does, so that these go on.
void Stream::execute(Item& item) {
  const Running context{gpu_, *this, clock_};
  std::unique_lock lock(gpu_.mutex);
  clock_.join(item.host);
  clock_.times[slot_] = ++gpu_.times[slot_];
  if (item.kind == Kind::shared) lock.unlock();
  else if (gpu_.broken) return;
  running = &context;
  try {
    item.operation(context);
  } catch (const Fault& fault) {
    state().fault("GPU " + std::to_string(gpu_.number) + ": " + fault.what());
    if (!lock.owns_lock()) lock.lock();
    gpu_.broken = true;
  }
  running = nullptr;
}

const void* touched(const void* place, std::size_t bytes, bool write) { return running->gpu.memory.touch(place, bytes, write, running->toucher()); }

cudaError_t launched(cudaStream_t handle, std::function<void()> kernel) {
  Stream* stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  stream->push(Stream::Kind::exclusive, [kernel = std::move(kernel)](const Stream::Running&) { kernel(); });
  const std::lock_guard lock(stream->gpu().mutex);
  return stream->gpu().broken ? cudaErrorIllegalAddress : cudaSuccess;
}

}  // namespace stepcast::fakes
