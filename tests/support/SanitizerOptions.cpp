// What the AddressSanitizer of preset asan is asked to leave out, in every program that is linked
// with it.
extern "C" const char *__asan_default_options();

const char *__asan_default_options() {
  // Debian's MLIR and LLVM are not instrumented. Their inline allocators, compiled into ours, would
  // poison memory that the shared libraries then use (allow_user_poisoning), and containers that
  // cross the border are annotated on one side only (detect_container_overflow). What MLIR keeps
  // for a context's life is no leak, and LeakSanitizer needs ptrace, which containers forbid.
  return "allow_user_poisoning=0:detect_container_overflow=0:detect_leaks=0:strict_init_order=1:"
         "abort_on_error=0";
}
