"""The rivals of group `transfer`: the drawn layers as users of PyTorch would write them, fused
attention (SDPA) by each of its backends, and torch.compile."""
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import rivals, timing, transfer_draws

BACKENDS = {
    'cuDNN': SDPBackend.CUDNN_ATTENTION, 'flash': SDPBackend.FLASH_ATTENTION,
    'efficient': SDPBackend.EFFICIENT_ATTENTION
}


def gelu_tanh(x):
    return F.gelu(x, approximate='tanh')


class DecoderLayer(rivals.EncoderLayer):
    """Causal, layer norm before attention and feed-forward, GELU by tanh."""
    def __init__(self, hidden, heads, feed_forward, dropout=0.0, epsilon=1e-5):
        super().__init__(hidden, heads, feed_forward, 'gelu', dropout, epsilon)
        self.activation = gelu_tanh

    def mixed(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                              dropout_p=self.dropout if self.training else 0.0)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        inner = self.drop(self.activation(self.up(self.norm2(x))))
        return x + self.drop(self.down(inner))


class Rotary(torch.nn.Module):
    """Rotates pairs (i, i + half) of [batch, heads, length, head]. Cosines and sines have the type
    of the layer."""
    def __init__(self, length, head, base):
        super().__init__()
        rates = base**(-torch.arange(0, head, 2, dtype=torch.float64) / head)
        angles = torch.arange(length, dtype=torch.float64)[:, None] * torch.cat([rates, rates])
        self.register_buffer('cos', angles.cos())
        self.register_buffer('sin', angles.sin())

    def forward(self, x):
        low, high = x.chunk(2, -1)
        return x * self.cos + torch.cat([-high, low], -1) * self.sin


class GroupedLayer(torch.nn.Module):
    """Causal, RMS norm first, rotary positions, several query heads a key/value head, gated
    feed-forward, no biases. `repeated`: keys and values are copied for every query head, else SDPA
    groups the heads itself."""
    def __init__(self, draw):
        super().__init__()
        hidden, inner = draw.hidden, draw.feed_forward
        self.heads, self.groups, self.head = draw.heads, draw.groups, draw.head_dim
        self.dropout, self.repeated = draw.dropout, False
        linear = lambda columns, rows: torch.nn.Linear(columns, rows, bias=False)
        self.qkv = linear(hidden, (draw.heads + 2 * draw.groups) * draw.head_dim)
        self.out = linear(hidden, hidden)
        self.gate_up, self.down = linear(hidden, 2 * inner), linear(inner, hidden)
        self.norm1, self.norm2 = (torch.nn.RMSNorm(hidden, eps=draw.epsilon) for _ in range(2))
        self.rotary = Rotary(draw.length, draw.head_dim, transfer_draws.ROTARY_BASE)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def attention(self, x):
        batch, length, hidden = x.shape
        parts = self.qkv(x).view(batch, length, -1, self.head).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.groups, self.groups], 1)
        q, k = self.rotary(q), self.rotary(k)
        if self.repeated:
            k, v = (one.repeat_interleave(self.heads // self.groups, 1) for one in (k, v))
        grouping = {} if self.repeated or self.heads == self.groups else {'enable_gqa': True}
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               dropout_p=self.dropout if self.training else 0.0,
                                               **grouping)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.drop(self.down(F.silu(gate) * up))

    def tensors(self):
        """The weights under the graph's names and axes (wq[p,g,r,i], wo[w,g,r,i], ...)."""
        hidden, (gate, up) = self.out.weight.shape[0], self.gate_up.weight.chunk(2)
        each = [one * self.head for one in (self.heads, self.groups, self.groups)]
        q, k, v = self.qkv.weight.split(each)
        ranks = self.heads // self.groups
        found = dict(
            wq=q.view(self.groups, ranks, self.head, hidden).permute(2, 0, 1, 3),
            wk=k.view(self.groups, self.head, hidden).permute(1, 0, 2),
            wv=v.view(self.groups, self.head, hidden).permute(1, 0, 2),
            wo=self.out.weight.view(hidden, self.groups, ranks, self.head).permute(3, 1, 2, 0),
            gamma1=self.norm1.weight, gamma2=self.norm2.weight, w_gate=gate, w_up=up,
            w_down=self.down.weight)
        return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def module_of(draw):
    if draw.family == 'grouped':
        return GroupedLayer(draw)
    if draw.family == 'decoder':
        return DecoderLayer(draw.hidden, draw.heads, draw.feed_forward, draw.dropout, draw.epsilon)
    return rivals.EncoderLayer(draw.hidden, draw.heads, draw.feed_forward, 'gelu', draw.dropout,
                               draw.epsilon)


def groupings(module):
    """The module, and with fewer key/value heads than heads both of its ways to group them."""
    if getattr(module, 'groups', None) in (None, getattr(module, 'heads', None)):
        return {'': module}
    repeated = rivals.twin(module, sdpa=True)
    repeated.repeated = True
    return {' grouped': module, ' repeated': repeated}


def by_backend(module, backend):
    def run(x):
        with sdpa_kernel(backend):
            return module(x)

    return run


def forms(settings, module):
    """The module by each of PyTorch's ways, by contender's name; none with --no-rivals."""
    if not settings.rivals:
        return {}
    found = {
        f'eager {backend}{grouping}': by_backend(one, BACKENDS[backend])
        for grouping, one in groupings(module).items()
        for backend in BACKENDS
    }
    if settings.torch_compile:
        for grouping, one in groupings(module).items():
            found[f'torch.compile{grouping}'] = rivals.compiled(one)
    return found


def why_not(call):
    """'' where one call succeeds, else why it does not, with what PyTorch warns of meanwhile: that
    is where SDPA says why a backend takes no such operands."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        try:
            call()
            return ''
        except Exception as error:  # of one rival: a row of the table
            texts = [timing.first_line(error), *(str(one.message) for one in said)]
            return '; '.join(text.split('\n')[0] for text in texts)[:400]


def calls(settings, draw, module, x, dy):
    """What is timed, by contender's name: forward without autograd, or result and all
    gradients."""
    if not draw.training:
        return {name: lambda f=rivals.without_autograd(form): f(x)
                for name, form in forms(settings, module).items()}
    leaves = [x, *module.parameters()]
    return {name: lambda f=form: torch.autograd.grad(f(x), leaves, dy)
            for name, form in forms(settings, module).items()}


def contenders(result, settings, draw, module, x, dy=None):
    """All that run at all; why the others do not stands in the result."""
    found = []
    for name, call in calls(settings, draw, module, x, dy).items():
        reason = '' if name.startswith('torch.compile') else why_not(call)
        if reason:
            result.failures[name] = reason
        else:
            found.append(timing.GraphContender(name, lambda _, c=call: c()))
    return found
