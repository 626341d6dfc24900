#include "worker/channel.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace convmish {

Channel& Channel::operator=(Channel&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

void Channel::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool Channel::send(char kind, std::string_view text) const {
  const auto bytes = static_cast<std::uint64_t>(text.size());
  return write_all(&kind, 1) && write_all(&bytes, sizeof bytes) && write_all(text.data(), text.size());
}

std::optional<Message> Channel::receive() const {
  Message message{};
  std::uint64_t bytes = 0;
  if (!read_all(&message.kind, 1) || !read_all(&bytes, sizeof bytes)) return std::nullopt;
  message.text.resize(bytes);
  if (!read_all(message.text.data(), message.text.size())) return std::nullopt;
  return message;
}

bool Channel::wait(std::chrono::milliseconds limit) const {
  pollfd entry{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, static_cast<int>(limit.count())) > 0;
}

bool Channel::read_all(void* to, std::size_t bytes) const {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = ::read(descriptor_, at, bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

bool Channel::write_all(const void* from, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t count = ::send(descriptor_, at, bytes, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}

std::pair<Channel, Channel> make_channel() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw EnvironmentError(std::string("socketpair: ") + std::strerror(errno));
  return {Channel(ends[0]), Channel(ends[1])};
}

}  // namespace convmish
