"""What the drawn layers compute, in fp64, on some sequences at a time and one head at a time, so
that 8192 positions fit in memory. Weights have the graph's names and axes, dropout its masks.

Written apart from the rivals' modules: a mistake there is no mistake here."""
import math

import torch
from torch.utils.checkpoint import checkpoint

from . import reference, transfer_draws

MOST_TOKENS = 4096  # at a time
MOST_SCORES = 1 << 26  # of one head at a time, unless one sequence has more


def sequences_at_once(length):
    return max(1, min(MOST_TOKENS // length, MOST_SCORES // length**2))


def rms_norm(x, gamma, epsilon):
    return x * torch.rsqrt((x**2).mean(-1, keepdim=True) + epsilon) * gamma


def rotated(x):
    """[..., positions, head]: pairs (i, i + half) turn by position * base^(-2i / head)."""
    length, head = x.shape[-2:]
    place = lambda extent: torch.arange(extent, dtype=torch.float64, device=x.device)
    rates = transfer_draws.ROTARY_BASE**(-2 * place(head // 2) / head)
    angles = place(length)[:, None] * rates
    low, high = x[..., :head // 2], x[..., head // 2:]
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


class Piece:
    """`count` sequences from `first` on, of all those of a draw."""
    def __init__(self, draw, t, dropout, first):
        self.draw, self.t, self.dropout, self.first = draw, t, dropout, first
        self.stream = 0

    def drop(self, x):
        """The next dropout of the graph behind that of the probabilities, which is stream 0."""
        self.stream += 1
        return self.dropout(x, self.stream, self.first)

    def one_head(self, q, k, v, head):
        score = q @ k.transpose(-1, -2) / math.sqrt(self.draw.head_dim)
        if self.draw.causal:
            later = torch.ones(score.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            score = score.masked_fill(later, -math.inf)
        kept = self.dropout(torch.softmax(score, -1), 0, head * self.draw.batch + self.first)
        return kept @ v

    def head_weights(self, head):
        """(q, k, v, out) as [hidden, head dim] thrice and [head dim, hidden]; biases of the first
        three."""
        t = self.t
        if self.draw.family == 'grouped':
            group, rank = divmod(head, self.draw.heads // self.draw.groups)
            return (t['wq'][:, group, rank].t(), t['wk'][:, group].t(), t['wv'][:, group].t(),
                    t['wo'][:, group, rank]), (0, 0, 0)
        return (t['wq'][:, head].t(), t['wk'][:, head].t(), t['wv'][:, head].t(),
                t['wo'][:, head]), tuple(t[name][:, head] for name in ('bq', 'bk', 'bv'))

    def attention(self, x):
        result = torch.zeros_like(x)
        for head in range(self.draw.heads):
            (*weights, out), biases = self.head_weights(head)
            q, k, v = (x @ weight + bias for weight, bias in zip(weights, biases))
            if self.draw.family == 'grouped':
                q, k = rotated(q), rotated(k)
            # Scores are computed again in the backward pass: those of all heads are too many.
            mixed = (checkpoint(self.one_head, q, k, v, head, use_reentrant=False)
                     if torch.is_grad_enabled() else self.one_head(q, k, v, head))
            result = result + mixed @ out
        return result + self.t['bo'] if 'bo' in self.t else result

    def norm(self, x, number):
        gamma = self.t[f'gamma{number}']
        if self.draw.family == 'grouped':
            return rms_norm(x, gamma, self.draw.epsilon)
        return reference.layer_norm(x, gamma, self.t[f'beta{number}'], self.draw.epsilon)

    def feed_forward(self, x):
        t = self.t
        if self.draw.family == 'grouped':
            gate = x @ t['w_gate'].t()
            return (gate * torch.sigmoid(gate) * (x @ t['w_up'].t())) @ t['w_down'].t()
        inner = x @ t['w1'].t() + t['b1']
        kind = 'tanh' if self.draw.family == 'decoder' else 'none'
        active = self.drop(torch.nn.functional.gelu(inner, approximate=kind))
        return active @ t['w2'].t() + t['b2']

    def layer(self, x):
        if self.draw.family == 'encoder':
            x = self.norm(x + self.drop(self.attention(x)), 1)
            return self.norm(x + self.drop(self.feed_forward(x)), 2)
        x = x + self.drop(self.attention(self.norm(x, 1)))
        return x + self.drop(self.feed_forward(self.norm(x, 2)))


def pieces(draw):
    """(first, past the last) of the sequences that are computed together."""
    step = sequences_at_once(draw.length)
    return [(first, min(first + step, draw.batch)) for first in range(0, draw.batch, step)]


def result_of(draw, tensors, x, dropout, dtype=torch.float64):
    """The layer's result, all rows of it."""
    t = {name: value.detach().to(dtype) for name, value in tensors.items()}
    with torch.no_grad():
        return torch.cat([
            Piece(draw, t, dropout, first).layer(x[first:end].detach().to(dtype))
            for first, end in pieces(draw)
        ])


def results_of(draw, tensors, x, dy, dropout, dtype=torch.float64):
    """The result ('') and all gradients under the names of the graph's arguments. Gradients of
    weights are sums over the pieces, in fp64 whatever `dtype` is."""
    t = {name: value.detach().to(dtype).requires_grad_() for name, value in tensors.items()}
    sums = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in t.items()}
    results, of_x = [], []
    for first, end in pieces(draw):
        piece = x[first:end].detach().to(dtype).requires_grad_()
        result = Piece(draw, t, dropout, first).layer(piece)
        gradients = torch.autograd.grad(result, [*t.values(), piece], dy[first:end].to(dtype))
        for name, gradient in zip(t, gradients):
            sums[name] += gradient
        results.append(result.detach())
        of_x.append(gradients[-1])
    return {'': torch.cat(results), **sums, 'x': torch.cat(of_x)}
