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
    note(AccessKind::load, sizeof(T));
    return value_;
  }
  RecordedElement& operator=(T value) {
    note(AccessKind::store, sizeof(T));
    value_ = value;
    return *this;
  }

  // As many elements from this one on as make up a Vector, by one instruction:
  template <class Vector>
  Vector load_as() const {
    note(AccessKind::load, sizeof(Vector));
    return *reinterpret_cast<const Vector*>(&value_);
  }
  template <class Vector>
  void store_as(const Vector& vector) {
    note(AccessKind::store, sizeof(Vector));
    *reinterpret_cast<Vector*>(&value_) = vector;
  }

 private:
  static_assert(sizeof(T) <= 16, "no instruction reads or writes more a lane");

  void note(AccessKind kind, std::size_t bytes) const {
    access_recorder->note(this, bytes, kind, kName.text);
  }

  T value_;
};

}  // namespace convmish::simt
