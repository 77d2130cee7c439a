// Programmatic dependent launch: a kernel whose blocks start while the one before it ends.
#pragma once

namespace weft::sm90 {

/// The next kernel may have its blocks start as soon as all of this one have, if it is launched so
/// that it waits by itself.
__device__ __forceinline__ void launchDependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// Until the kernels before this one have ended and what they wrote is there; at once where it was
/// not started early.
__device__ __forceinline__ void gridDependencyWait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

}  // namespace weft::sm90
