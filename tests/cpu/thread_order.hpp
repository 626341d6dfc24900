// A thread order for the rest of a scope.
#pragma once

#include "cpu/simt/executor.hpp"

namespace convmish {

class OrderScope {
 public:
  explicit OrderScope(simt::ThreadOrder order) : before_(simt::set_thread_order(order)) {}
  ~OrderScope() { simt::set_thread_order(before_); }
  OrderScope(const OrderScope&) = delete;
  OrderScope& operator=(const OrderScope&) = delete;

 private:
  simt::ThreadOrder before_;
};

}  // namespace convmish
