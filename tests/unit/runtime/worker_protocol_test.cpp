// Frames between build() and its workers.
#include <catch2/catch.hpp>

#include "kernel/Error.h"
#include "runtime/build/WorkerProtocol.h"

using namespace weft;
using namespace weft::runtime;

TEST_CASE("messages survive the way, byte by byte, with any content") {
  const WorkerRequest request{.library = "/lib/\xff",
                              .text = std::string("not UTF-8: \xc3\x28\0 end", 18),
                              .flags = {"-a", "--b=c"},
                              .headers = {{"weft/x.cuh", "\x80"}}};
  const WorkerReply reply{.succeeded = true,
                          .cubin = std::string("\0\x7f"
                                               "ELF\xff",
                                               6),
                          .ptx = "",
                          .log = "\xe9",
                          .seconds = 0.25};
  FrameBuffer frames;
  std::vector<std::string> bodies;
  for (const char byte : greetingFrame() + frameOf(request) + frameOf(reply)) {
    frames.append({&byte, 1});
    while (const auto body = frames.next()) bodies.push_back(*body);
  }
  REQUIRE(bodies.size() == 3);
  CHECK(isGreeting(bodies[0]));
  CHECK_FALSE(isGreeting(bodies[1]));
  CHECK(requestFrom(bodies[1]) == request);
  CHECK(replyFrom(bodies[2]) == reply);
}

TEST_CASE("what is no message is rejected") {
  FrameBuffer frames;
  frames.append("Usage: weft [OPTIONS]");
  CHECK_THROWS_AS(frames.next(), Error);
  CHECK_FALSE(isGreeting("\xff"));
  CHECK_THROWS_AS(replyFrom("\xff"), Error);
  CHECK_THROWS_AS(requestFrom(frameOf(WorkerReply{}).substr(8)), Error);
}
