"""The rivals: PyTorch modules as their users would write them, and JAX. Each in its best fair
setting: fp16, CUDA-graph replay, training mode where dropout is part of the work, one product for
the three projections, with and without autograd's bookkeeping."""
import math
import os

import torch
import torch.nn.functional as F

from . import timing


class Attention(torch.nn.Module):
    """Multi-head attention with biases and dropout of the probabilities; `sdpa` chooses fused
    attention, else softmax between two products."""
    def __init__(self, hidden, heads, dropout=0.0, sdpa=True, causal=False):
        super().__init__()
        self.heads, self.dropout, self.sdpa, self.causal = heads, dropout, sdpa, causal
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.out = torch.nn.Linear(hidden, hidden)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def mixed(self, q, k, v):
        if self.sdpa:
            return F.scaled_dot_product_attention(q, k, v,
                                                  dropout_p=self.dropout if self.training else 0.0,
                                                  is_causal=self.causal)
        score = (q @ k.transpose(-1, -2)) / math.sqrt(q.shape[-1])
        if self.causal:
            hidden = torch.ones(score.shape[-2:], device=q.device, dtype=torch.bool).triu(1)
            score = score.masked_fill(hidden, -math.inf)
        return self.drop(torch.softmax(score, -1)) @ v

    def attention(self, x):
        batch, length, hidden = x.shape
        head = hidden // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        mixed = self.mixed(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        return self.attention(x)

    def tensors(self):
        """The weights under the graph's names and axes (wq[p,h,i], wo[w,h,i], ...)."""
        hidden = self.out.weight.shape[0]
        head = hidden // self.heads
        found = {}
        for name, weight, bias in zip('qkv', self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)):
            found['w' + name] = weight.view(self.heads, head, hidden).permute(1, 0, 2)
            found['b' + name] = bias.view(self.heads, head).t()
        found['wo'] = self.out.weight.view(hidden, self.heads, head).permute(2, 1, 0)
        found['bo'] = self.out.bias
        return {name: tensor.detach().contiguous() for name, tensor in found.items()}


class EncoderLayer(Attention):
    """Post-norm encoder layer."""
    def __init__(self, hidden, heads, feed_forward, activation='relu', dropout=0.0, epsilon=1e-5,
                 sdpa=True, causal=False):
        super().__init__(hidden, heads, dropout, sdpa, causal)
        self.activation = F.relu if activation == 'relu' else F.gelu
        self.up = torch.nn.Linear(hidden, feed_forward)
        self.down = torch.nn.Linear(feed_forward, hidden)
        self.norm1 = torch.nn.LayerNorm(hidden, eps=epsilon)
        self.norm2 = torch.nn.LayerNorm(hidden, eps=epsilon)

    def forward(self, x):
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.down(self.drop(self.activation(self.up(x))))))

    def tensors(self):
        """Also w1[u,i], w2[i,u] and the norms."""
        more = dict(w1=self.up.weight, b1=self.up.bias, w2=self.down.weight, b2=self.down.bias,
                    gamma1=self.norm1.weight, beta1=self.norm1.bias, gamma2=self.norm2.weight,
                    beta2=self.norm2.bias)
        return {
            **super().tensors(),
            **{name: tensor.detach().contiguous()
               for name, tensor in more.items()}
        }


def module_of(layer):
    """The module of a layers.Layer."""
    if not layer.feed_forward:
        return Attention(layer.hidden, layer.heads, layer.dropout)
    return EncoderLayer(layer.hidden, layer.heads, layer.feed_forward, layer.activation,
                        layer.dropout, layer.epsilon, causal=layer.causal)


def twin(module, sdpa):
    """The same weights with the other attention."""
    other = type(module).__new__(type(module))
    torch.nn.Module.__init__(other)
    other.__dict__.update(
        {name: value
         for name, value in module.__dict__.items() if not name.startswith('_')})
    other._modules.update(module._modules)
    other.train(module.training)
    other.sdpa = sdpa
    return other


def torch_forms(settings, module):
    """The module by each of PyTorch's ways, by contender's name; none with --no-rivals."""
    if not settings.rivals:
        return {}
    forms = {'eager unfused': twin(module, sdpa=False), 'eager + SDPA': twin(module, sdpa=True)}
    if settings.torch_compile:
        forms['torch.compile'] = compiled(twin(module, sdpa=True))
    return forms


