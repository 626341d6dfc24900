// An element of a shared array whose reads and writes are recorded: for the form of a kernel that the
// executor runs to trace a block, so that the form it runs to compute pays nothing.
#pragma once

#include "cpu/simt/access_recorder.hpp"

namespace convmish::simt {

/// A T in every other respect, its size and alignment included. `kName.text` is the array's name.
template <class T, auto kName>
class RecordedElement {
 public:
  RecordedElement() = default;
  RecordedElement(const RecordedElement&) = default;
  RecordedElement& operator=(const RecordedElement& other) { return *this = static_cast<T>(other); }

  operator T() const {
    note(AccessKind::load);
    return value_;
  }
  RecordedElement& operator=(T value) {
    note(AccessKind::store);
    value_ = value;
    return *this;
  }

 private:
  static_assert(sizeof(T) <= 16, "no instruction reads or writes more a lane");

  void note(AccessKind kind) const { access_recorder->note(this, sizeof(T), kind, kName.text); }

  T value_;
};

}  // namespace convmish::simt
