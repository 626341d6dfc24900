// Variants for tests: a plain loop on the host, and copies of it that misbehave.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "check/acceptance.hpp"
#include "check/multiplicand.hpp"
#include "core/variant.hpp"

namespace convmish {

/// The operation in fp32, by the plainest loop.
inline void convolve_on_host(const Problem& problem, const LaunchArgs& args) {
  const Shape& s = problem.shape;
  float* y = args.y;
  for (std::int64_t n = 0; n < s.n; ++n)
    for (std::int64_t k = 0; k < s.k; ++k)
      for (std::int64_t p = 0; p < s.p(); ++p)
        for (std::int64_t q = 0; q < s.q(); ++q) {
          float z = problem.bias[k];
          for (std::int64_t c = 0; c < s.c; ++c)
            for (int tap = 0; tap < kTaps; ++tap)
              z += args.x[((n * s.c + c) * s.h + p + tap / 3) * s.w + q + tap % 3] *
                   problem.filter[(k * s.c + c) * kTaps + tap];
          *y++ = static_cast<float>(activation64(static_cast<double>(z)));
        }
}

/// The same, of multiplicands that are rounded first.
inline void convolve_rounded_on_host(const Problem& problem, const LaunchArgs& args,
                                     Multiplicands multiplicands) {
  const auto rounded = [multiplicands](const float* from, std::int64_t count) {
    std::vector<float> to(from, from + count);
    for (float& value : to) value = round_multiplicand(multiplicands, value);
    return to;
  };
  const std::vector<float> x = rounded(args.x, problem.shape.x_elements());
  const std::vector<float> filter = rounded(problem.filter, problem.shape.filter_elements());
  Problem coarse = problem;
  coarse.filter = filter.data();
  LaunchArgs on_coarse = args;
  on_coarse.x = x.data();
  convolve_on_host(coarse, on_coarse);
}

using HostLaunch = std::function<void(const Problem&, const LaunchArgs&)>;

inline Variant host_variant(std::string name, HostLaunch launch = convolve_on_host) {
  Variant variant;
  variant.name = std::move(name);
  variant.device = DeviceKind::cpu;
  variant.prepare = [launch = std::move(launch)](const Problem& problem) {
    Plan plan;
    plan.launch = [launch, problem](const LaunchArgs& args) { launch(problem, args); };
    return plan;
  };
  return variant;
}

}  // namespace convmish