def without_autograd(call):
    def run(*arguments):
        with torch.no_grad():
            return call(*arguments)

    return run


def compiled(function):
    """Inductor's default mode: its slow search is no faster on these layers and takes minutes. What
    was compiled for earlier workloads is forgotten, because after eight versions of one function
    Dynamo falls back to eager."""
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def jax_contenders(settings, layer, module, x, dy=None):
    """The layer by JAX, with `dy` of its gradients too, where JAX takes part; raises ImportError
    where it is missing."""
    return [timing.HostContender('jax', *jax_layer(layer, module.tensors(), x, dy))
            ] if settings.jax and settings.rivals else []


def jax_layer(layer, tensors, x, dy=None):
    """(call, wait) of a layers.Layer under jax.jit, with `dy` of its gradients too; raises
    ImportError without JAX."""
    os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')
    import jax
    import jax.numpy as jnp
    jax.config.update('jax_default_prng_impl', 'rbg')
    hidden, heads, dropout = layer.hidden, layer.heads, layer.dropout
    head = hidden // heads
    array = lambda tensor: jnp.asarray(tensor.detach().float().cpu().numpy(), jnp.float16)
    given = {name: array(value) for name, value in tensors.items()}
    pack = lambda name: given.pop(name).transpose(2, 1, 0).reshape(hidden, hidden
                                                                   )  # [p,h,i] to [i, h * p]
    weights = {
        'wqkv': jnp.concatenate([pack('wq'), pack('wk'), pack('wv')], 1), 'bqkv': jnp.concatenate(
            [given.pop(name).transpose(1, 0).reshape(-1) for name in ('bq', 'bk', 'bv')]),
        'wout': given.pop('wo').transpose(1, 0, 2).reshape(hidden, hidden), **given
    }

    def norm(y, gamma, beta):
        y32 = y.astype(jnp.float32)
        centered = y32 - y32.mean(-1, keepdims=True)
        return (centered * jax.lax.rsqrt(
            (centered**2).mean(-1, keepdims=True) + layer.epsilon)).astype(y.dtype) * gamma + beta

    def drop(y, key):
        return jnp.where(jax.random.bernoulli(key, 1 - dropout, y.shape), y /
                         (1 - dropout), 0).astype(y.dtype) if dropout else y

    def attention(w, y, key):
        batch, length, _ = y.shape
        qkv = (y @ w['wqkv'] + w['bqkv']).reshape(batch, length, 3, heads, head)
        score = jnp.einsum('blhd,bmhd->bhlm', qkv[:, :, 0], qkv[:, :, 1]) / math.sqrt(head)
        if layer.causal:
            score = jnp.where(jnp.tril(jnp.ones((length, length), bool)), score, -jnp.inf)
        probability = drop(jax.nn.softmax(score.astype(jnp.float32), -1).astype(y.dtype), key)
        mixed = jnp.einsum('bhlm,bmhd->blhd', probability, qkv[:, :,
                                                               2]).reshape(batch, length, hidden)
        return mixed @ w['wout'] + w['bo']

    def encoder(w, y, key):
        keys = jax.random.split(key, 4)
        y = norm(y + drop(attention(w, y, keys[0]), keys[1]), w['gamma1'], w['beta1'])
        active = jax.nn.relu if layer.activation == 'relu' else (
            lambda z: jax.nn.gelu(z, approximate=False))
        inner = drop(active(y @ w['w1'].T + w['b1']), keys[2]) @ w['w2'].T + w['b2']
        return norm(y + drop(inner, keys[3]), w['gamma2'], w['beta2'])

    forward = encoder if layer.feed_forward else attention
    key, y = jax.random.key(0), array(x)
    if dy is None:
        jitted = jax.jit(forward)
        return (lambda: jitted(weights, y, key)), jax.block_until_ready

    def step(w, z, k, dz):
        result, backward = jax.vjp(lambda v, u: forward(v, u, k), w, z)
        return result, backward(dz)

    trained, dz = jax.jit(step), array(dy)
    return (lambda: trained(weights, y, key, dz)), jax.block_until_ready
