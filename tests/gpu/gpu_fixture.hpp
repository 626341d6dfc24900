// Tests that need a GPU: skipped, visibly, where there is none; failed there under CONVMISH_REQUIRE_GPU=1.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/device.hpp"
#include "core/error.hpp"

namespace convmish {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      device_ = make_cuda_device(0);
    } catch (const EnvironmentError& error) {
      const char* const required = std::getenv("CONVMISH_REQUIRE_GPU");
      if (required && std::string_view(required) == "1") FAIL() << error.what();
      GTEST_SKIP() << error.what();
    }
  }

  Device& device() { return *device_; }

 private:
  std::unique_ptr<Device> device_;
};

}  // namespace convmish
