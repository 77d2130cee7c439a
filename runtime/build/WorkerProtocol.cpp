// Frames of the worker protocol.
#include "runtime/build/WorkerProtocol.h"

#include "kernel/Error.h"

#include <nlohmann/json.hpp>

#include <cerrno>

#include <sys/socket.h>

namespace weft::runtime {

using nlohmann::json;

namespace {

constexpr size_t lengthBytes = 8;
constexpr uint64_t longestBody =
    uint64_t(1) << 30;  // far above any kernel; anything longer is another protocol
constexpr const char *greeting = "weft build worker 1";

std::string frame(const json &message) {
  std::string body;
  json::to_cbor(message, body);
  return frameOfBody(body);
}

/// CBOR texts must be UTF-8; kernels edited by hand and logs need not be, so all contents travel as
/// bytes.
json bytesOf(std::string_view content) { return json::binary({content.begin(), content.end()}); }
std::string contentOf(const json &bytes) {
  const json::binary_t &content = bytes.get_binary();
  return {content.begin(), content.end()};
}

template <typename Message, typename Decode>
Message decode(std::string_view body, Decode &&from) {
  try {
    return from(json::from_cbor(body.begin(), body.end()));
  } catch (const json::exception &error) {
    throw Error::checkFailed("a message of the build worker cannot be read: {}", error.what());
  }
}

}  // namespace

std::string frameOfBody(std::string_view body) {
  std::string bytes;
  for (size_t i = 0; i < lengthBytes; ++i) bytes.push_back(char(uint64_t(body.size()) >> (8 * i)));
  return bytes.append(body);
}

std::string greetingFrame() { return frame(greeting); }

bool isGreeting(std::string_view body) {
  return json::from_cbor(body.begin(), body.end(), true, false) == json(greeting);
}

std::string frameOf(const WorkerRequest &request) {
  json headers = json::object();
  for (const auto &[name, text] : request.headers) headers[name] = bytesOf(text);
  return frame({{"library", bytesOf(request.library)},
                {"text", bytesOf(request.text)},
                {"flags", request.flags},
                {"headers", std::move(headers)}});
}

std::string frameOf(const WorkerReply &reply) {
  return frame({{"succeeded", reply.succeeded},
                {"cubin", bytesOf(reply.cubin)},
                {"ptx", bytesOf(reply.ptx)},
                {"log", bytesOf(reply.log)},
                {"seconds", reply.seconds}});
}

WorkerRequest requestFrom(std::string_view body) {
  return decode<WorkerRequest>(body, [](const json &message) {
    WorkerRequest request{.library = contentOf(message.at("library")),
                          .text = contentOf(message.at("text")),
                          .flags = message.at("flags").get<std::vector<std::string>>(),
                          .headers = {}};
    for (const auto &[name, text] : message.at("headers").items())
      request.headers.emplace(name, contentOf(text));
    return request;
  });
}

WorkerReply replyFrom(std::string_view body) {
  return decode<WorkerReply>(body, [](const json &message) {
    return WorkerReply{.succeeded = message.at("succeeded").get<bool>(),
                       .cubin = contentOf(message.at("cubin")),
                       .ptx = contentOf(message.at("ptx")),
                       .log = contentOf(message.at("log")),
                       .seconds = message.at("seconds").get<double>()};
  });
}

std::optional<std::string> FrameBuffer::next() {
  if (pending.size() < lengthBytes) return std::nullopt;
  uint64_t length = 0;
  for (size_t i = 0; i < lengthBytes; ++i) length |= uint64_t(uint8_t(pending[i])) << (8 * i);
  if (length > longestBody)
    throw Error::checkFailed("what the build worker sends is no message of a build worker");
  if (pending.size() < lengthBytes + length) return std::nullopt;
  std::string body = pending.substr(lengthBytes, length);
  pending.erase(0, lengthBytes + length);
  return body;
}

bool sendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    bytes.remove_prefix(size_t(sent));
  }
  return true;
}

}  // namespace weft::runtime
