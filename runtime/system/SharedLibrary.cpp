// dlopen and dlsym; see SharedLibrary.h.
#include "runtime/system/SharedLibrary.h"

#include <dlfcn.h>

namespace weft::runtime {

SharedLibrary::SharedLibrary(const std::string &name)
    : handle(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!handle) problemText = dlerror();
}

void *SharedLibrary::address(const char *name) const { return dlsym(handle, name); }

}  // namespace weft::runtime
