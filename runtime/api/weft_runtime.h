/* libweft_runtime.so: artifacts on a GPU from C, Python (ctypes) or anything that can call C. No
 * MLIR, no CUDA headers.
 *
 * Every function that can fail returns 0 or the exit code that weft would give (1 a check or a
 * kernel failed, 2 bad input, 3 not supported); weft_last_error() then has the text. An artifact is
 * used by one thread at a time. It lives in the primary context of its GPU, as the CUDA runtime and
 * PyTorch do, so that their pointers and streams can be given as they are. */
#ifndef WEFT_RUNTIME_H
#define WEFT_RUNTIME_H

#include <stdint.h>

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_artifact weft_artifact;

/* Of the last call that failed on this thread; valid until the next one. Never null. */
WEFT_API const char *weft_last_error(void);

/* Loads an artifact's folder onto a GPU: modules, workspace, memory for parameters. Callers bring
 * inputs and outputs. */
WEFT_API int weft_open(const char *folder, int gpu, weft_artifact **artifact);
WEFT_API void weft_close(weft_artifact *artifact);

enum weft_tensor_kind { WEFT_INPUT = 0, WEFT_OUTPUT = 1, WEFT_PARAMETER = 2 };

/* `order`: the dimensions, slowest in memory first; inputs and outputs are dense in that order.
 * Parameters are given in logical row-major order, whatever it says. Strings and arrays live as
 * long as the artifact. */
typedef struct weft_tensor {
  const char *name;
  const char *dtype; /* "f16", "bf16", "f32", "f8e4m3", "f8e5m2", "i32", "i1" */
  int rank;
  const int64_t *extents;
  const int *order;
} weft_tensor;

/* Inputs and outputs are those of the entry point; parameters are the artifact's, `entry` is not
 * read. -1 for an unknown entry point. */
WEFT_API int weft_tensor_count(weft_artifact *artifact, const char *entry, int kind);
WEFT_API int weft_describe_tensor(weft_artifact *artifact, const char *entry, int kind, int index,
                                  weft_tensor *tensor);

/* Copies a parameter from GPU memory, logical row-major, and packs it as the kernels read it. Waits
 * for the copy, but for nothing that the caller has enqueued on its streams: synchronize those
 * first. */
WEFT_API int weft_set_parameter(weft_artifact *artifact, const char *name, const void *elements);
/* Of dropout's masks (ir/SPEC.md, "Dropout bits"); step 0 and seed 1 until set. */
WEFT_API int weft_set_dropout_key(weft_artifact *artifact, uint64_t seed, uint64_t step);

/* Enqueues an entry point on a CUstream (or cudaStream_t), which may be capturing. `pointers`: of
 * the inputs, then of the outputs, each a multiple of 16 bytes. The first launch waits for each
 * kernel in turn. Launches of one artifact share its workspace: on several streams, the caller
 * orders them by events. */
WEFT_API int weft_launch(weft_artifact *artifact, const char *entry, void *const *pointers,
                         int count, void *stream);

/* 2 where a launch since the last call of this function was given lengths below 0 or above the
 * longest, a mask of tokens whose row has a 1 behind a 0, or ids that an embedding table has no row
 * for. Such a length counted as the nearest in range, such a row as the number of its ones, such an
 * id gave NaN, and nothing outside a tensor was touched; weft_last_error() names the argument, and
 * the sequence or the coordinates of the id. Waits for a copy of the words in which kernels say
 * so, but for no launch: synchronize its stream first. Not to be called while a stream is being
 * captured: CUDA does not permit the copy then, and may invalidate the capture. */
WEFT_API int weft_check_arguments(weft_artifact *artifact);

/* Enqueues one kernel alone, as benches time it. `buffers`, `pointers`: memory of the caller in
 * place of the plan's buffers (plan.json numbers them), as large and a multiple of 256 bytes;
 * others keep the artifact's memory. A buffer that only callers bring must be given. A view runs
 * nothing. */
WEFT_API int weft_launch_kernel(weft_artifact *artifact, const char *kernel, const int *buffers,
                                void *const *pointers, int count, void *stream);

/* GPU memory that the artifact holds: workspace, parameters, and copies of what callers cannot
 * bring directly. */
WEFT_API int64_t weft_device_bytes(const weft_artifact *artifact);

#ifdef __cplusplus
}
#endif
#endif
