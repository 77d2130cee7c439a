"""What the layers compute, in fp64 with the same weights and the same dropout masks: a wrong kernel
never has a speed."""
import math

import torch

MASK32 = 0xFFFFFFFF


def philox(counter, key, rounds=7):
    """Philox4x32 of 32-bit words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        product0, product1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (((product1 >> 32) & MASK32) ^ c1 ^ k0, product1 & MASK32,
                          ((product0 >> 32) & MASK32) ^ c3 ^ k1, product0 & MASK32)
        k0, k1 = (k0 + 0x9E3779B9) & MASK32, (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def mixed(x, y, z, w):
    """Words of coordinates and key on int64 tensors that hold 32-bit words; products wrap modulo
    2^64, which keeps the bits that are used."""
    for _ in range(2):
        x = (x + y * w) & MASK32
        y = (y + z * x) & MASK32
        z = (z + x * y) & MASK32
        w = (w + y * z) & MASK32
        x, y, z, w = (word ^ (word >> 16) for word in (x, y, z, w))
    return x, y, z, w


def dropout_kept(shape, p, stream, seed, step, device='cuda', first=0):
    """Boolean tensor of what dropout keeps: ir/SPEC.md, "Dropout bits". `first`: of a piece of a
    tensor, how many matrices lie before it."""
    rows, columns = (shape[-2] if len(shape) > 1 else 1), shape[-1]
    outer = math.prod(shape[:-2])
    tall, wide = -(-rows // 16), -(-columns // 16)
    index = lambda extent: torch.arange(extent, device=device, dtype=torch.int64)
    o, r, c, lane = torch.meshgrid(index(outer), index(tall), index(wide), index(32), indexing='ij')
    o = o + first
    zero = torch.zeros_like(o)
    key = (seed & MASK32, ((seed >> 32) ^ (step * 0x9E3779B9)) & MASK32)
    common, apart = philox((0, 0, 0, stream), key), 0x9E3779B9
    words = mixed(*((common[i] + part * apart) & MASK32
                    for i, part in enumerate((lane + 32 * c, r, o & MASK32, zero))))
    draws = torch.stack([(words[d // 2] >> (16 * (d % 2))) & 0xFFFF for d in range(8)], -1)
    # lane = (row % 8) * 4 + (column % 8) / 2 and draw = column % 2 + 2 (row / 8) + 4 (column / 8),
    # both within the tile.
    tiles = draws.view(outer, tall, wide, 8, 4, 2, 2,
                       2)  # .., row % 8, column % 8 / 2, column / 8, row / 8, column % 2
    full = tiles.permute(0, 1, 6, 3, 2, 5, 4, 7).reshape(outer, 16 * tall, 16 * wide)
    return full[:, :rows, :columns].reshape(shape) >= round(p * 65536)


class Dropout:
    """Applies the masks of one (seed, step); p = 0 keeps everything."""
    def __init__(self, p, seed=1, step=0):
        self.p, self.seed, self.step = p, seed, step

    def __call__(self, x, stream, first=0):
        if not self.p:
            return x
        kept = dropout_kept(x.shape, self.p, stream, self.seed, self.step, x.device, first)
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


def layer_norm(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean)**2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + epsilon) * gamma + beta


def attention(t, dropout, causal=False):
    """Multi-head attention by the graph's names and axes (wq[p,h,i], wo[w,h,i], x[b,j,i]); dropout
    of probabilities is stream 0."""
    project = lambda w, b: torch.einsum('phi,bji->phbj', t[w], t['x']) + t[b][:, :, None, None]
    q, k, v = project('wq', 'bq'), project('wk', 'bk'), project('wv', 'bv')
    score = torch.einsum('phbk,phbj->hbjk', k, q) / math.sqrt(q.shape[0])
    if causal:
        hidden = torch.ones(score.shape[-2:], device=score.device, dtype=torch.bool).triu(1)
        score.masked_fill_(hidden, -math.inf)
    weighted = torch.einsum('whbk,hbjk->whbj', v, dropout(torch.softmax(score, -1), 0))
    return torch.einsum('whi,whbj->bji', t['wo'], weighted) + t['bo']


def encoder(t, activation, epsilon, dropout, causal=False):
    """The post-norm encoder layer by its own names: axes as in the graph (w1[u,i], w2[i,u],
    ...)."""
    middle = layer_norm(
        dropout(attention(t, dropout, causal), 1) + t['x'], t['gamma1'], t['beta1'], epsilon)
    hidden = torch.einsum('ui,bji->bju', t['w1'], middle) + t['b1']
    active = torch.relu(hidden) if activation == 'relu' else torch.nn.functional.gelu(
        hidden, approximate='tanh' if activation == 'gelu_tanh' else 'none')
    result = torch.einsum('iu,bju->bji', t['w2'], dropout(active, 2)) + t['b2']
    return layer_norm(dropout(result, 3) + middle, t['gamma2'], t['beta2'], epsilon)


def result_of(layer, tensors, dropout, dtype=torch.float64):
    """What a layers.Layer computes, all in `dtype`."""
    t = {name: value.to(dtype) for name, value in tensors.items()}
    return encoder(t, layer.activation, layer.epsilon, dropout,
                   layer.causal) if layer.feed_forward else attention(t, dropout, layer.causal)


class WrongResult(Exception):
    pass


def relative_error(out, expected):
    """||out - expected|| / ||expected|| in fp64; NaN and infinity stay what they are."""
    difference = (out.double() - expected.double()).norm()
    return float(difference / expected.double().norm())


def check(out, expected, limit):
    """The relative error; throws WrongResult if it is above the limit or not a number."""
    error = relative_error(out, expected)
    if not error <= limit:
        raise WrongResult(f'relative error {error:.2e}, limit {limit:.0e}')
    return error
