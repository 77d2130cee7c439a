"""The rivals: PyTorch modules as their users would write them, and JAX. Each in its best fair setting: fp16, CUDA-graph replay,
training mode where dropout is part of the work, one product for the three projections, with and without autograd's bookkeeping.
"""
import math
import os

import torch
import torch.nn.functional as F


class EncoderLayer(torch.nn.Module):
    """Post-norm encoder layer; `sdpa` chooses fused attention, else softmax between two products."""

    def __init__(self, hidden, heads, feed_forward, activation='relu', dropout=0.0, epsilon=1e-5, sdpa=True):
        super().__init__()
        self.heads, self.dropout, self.sdpa = heads, dropout, sdpa
        self.activation = F.relu if activation == 'relu' else F.gelu
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.out = torch.nn.Linear(hidden, hidden)
        self.up = torch.nn.Linear(hidden, feed_forward)
        self.down = torch.nn.Linear(feed_forward, hidden)
        self.norm1 = torch.nn.LayerNorm(hidden, eps=epsilon)
        self.norm2 = torch.nn.LayerNorm(hidden, eps=epsilon)

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def attention(self, x):
        batch, length, hidden = x.shape
        head = hidden // self.heads
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, head).permute(2, 0, 3, 1, 4)
        if self.sdpa:
            mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        else:
            mixed = self.drop(torch.softmax((q @ k.transpose(-1, -2)) / math.sqrt(head), -1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x):
        x = self.norm1(x + self.drop(self.attention(x)))
        return self.norm2(x + self.drop(self.down(self.drop(self.activation(self.up(x))))))

    def tensors(self):
        """The weights under the graph's names and axes (wq[p,h,i], wo[w,h,i], w1[u,i], w2[i,u], ...)."""
        hidden = self.out.weight.shape[0]
        head = hidden // self.heads
        found = {}
        for name, weight, bias in zip('qkv', self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)):
            found['w' + name] = weight.view(self.heads, head, hidden).permute(1, 0, 2)
            found['b' + name] = bias.view(self.heads, head).t()
        found['wo'] = self.out.weight.view(hidden, self.heads, head).permute(2, 1, 0)
        found.update(bo=self.out.bias, w1=self.up.weight, b1=self.up.bias, w2=self.down.weight, b2=self.down.bias,
                     gamma1=self.norm1.weight, beta1=self.norm1.bias, gamma2=self.norm2.weight, beta2=self.norm2.bias)
        return {name: tensor.detach().contiguous() for name, tensor in found.items()}


def twin(module, sdpa):
    """The same weights with the other attention."""
    other = EncoderLayer.__new__(EncoderLayer)
    torch.nn.Module.__init__(other)
    other.__dict__.update({name: value for name, value in module.__dict__.items() if not name.startswith('_')})
    other._modules.update(module._modules)
    other.train(module.training)
    other.sdpa = sdpa
    return other


def without_autograd(call):
    def run(*arguments):
        with torch.no_grad():
            return call(*arguments)
    return run


def compiled(function):
    """Inductor's default mode: its slow search is no faster on these layers and takes minutes. What was compiled for earlier workloads
    is forgotten, because after eight versions of one function Dynamo falls back to eager."""
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def jax_encoder(tensors, x, heads, activation, dropout, epsilon, dy=None):
    """(call, wait) of the same layer under jax.jit, with `dy` of its gradients too; raises ImportError without JAX."""
    os.environ.setdefault('XLA_PYTHON_CLIENT_PREALLOCATE', 'false')
    import jax
    import jax.numpy as jnp
    jax.config.update('jax_default_prng_impl', 'rbg')
    hidden = x.shape[-1]
    head = hidden // heads
    array = lambda tensor: jnp.asarray(tensor.detach().float().cpu().numpy(), jnp.float16)
    weights = {name: array(value) for name, value in tensors.items()}
    pack = lambda name: weights[name].transpose(2, 1, 0).reshape(hidden, hidden)  # [p,h,i] to [i, h * p]
    weights['wqkv'] = jnp.concatenate([pack('wq'), pack('wk'), pack('wv')], 1)
    weights['bqkv'] = jnp.concatenate([weights[name].transpose(1, 0).reshape(-1) for name in ('bq', 'bk', 'bv')])
    weights['wout'] = weights['wo'].transpose(1, 0, 2).reshape(hidden, hidden)

    def norm(y, gamma, beta):
        y32 = y.astype(jnp.float32)
        centered = y32 - y32.mean(-1, keepdims=True)
        return (centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + epsilon)).astype(y.dtype) * gamma + beta

    def drop(y, key):
        return jnp.where(jax.random.bernoulli(key, 1 - dropout, y.shape), y / (1 - dropout), 0).astype(y.dtype) if dropout else y

    def layer(w, y, key):
        batch, length, _ = y.shape
        keys = jax.random.split(key, 4)
        qkv = (y @ w['wqkv'] + w['bqkv']).reshape(batch, length, 3, heads, head)
        score = jnp.einsum('blhd,bmhd->bhlm', qkv[:, :, 0], qkv[:, :, 1]) / math.sqrt(head)
        probability = drop(jax.nn.softmax(score.astype(jnp.float32), -1).astype(y.dtype), keys[0])
        mixed = jnp.einsum('bhlm,bmhd->blhd', probability, qkv[:, :, 2]).reshape(batch, length, hidden)
        y = norm(y + drop(mixed @ w['wout'] + w['bo'], keys[1]), w['gamma1'], w['beta1'])
        active = jax.nn.relu if activation == 'relu' else (lambda z: jax.nn.gelu(z, approximate=False))
        inner = drop(active(y @ w['w1'].T + w['b1']), keys[2]) @ w['w2'].T + w['b2']
        return norm(y + drop(inner, keys[3]), w['gamma2'], w['beta2'])

    key, y = jax.random.key(0), array(x)
    if dy is None:
        jitted = jax.jit(layer)
        return (lambda: jitted(weights, y, key)), jax.block_until_ready

    def step(w, z, k, dz):
        result, backward = jax.vjp(lambda v, u: layer(v, u, k), w, z)
        return result, backward(dz)

    trained, dz = jax.jit(step), array(dy)
    trainable = {name: weights[name] for name in
                 ('wqkv', 'bqkv', 'wout', 'bo', 'w1', 'b1', 'w2', 'b2', 'gamma1', 'beta1', 'gamma2', 'beta2')}
    return (lambda: trained(trainable, y, key, dz)), jax.block_until_ready
