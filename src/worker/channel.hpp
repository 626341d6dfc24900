// Messages between two processes: a kind and a text.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace convmish {

struct Message {
  char kind;
  std::string text;
};

/// One end of a two-way connection.
class Channel {
 public:
  explicit Channel(int descriptor) : descriptor_(descriptor) {}
  ~Channel() { close(); }
  Channel(Channel&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Channel& operator=(Channel&& other) noexcept;

  void close();

  /// False when the other end is closed.
  bool send(char kind, std::string_view text) const;
  /// Nothing when the other end is closed.
  std::optional<Message> receive() const;
  /// Waits; false when nothing has come within `limit`.
  bool wait(std::chrono::milliseconds limit) const;

 private:
  bool read_all(void* to, std::size_t bytes) const;
  bool write_all(const void* from, std::size_t bytes) const;

  int descriptor_;
};

/// The two ends of a new connection, closed on exec. Throws EnvironmentError.
std::pair<Channel, Channel> make_channel();

}  // namespace convmish
