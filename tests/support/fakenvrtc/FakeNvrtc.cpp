// A stand-in for NVRTC: the "cubin" of a text is the text behind a first line "host", by which the
// stand-in for the driver knows that a test says what its kernels do
// (tests/support/fakecuda/FakeCuda.h). A text that holds $FAKE_NVRTC_REJECTS is rejected.
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int ok = 0, compilationFailed = 6;

struct Program {
  std::string text, cubin, log;
};

int size(const std::string &content, size_t *count) { return *count = content.size(), ok; }
int bytes(const std::string &content, char *to) {
  return std::memcpy(to, content.data(), content.size()), ok;
}
Program &programOf(void *handle) { return *static_cast<Program *>(handle); }

}  // namespace

extern "C" {
int nvrtcVersion(int *major, int *minor) { return *major = 13, *minor = 0, ok; }
const char *nvrtcGetErrorString(int) { return "as the stand-in was told"; }
int nvrtcCreateProgram(void **program, const char *text, const char *, int, const char *const *,
                       const char *const *) {
  return *program = new Program{.text = text, .cubin = {}, .log = {}}, ok;
}
int nvrtcDestroyProgram(void **program) { return delete static_cast<Program *>(*program), ok; }
int nvrtcCompileProgram(void *handle, int, const char *const *) {
  Program &program = programOf(handle);
  const char *rejected = std::getenv("FAKE_NVRTC_REJECTS");
  if (rejected && program.text.find(rejected) != std::string::npos)
    return program.log = "kernel.cu(1): error: the stand-in rejects this text\n", compilationFailed;
  program.cubin = "host\n" + program.text;
  return ok;
}
int nvrtcGetCUBINSize(void *program, size_t *count) {
  return size(programOf(program).cubin, count);
}
int nvrtcGetCUBIN(void *program, char *to) { return bytes(programOf(program).cubin, to); }
int nvrtcGetPTXSize(void *program, size_t *count) { return size(programOf(program).text, count); }
int nvrtcGetPTX(void *program, char *to) { return bytes(programOf(program).text, to); }
int nvrtcGetProgramLogSize(void *program, size_t *count) {
  return size(programOf(program).log, count);
}
int nvrtcGetProgramLog(void *program, char *to) { return bytes(programOf(program).log, to); }
}
