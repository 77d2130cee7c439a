// The C interface of NVRTC, declared here so that no CUDA header is needed, behind one class.
#include "runtime/build/Nvrtc.h"

#include "kernel/Error.h"

#include <dlfcn.h>

namespace weft::runtime {

// The signatures are those of nvrtc.h, unchanged since CUDA 11.1; nvrtcResult is an int and 0 is
// success.
struct Nvrtc::Functions {
  using Program = void *;
  int (*version)(int *major, int *minor);
  const char *(*errorText)(int result);
  int (*create)(Program *, const char *text, const char *name, int headerCount,
                const char *const *headerTexts, const char *const *headerNames);
  int (*destroy)(Program *);
  int (*compile)(Program, int flagCount, const char *const *flags);
  int (*cubinSize)(Program, size_t *);
  int (*cubin)(Program, char *);
  int (*ptxSize)(Program, size_t *);
  int (*ptx)(Program, char *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
};

namespace {

template <typename Function>
void resolve(void *handle, const std::filesystem::path &library, const char *name,
             Function &function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  if (!function)
    throw Error::badInput("{} is no NVRTC that weft can use: it has no {}", library.string(), name);
}

/// NVRTC hands out every text in two calls: its size, then its bytes. PTX and log end with a NUL,
/// which is dropped.
std::string fetch(void *program, int (*size)(void *, size_t *), int (*bytes)(void *, char *),
                  bool isText) {
  size_t count = 0;
  if (size(program, &count) != 0 || count == 0) return {};
  std::string content(count, '\0');
  if (bytes(program, content.data()) != 0) return {};
  if (isText && content.back() == '\0') content.pop_back();
  return content;
}

}  // namespace

Nvrtc::Nvrtc(const std::filesystem::path &library) : functions(std::make_unique<Functions>()) {
  // The path is absolute or a bare name; its builtins library lies beside it and is found by
  // NVRTC's own RUNPATH.
  handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw Error::badInput("NVRTC does not load: {}", dlerror());
  resolve(handle, library, "nvrtcVersion", functions->version);
  resolve(handle, library, "nvrtcGetErrorString", functions->errorText);
  resolve(handle, library, "nvrtcCreateProgram", functions->create);
  resolve(handle, library, "nvrtcDestroyProgram", functions->destroy);
  resolve(handle, library, "nvrtcCompileProgram", functions->compile);
  resolve(handle, library, "nvrtcGetCUBINSize", functions->cubinSize);
  resolve(handle, library, "nvrtcGetCUBIN", functions->cubin);
  resolve(handle, library, "nvrtcGetPTXSize", functions->ptxSize);
  resolve(handle, library, "nvrtcGetPTX", functions->ptx);
  resolve(handle, library, "nvrtcGetProgramLogSize", functions->logSize);
  resolve(handle, library, "nvrtcGetProgramLog", functions->log);
}

Nvrtc::~Nvrtc() {
  if (handle) dlclose(handle);
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions->version(&major, &minor);
  return fmt::format("{}.{}", major, minor);
}

Compilation Nvrtc::compile(const std::string &text, const std::vector<std::string> &flags,
                           const std::map<std::string, std::string> &headers) const {
  std::vector<const char *> names, texts, options;
  for (const auto &[name, content] : headers) {
    names.push_back(name.c_str());
    texts.push_back(content.c_str());
  }
  for (const std::string &flag : flags) options.push_back(flag.c_str());

  // The program's name is fixed: it is part of every message, and equal kernels must have equal
  // logs.
  Functions::Program program = nullptr;
  int result = functions->create(&program, text.c_str(), "kernel.cu", int(names.size()),
                                 texts.data(), names.data());
  Compilation compilation;
  if (result != 0) {
    compilation.log = functions->errorText(result);
    return compilation;
  }
  result = functions->compile(program, int(options.size()), options.data());
  compilation.succeeded = result == 0;
  compilation.log = fetch(program, functions->logSize, functions->log, true);
  if (compilation.succeeded) {
    compilation.cubin = fetch(program, functions->cubinSize, functions->cubin, false);
    compilation.ptx = fetch(program, functions->ptxSize, functions->ptx, true);
  } else if (compilation.log.empty()) {
    compilation.log = functions->errorText(result);
  }
  functions->destroy(&program);
  return compilation;
}

}  // namespace weft::runtime
