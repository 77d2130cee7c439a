"""A plain vectorized copy in Triton: what a kernel, not the driver's copy, reaches."""
import triton
import triton.language as tl

VARIANTS = ((2048, 4), (4096, 4), (8192, 8))  # elements a block, warps


@triton.jit
def copy_block(source, target, count, block: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    tl.store(target + at, tl.load(source + at, mask=at < count), mask=at < count)


def copy(source, target, block, warps):
    count = source.numel()
    copy_block[(triton.cdiv(count, block), )](source, target, count, block=block, num_warps=warps)
