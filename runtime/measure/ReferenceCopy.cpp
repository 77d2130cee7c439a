// The copy kernel as PTX, which every driver translates; see ReferenceCopy.h.
#include "runtime/measure/ReferenceCopy.h"

namespace weft::runtime {
namespace {

constexpr int64_t blocks = 128, threads = 256, bytesOfThread = 16;
constexpr int64_t bytesCopied = blocks * threads * bytesOfThread;

/// to[i] = from[i] for 16 bytes a thread.
constexpr std::string_view text = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry reference_copy(.param .u64 from, .param .u64 to) {
  .reg .b64 %address<6>;
  .reg .b32 %index<4>, %word<4>;
  ld.param.u64 %address0, [from];
  ld.param.u64 %address1, [to];
  mov.u32 %index0, %ctaid.x;
  mov.u32 %index1, %ntid.x;
  mov.u32 %index2, %tid.x;
  mad.lo.u32 %index3, %index0, %index1, %index2;
  mul.wide.u32 %address2, %index3, 16;
  add.u64 %address3, %address0, %address2;
  add.u64 %address4, %address1, %address2;
  ld.global.v4.b32 {%word0, %word1, %word2, %word3}, [%address3];
  st.global.v4.b32 [%address4], {%word0, %word1, %word2, %word3};
  ret;
}
)";

}  // namespace

ReferenceCopy::ReferenceCopy(const cuda::Context &context)
    : module(text),
      function(module.function("reference_copy")),
      sets(setsForColdL2(2 * bytesCopied, context.gpu().l2Bytes)) {}

Subject ReferenceCopy::subject() {
  if (memory.bytes() == 0) {
    memory = cuda::Buffer(sets * 2 * bytesCopied);
    cuda::fill(memory.address(), 0, memory.bytes());
  }
  const auto enqueue = [this](cuda::StreamHandle *stream, int set) {
    cuda::DevicePointer from = memory.address() + cuda::DevicePointer(set) * 2 * bytesCopied,
                        to = from + bytesCopied;
    const std::array<void *, 2> arguments{&from, &to};
    cuda::launch(function, {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, arguments, stream);
  };
  return {
      .name = "reference copy", .enqueue = enqueue, .sets = sets, .bytesPerSet = 2 * bytesCopied};
}

}  // namespace weft::runtime
