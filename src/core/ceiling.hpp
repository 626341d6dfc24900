// What a device can reach, and the least time that it allows a shape.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/words.hpp"

namespace convmish {

/// Rates per second; absent where not known. A multiply-add is two FLOPs; tensor rates are dense, with fp32
/// accumulation.
struct Ceilings {
  std::optional<double> dram_bytes;  // bytes read plus bytes written
  std::optional<double> ffma_flops;
  std::optional<double> tensor_tf32_flops;
  std::optional<double> tensor_fp16_flops;
  std::optional<double> special_functions;  // exponentials or reciprocals
};

/// Every member of Ceilings.
inline constexpr std::array kCeilingRates{&Ceilings::dram_bytes, &Ceilings::ffma_flops,
                                          &Ceilings::tensor_tf32_flops, &Ceilings::tensor_fp16_flops,
                                          &Ceilings::special_functions};

/// What a device was measured to reach.
struct MeasuredCeilings {
  Ceilings rates;
  std::string gap;  // why a rate of this device that can be measured was not; empty: none is missing
};

/// All that is known of one device.
struct DeviceCeilings {
  MeasuredCeilings measured;
  std::string measured_at;  // ISO 8601, UTC: an earlier run may have measured; empty: none has
  Ceilings data_sheet;      // the vendor's own figures, see data_sheet.hpp

  /// Each rate as measured, or by the data sheet where it was not.
  Ceilings best() const;
};

/// Work that a shape asks of one ceiling.
struct Demand {
  std::string ceiling;         // dram, ffma, tensor_tf32, tensor_fp16 or special_function
  double amount = 0;           // bytes, FLOPs or operations
  std::optional<double> rate;  // the ceiling, a second

  std::optional<double> floor_ms() const { return rate ? std::optional(1e3 * amount / *rate) : std::nullopt; }
};

/// Least bytes, FLOPs x products of the pipe, special functions. A transform, or a pipe that a library
/// chooses, has no arithmetic demand.
std::vector<Demand> demands(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                            const Ceilings& ceilings);

struct Floor {
  double ms = 0;
  std::string binding_ceiling;  // that of the demand which takes longest
};

/// The largest of the demands' floors. Nothing where no rate is known.
std::optional<Floor> floor_of(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                              const Ceilings& ceilings);

/// The time below which a launch cannot have done what its variant declares, by the rates of the data sheet:
/// measured ones can be beaten. Nothing where the data sheet gives no such time.
///
/// Bytes: a last-level cache of `l2_bytes` may hold that much of the inputs before a launch, and keep as much
/// of the output after it; only the rest must pass through DRAM. Both rates have a margin, for a device may
/// run faster than its sheet: see ceiling.cpp. Special functions have none on a sheet.
std::optional<Floor> least_possible(const Shape& shape, Pipe pipe, int products, Algorithm algorithm,
                                    const Ceilings& data_sheet, std::int64_t l2_bytes);

}  // namespace convmish
