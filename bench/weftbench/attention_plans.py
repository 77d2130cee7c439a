"""The plans of group `seed004`: how each is compiled, and what is edited in its plan.json. No
packages: tested without a GPU."""
HEAD = 64
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
PIPELINED_LENGTHS = LENGTHS
PIPELINED_BATCH = 4
AUTO = 'auto'
PIPELINES = ('1', '2', '4', AUTO)  # of --pipeline
ONE_CALL, IN_TURN = 'weft one call', 'weft in turn'
COMBINES = ('linear', 'tree', 'shuffle')
MOST_THREADS = 1024  # a block of the paper: linear reduction walks as many partial results
# m, n, k, elements a thread along m, n: the paper's square tiles with one element a thread, then
# those of the plain family
TILES = tuple(
    (side, side, side, 1, 1)
    for side in (4, 8, 16, 32)) + ((32, 32, 16, 2, 2), (64, 64, 16, 4, 4), (128, 64, 16, 8, 4),
                                   (64, 128, 16, 4, 8), (128, 128, 16, 8, 8))
TILE_LENGTHS = (256, 1024, 4096)


def arguments(length, batch):
    """Of `weft compile`: three kernels, fp32, one head."""
    return [
        'attention', '--dim', f'b={batch}', '--dim', 'h=1', '--dim', f'j={length}', '--dim',
        f'p={HEAD}', '--dtype', 'f32', '--attention', 'unfused', '--chunks', '1'
    ]


def workload_name(length, batch):
    return f'attention fp32 N={length} B={batch}'


def pipelined_name(length):
    return f'pipeline: {workload_name(length, PIPELINED_BATCH)}'


def pipeline_label(slices):
    return ONE_CALL if slices == '1' else f'weft --pipeline {slices}'


def with_combine(combine):
    """Edits the softmax kernel: one block of up to MOST_THREADS threads a row, one element a thread
    at a time."""
    def edit(plan):
        for kernel in plan['kernels']:
            if any('softmax' in op for op in kernel['ops']):
                columns = plan['tensors'][kernel['inputs'][0]]['extents'][-1]
                threads = min(MOST_THREADS, columns)
                kernel['knobs'].update(laneAxis='k', vectorAxis='k', vectorWidth=1,
                                       reduction='block', threads=threads, threadsPerRow=threads,
                                       combine=combine)

    return edit


def with_tile(tile):
    """Edits both products, which must be of the plain family."""
    tile_m, tile_n, tile_k, thread_m, thread_n = tile

    def edit(plan):
        for kernel in plan['kernels']:
            if 'tileM' in kernel['knobs']:
                kernel['knobs'].update(tileM=tile_m, tileN=tile_n, tileK=tile_k, threadM=thread_m,
                                       threadN=thread_n, stages=2, kGroups=1)

    return edit


def tile_label(tile):
    return 'weft tile {} x {}, {} x {} a thread'.format(tile[0], tile[1], tile[3], tile[4])
