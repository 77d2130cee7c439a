// What build() and its worker processes say to each other: frames of an 8-byte little-endian length
// and a CBOR object, over one socket. The worker greets first, then answers each request with one
// reply.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::runtime {

struct WorkerRequest {
  std::string library;  ///< path of NVRTC
  std::string text;
  std::vector<std::string> flags;
  std::map<std::string, std::string> headers;
  bool operator==(const WorkerRequest &) const = default;
};

struct WorkerReply {
  bool succeeded = false;
  std::string cubin, ptx, log;
  double seconds = 0;  ///< of processor time that the compilation took
  bool operator==(const WorkerReply &) const = default;
};

std::string greetingFrame();
bool isGreeting(std::string_view body);

std::string frameOf(const WorkerRequest &request);
std::string frameOf(const WorkerReply &reply);
/// A body of any other protocol behind its length.
std::string frameOfBody(std::string_view body);
/// Throw Error(checkFailed) for bytes that are no such message.
WorkerRequest requestFrom(std::string_view body);
WorkerReply replyFrom(std::string_view body);

/// Collects bytes as they arrive and gives back whole frames' bodies.
class FrameBuffer {
public:
  void append(std::string_view bytes) { pending.append(bytes); }
  /// The next whole body, without its length. Throws Error(checkFailed) for a length no message of
  /// ours has.
  std::optional<std::string> next();

private:
  std::string pending;
};

/// Sends all bytes of a frame; false when the other side is gone or does not read. Raises no
/// SIGPIPE.
bool sendAll(int socket, std::string_view frame);

}  // namespace weft::runtime
