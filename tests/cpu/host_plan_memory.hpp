// Plan memory of exactly the asked size on the heap, so that a sanitizer sees an access outside.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "core/variant.hpp"

namespace convmish {

class HostPlanMemory : public PlanMemory {
 public:
  void* allocate(std::size_t bytes) override {
    blocks_.emplace_back(new (std::align_val_t{1024}) unsigned char[bytes]);
    return blocks_.back().get();
  }

 private:
  struct Free {
    void operator()(unsigned char* block) const { operator delete[](block, std::align_val_t{1024}); }
  };
  std::vector<std::unique_ptr<unsigned char[], Free>> blocks_;
};

}  // namespace convmish
