"""Points of the figures of bench/run recomposition, and what weft predicts for each. No packages:
tested without a GPU."""
import json
from dataclasses import dataclass

from . import figure_run, recomposition
from .figure_run import MEASURED, PREDICTED, seconds_of
from .recomposition import FORMS, MODELS

DEVICES, DEVICE = ('a100', 'rtx3090', 't4'), 'a100'
HERE = 'h200'  # what is timed where there is a GPU, and predicted elsewhere
LENGTH = recomposition.LENGTH
FIG9_LENGTHS, FIG9_BATCHES = (1024, 2048, 4096, 8192), (1, 2, 4, 8)
FIGURES = ('fig2', 'fig5', 'fig6', 'fig8', 'fig9', 'devices', 'sparse', 'crossover')
SPARSE_MODELS = ('bigbird-large', 'longformer-large')
CLASSES = ('softmax', 'MatMul of attention', 'FC', 'FeedForward', 'other')
PIECES = {'LS': 'local_softmax', 'IR': 'reduce_subvectors', 'GS': 'global_scaling'}
MODEL_FORMS = ('whole', 'SDF')  # all that Fig. 9 needs

@dataclass(frozen=True)
class Layer:
    """A model's layer on a device."""
    model: str
    device: str = DEVICE
    batch: int = 1
    length: int = LENGTH

    def name(self):
        return f'{self.model} {self.device} B={self.batch} L={self.length}'

    def is_emitted(self):
        return self.device not in recomposition.MODEL_ONLY


def class_of(kernel, plan):
    """Of Fig. 2: what a kernel of a layer with a whole softmax belongs to."""
    if recomposition.is_softmax(kernel):
        return 'softmax'
    if not any('contract ' in op for op in kernel['ops']):
        return 'other'
    if not any(plan['tensors'][index]['role'] == 'parameter' for index in kernel['inputs']) and \
            'projection' not in kernel['name']:
        return 'MatMul of attention'
    return 'FeedForward' if kernel['name'].startswith(('hidden', 'feed_forward', 'gate', 'up')) \
        else 'FC'


def classes_of(plan):
    found = dict.fromkeys(CLASSES, 0.0)
    for kernel in recomposition.launched(plan):
        found[class_of(kernel, plan)] += kernel['seconds']
    return found


def pieces_of(plan):
    """(seconds, bytes) of LS, IR and GS where they are kernels by themselves."""
    found = {piece: [0.0, 0] for piece in PIECES}
    for kernel in recomposition.launched(plan):
        own = [piece for piece, op in PIECES.items() if any(op in one for one in kernel['ops'])]
        if len(own) == 1 and not any('contract ' in op for op in kernel['ops']):
            found[own[0]][0] += kernel['seconds']
            found[own[0]][1] += kernel['bytesMoved']
    return found


def layer_entries(settings, layer, forms=tuple(FORMS)):
    """An entry for each form."""
    found = []
    for form in forms:
        arguments = (settings.weft, layer.model, layer.device, form, layer.length, layer.batch)
        if not layer.is_emitted():
            seconds = recomposition.seconds_of(*arguments)
            found.append(figure_run.entry(form, seconds) if seconds else
                         figure_run.failure(form, 'weft has no such plan'))
            continue
        plan = recomposition.plan_of(*arguments)
        if plan is None:
            found.append(figure_run.failure(form, 'weft has no such plan'))
            continue
        found.append(figure_run.entry(
            form, plan['predictedSeconds'], classes=classes_of(plan), pieces=pieces_of(plan),
            sweeps=recomposition.sweeps(plan), traffic=recomposition.traffic(plan),
            softmaxTraffic=recomposition.traffic_of_softmax(plan),
            statistics=recomposition.statistics_bytes(plan)))
    return found


def packed_entries(settings, layer):
    """An entry for each form of a layer whose scores are stored in packed tiles: modelled."""
    share = recomposition.visible_share(settings.weft, layer.model, layer.length, layer.batch)
    found = []
    for form in FORMS:
        plan = recomposition.plan_of(settings.weft, layer.model, layer.device, form, layer.length,
                                     layer.batch)
        if plan is None:
            found.append(figure_run.failure(form, 'weft has no such plan'))
            continue
        softmax = sum(kernel['seconds'] for kernel in recomposition.launched(plan)
                      if recomposition.is_row_softmax(kernel))
        found.append(figure_run.entry(form, recomposition.packed_seconds(plan, share), share=share,
                                      rowSoftmax=softmax))
    return found


def of_form(entries, form):
    """What is predicted of a form: bytes and classes are always of plans."""
    return next((one for one in entries if one['name'] == form and one['source'] == PREDICTED),
                None)


def speedup_source(entries):
    """Measured, where all forms that are predicted were measured."""
    names = [form for form in FORMS if seconds_of(entries, form)]
    return MEASURED if names and all(seconds_of(entries, form, MEASURED) for form in names) \
        else PREDICTED


def speedup(entries, form):
    """Of a form over the whole softmax; None where one has no figure."""
    source = speedup_source(entries)
    whole, own = seconds_of(entries, 'whole', source), seconds_of(entries, form, source)
    return whole / own if whole and own else None


