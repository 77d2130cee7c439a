// GEMMs of scaled operands on the emulator: sm90_gemm.cuh takes factors as the device does.
#pragma once

#include "weft/sm90_gemm.cuh"
#include "weft/sm90_scaled_factors.cuh"
