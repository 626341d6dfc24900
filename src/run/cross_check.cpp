#include "run/cross_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "check/tensor_view.hpp"
#include "core/error.hpp"
#include "core/shape_text.hpp"

namespace convmish {
namespace {

constexpr Chunk whole_output(const Shape& s) {
  return {0, s.n, 0, s.k, 0, s.p(), s.q()};
}

/// z and s of one output, from inputs that are drawn here.
ReferencePoint host_reference(const FillSpec& spec, std::int64_t index) {
  const Shape& shape = spec.shape;
  const Chunk::At at = whole_output(shape).at(index);
  ReferencePoint point{.index = index};
  const auto add = [&point](double term) {
    point.z += term;
    point.s += std::fabs(term);
  };
  for (std::int64_t c = 0; c < shape.c; ++c)
    for (int tap = 0; tap < kTaps; ++tap) {
      const std::int64_t row = at.p + tap / kFilterSize, column = at.q + tap % kFilterSize;
      const float x = draw(spec, Tensor::x, ((at.n * shape.c + c) * shape.h + row) * shape.w + column);
      const float weight = draw(spec, Tensor::filter, (at.k * shape.c + c) * kTaps + tap);
      add(static_cast<double>(x) * static_cast<double>(weight));
    }
  add(static_cast<double>(draw(spec, Tensor::bias, at.k)));
  return point;
}

bool agree(double device, double host, double allowed) {
  if (std::isfinite(device) && std::isfinite(host)) return std::fabs(device - host) <= allowed;
  return device == host || (std::isnan(device) && std::isnan(host));
}

}  // namespace

std::vector<ReferencePoint> sample_outputs(const Shape& shape, std::uint64_t seed, std::int64_t count) {
  std::vector<std::int64_t> indices;
  if (count >= shape.y_elements()) {
    for (std::int64_t i = 0; i < shape.y_elements(); ++i) indices.push_back(i);
  } else {
    for (const std::int64_t n : {std::int64_t{0}, shape.n - 1})
      for (const std::int64_t k : {std::int64_t{0}, shape.k - 1})
        for (const std::int64_t p : {std::int64_t{0}, shape.p() - 1})
          for (const std::int64_t q : {std::int64_t{0}, shape.q() - 1})
            indices.push_back(whole_output(shape).index(n, k, p, q));
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::int64_t> any(0, shape.y_elements() - 1);
    const auto drop_repeats = [&indices] {
      std::ranges::sort(indices);
      const auto repeats = std::ranges::unique(indices);
      indices.erase(repeats.begin(), repeats.end());
    };
    for (drop_repeats(); static_cast<std::int64_t>(indices.size()) < count; drop_repeats())
      while (static_cast<std::int64_t>(indices.size()) < count) indices.push_back(any(random));
  }
  std::vector<ReferencePoint> samples;
  for (const std::int64_t index : indices) samples.push_back({.index = index});
  return samples;
}

void cross_check_reference(const FillSpec& spec, std::span<const ReferencePoint> samples) {
  // Twice the worst that two orders of summation can differ by, relative to s.
  const double unit = 2 * static_cast<double>(spec.shape.reduction() + 1) * 0x1p-52;
  std::atomic<std::size_t> next{0}, first_wrong{samples.size()};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < samples.size();) {
      const ReferencePoint host = host_reference(spec, samples[i].index);
      const double allowed = unit * host.s;
      // An s of NaN marks an output that a class leaves open (AcceptanceRule).
      const bool right = agree(samples[i].z, host.z, allowed) &&
                         (std::isnan(samples[i].s) || agree(samples[i].s, host.s, allowed));
      if (right) continue;
      for (std::size_t least = first_wrong; i < least && !first_wrong.compare_exchange_weak(least, i);) {
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) others.emplace_back(work);
    work();
  }
  if (first_wrong == samples.size()) return;
  const ReferencePoint& device = samples[first_wrong];
  const ReferencePoint host = host_reference(spec, device.index);
  const Chunk::At at = whole_output(spec.shape).at(device.index);
  throw EnvironmentError(fmt::format(
      "the device's float64 reference is wrong: shape {}, fill {}, n{} k{} p{} q{}: z = {}, S = {}; the host "
      "finds z = {}, S = {}",
      to_string(spec.shape), to_string(spec.fill), at.n, at.k, at.p, at.q, device.z, device.s, host.z,
      host.s));
}

}  // namespace convmish