# Left to itself a decomposed softmax is fused with its neighbours where that is faster, which is
# the next kind.
KINDS = {
    'unfused': ('--attention', 'unfused'),
    'decomposed': ('--attention', 'decomposed', *recomposition.APART),
    'recomposed': ('--attention', 'recomposed'), 'fused': ('--attention', 'fused')
}
LENGTHS = tuple(2**exponent for exponent in range(6, 15))
HEADS, HEAD_DIM = 16, 64
HEAD_DIMS, DENSITIES, BATCHES = (32, 128, 256), (0.05, 0.1, 0.25, 0.5), (8, 32)
BLOCK = 64  # queries and keys of a tile that a mask hides
# By name, as weft takes them; of block masks the rows of group `sparse` have the same tiles a row.
MASKS = {
    'causal': 'causal', 'longformer': f'longformer(block={BLOCK},window=9,global=1)',
    'bigbird': f'bigbird(block={BLOCK},window=3,global=2,random=3,seed=0,heads=each)'
}


@dataclass(frozen=True)
class Core:
    """Attention alone: 16 heads, f16, forward."""
    length: int
    head_dim: int = HEAD_DIM
    density: float = 1.0  # of tiles of 64 x 64 that exist, at random
    batch: int = 1
    mask: str = ''  # of MASKS

    @property
    def has_table(self):
        return self.density < 1 or self.mask in ('longformer', 'bigbird')

    def series(self):
        dense = '' if self.density == 1 else f' {100 * self.density:g}% of tiles'
        return f'B={self.batch} d={self.head_dim}{dense}' + (f' {self.mask}' if self.mask else '')

    def name(self):
        return f'attention {self.series()} L={self.length}'

    def extents(self):
        return dict(b=self.batch, h=HEADS, j=self.length, p=self.head_dim)

    def operand_bytes(self):
        """Queries, keys, values and results."""
        return 4 * 2 * self.batch * HEADS * self.length * self.head_dim

    def arguments(self):
        mask = MASKS.get(self.mask)
        if self.density < 1:
            mask = f'random(block={BLOCK},density={self.density:g},seed=0,heads=each)'
        return ['attention', *figure_run.dims(self.extents()), '--dtype', 'f16',
                *(['--mask', mask] if mask else [])]


def cores():
    """Every length of every series: the base, then one of head dim, density, batch and mask
    changed."""
    series = [{}, *({'head_dim': one} for one in HEAD_DIMS), *({'density': one}
                                                               for one in DENSITIES),
              *({'batch': one} for one in BATCHES), *({'mask': one} for one in MASKS)]
    # A table of few tiles says nothing of its density.
    found = [Core(length, **own) for own in series for length in LENGTHS]
    return [core for core in found if not core.has_table or core.length >= 8 * BLOCK]


def core_entries(settings, core, measured):
    """An entry for each kind, by the plan of that kind as a whole; with a GPU what was measured,
    too."""
    found = []
    for kind, flags in KINDS.items():
        try:
            said = figure_run.weft(settings, 'select', *core.arguments(), *flags,
                                   *settings.weft_flags, '--json')
        except figure_run.NoPlan as error:
            found.append(figure_run.failure(kind, str(error)))
            continue
        plan = json.loads(said)['plan']
        found.append(figure_run.entry(kind, plan['graphSeconds'],
                                      workspace=plan['workspaceBytes'], chunks=plan['chunks']))
    return measured_kinds(settings, core, found, measured) if measured else found


def measured_kinds(settings, core, found, measured):
    """`found`, and what was measured of the kinds that weft has: those that leave each other the
    memory in the same rounds as the rivals, others alone."""
    memory, shared, alone = measured.memory(), [], []
    for one in list(found):
        if not one['seconds']:
            continue
        size = one['workspace'] + core.operand_bytes()
        if size > memory:
            found = found + [figure_run.failure(
                one['name'], f'{figure_run.TOO_LARGE}: {size / 1e9:.0f} GB')]
        elif size > figure_run.SHARED_MEMORY * memory:
            alone.append(one['name'])
        else:
            shared.append(one['name'])
    for kinds, has_rivals in [(shared, True), *(([kind], False) for kind in alone)]:
        what = 'attention' if has_rivals else kinds[0]
        found = figure_run.measured_beside(
            found, what, lambda: measured.core(settings, core, kinds, has_rivals))
    return found


@dataclass(frozen=True)
class Point:
    figure: str
    work: object

    def name(self):
        return f'{self.figure} {self.work.name()}'


def points():
    """By figure. Points of several figures may be of one work."""
    at_length = [Layer(model) for model in MODELS]
    works = {figure: at_length for figure in ('fig2', 'fig5', 'fig6', 'fig8')}
    works['fig8'] = at_length + [Layer('bert-large', HERE)]
    works['fig9'] = [Layer(model, batch=batch, length=length) for model in MODELS
                     for batch, length in [(1, length) for length in FIG9_LENGTHS] +
                     [(batch, LENGTH) for batch in FIG9_BATCHES if batch > 1]]
    works['devices'] = [Layer(model, device) for device in DEVICES for model in MODELS]
    works['sparse'] = [Layer(model, device) for device in DEVICES if Layer('', device).is_emitted()
                       for model in SPARSE_MODELS]
    works['crossover'] = cores()
    return {figure: [Point(figure, work) for work in works[figure]] for figure in FIGURES}
