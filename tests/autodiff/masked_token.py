r"""The preset masked-token and AdamW in JAX, written from ir/SPEC.md, models/Families.h and
runtime/train/TextBatches.h alone, without dropout. As a program it trains from a state file on a
text and compares the losses with those of `weft run DIR --steps N --json`.

    weft compile masked-token --dtype f32 --dropout 0 --train --optimizer adamw -o model
    weft run model --steps 0 --state start.safetensors
    cp start.safetensors state.safetensors
    weft run model --steps 200 --state state.safetensors --json > losses.json
    python masked_token.py start.safetensors runtime/text/documentation.txt losses.json \
        --sequences 32 --length 64
"""
import argparse
import json
import pathlib
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np

MASK64 = (1 << 64) - 1
TYPES = {'F32': np.float32, 'F16': np.float16, 'I32': np.int32}


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack('<Q', data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        begin, end = entry['data_offsets']
        tensors[name] = np.frombuffer(data[8 + size + begin:8 + size + end],
                                      TYPES[entry['dtype']]).reshape(entry['shape'])
    return tensors


def mix(x):
    x = ((x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9))
    x = ((x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB))
    return x ^ (x >> np.uint64(31))


def bits(seed, name, index):
    """RandomValues::bits of kernel/RandomValues.h, for an array of indices."""
    key = 0xCBF29CE484222325
    for byte in name.encode():
        key = ((key ^ byte) * 0x100000001B3) & MASK64
    with np.errstate(over='ignore'):
        start = mix(np.array([seed ^ key], np.uint64))
        return mix(start + (np.asarray(index).astype(np.uint64) + np.uint64(1)) *
                   np.uint64(0x9E3779B97F4A7C15))


def integer(seed, name, index, low, high):
    return low + (bits(seed, name, index) % np.uint64(high - low + 1)).astype(np.int64)


def normal(seed, name, shape, deviation):
    """RandomValues::real."""
    all_bits = bits(seed, name, np.arange(int(np.prod(shape))))
    total = sum(((all_bits >> np.uint64(16 * part)) & np.uint64(0xFFFF)).astype(np.int64)
                for part in range(4))
    return ((total - 131070) / 65536 * np.sqrt(3.0) * deviation).astype(np.float32).reshape(shape)


def batch(text, seed, step, sequences, length, vocabulary):
    """Tokens, labels and weights of one step."""
    number = step * sequences + np.arange(sequences)
    starts = integer(seed, 'batch start', number, 0, len(text) - length)
    tokens = np.stack([np.frombuffer(text[start:start + length], np.uint8)
                       for start in starts]).astype(np.int32)
    n = number[:, None] * length + np.arange(length)
    predicted = max(1, (15 * length + 50) // 100)
    chosen = np.zeros(tokens.shape, bool)
    np.put_along_axis(
        chosen,
        np.argsort(bits(seed, 'batch order', n), axis=1, kind='stable')[:, :predicted], True,
        axis=1)
    labels = np.where(chosen, tokens, -1).astype(np.int32)
    action = integer(seed, 'batch action', n, 0, 9)
    other = integer(seed, 'batch byte', n, 1, vocabulary - 1)
    tokens = np.where(chosen & (action < 8), 0, np.where(chosen & (action == 8), other,
                                                         tokens)).astype(np.int32)
    return tokens, labels, np.where(chosen, 1 / (sequences * predicted), 0).astype(np.float32)


def layer_norm(x, gamma, beta, epsilon=1e-5):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.mean(
        (x - mean)**2, -1, keepdims=True) + epsilon) * gamma + beta


def encoder_layer(x, w):
    q = jnp.einsum('phi,bji->phbj', w['wq'], x) + w['bq'][:, :, None, None]
    k = jnp.einsum('phi,bki->phbk', w['wk'], x) + w['bk'][:, :, None, None]
    v = jnp.einsum('whi,bki->whbk', w['wv'], x) + w['bv'][:, :, None, None]
    probability = jax.nn.softmax(jnp.einsum('phbk,phbj->hbjk', k, q) / np.sqrt(q.shape[0]), -1)
    attention = jnp.einsum('whi,whbj->bji', w['wo'], jnp.einsum('whbk,hbjk->whbj', v,
                                                                probability)) + w['bo']
    middle = layer_norm(attention + x, w['gamma1'], w['beta1'])
    hidden = jax.nn.gelu(jnp.einsum('ui,bji->bju', w['w1'], middle) + w['b1'], approximate=False)
    return layer_norm(
        jnp.einsum('iu,bju->bji', w['w2'], hidden) + w['b2'] + middle, w['gamma2'], w['beta2'])


def loss_of(weights, tokens, labels, share):
    x = weights['token_table'][tokens] + weights['position_table']
    x = layer_norm(x, weights['gamma0'], weights['beta0'])
    number = 1
    while f'layer{number}_wq' in weights:
        prefix = f'layer{number}_'
        x = encoder_layer(x, {
            name[len(prefix):]: value
            for name, value in weights.items() if name.startswith(prefix)
        })
        number += 1
    logits = jnp.einsum('vi,bji->bjv', weights['output_weight'], x) + weights['output_bias']
    chosen = jnp.take_along_axis(logits, jnp.maximum(labels, 0)[..., None], -1)[..., 0]
    losses = jnp.where(labels >= 0, jax.nn.logsumexp(logits, -1) - chosen, 0.0)
    return jnp.sum(losses * share)


@jax.jit
def train_step(weights, mean, square, taken, data, rate, decay):
    """AdamW as its paper's Algorithm 2 has it; `taken` counts from 1."""
    loss, gradient = jax.value_and_grad(loss_of)(weights, *data)
    mean = {name: 0.9 * mean[name] + 0.1 * gradient[name] for name in weights}
    square = {name: 0.999 * square[name] + 0.001 * gradient[name]**2 for name in weights}
    corrected = {
        name: (mean[name] / (1 - 0.9**taken)) / (jnp.sqrt(square[name] / (1 - 0.999**taken)) + 1e-8)
        for name in weights
    }
    return loss, {
        name: weights[name] - rate * (corrected[name] + decay * weights[name])
        for name in weights
    }, mean, square


def train(state, text, seed, steps, sequences, length, rate=1e-3, decay=0.01):
    """Losses of the steps from the weights of a state at step 0."""
    jax.config.update('jax_default_matmul_precision', 'highest')
    averages = ('_mean', '_square')
    weights = {
        name: jnp.asarray(value, jnp.float32)
        for name, value in state.items()
        if not name.endswith(averages) and name not in ('step', 'seed')
    }
    mean = square = {name: jnp.zeros_like(value) for name, value in weights.items()}
    vocabulary = weights['token_table'].shape[0]
    losses = []
    for step in range(steps):
        data = batch(text, seed, step, sequences, length, vocabulary)
        loss, weights, mean, square = train_step(weights, mean, square, float(step + 1), data, rate,
                                                 decay)
        losses.append(float(loss))
    return losses


def compare(ours, theirs):
    """The largest relative difference of two loss curves; infinite where either is not finite."""
    a, b = np.array(ours), np.array(theirs)
    if a.shape != b.shape or not np.all(np.isfinite(a)) or not np.all(np.isfinite(b)):
        return float('inf')
    return float(np.max(np.abs(a - b) / np.abs(b)))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('state', help='the weights at step 0')
    parser.add_argument('text')
    parser.add_argument('losses', help='what weft run --steps N --json printed')
    parser.add_argument('--sequences', type=int, required=True)
    parser.add_argument('--length', type=int, required=True)
    parser.add_argument('--limit', type=float, default=0.01, help='relative difference')
    arguments = parser.parse_args()
    run = json.loads(pathlib.Path(arguments.losses).read_text())
    theirs = train(read_safetensors(arguments.state),
                   pathlib.Path(arguments.text).read_bytes(), run['seed'], len(run['losses']),
                   arguments.sequences, arguments.length, run['learningRate'], run['weightDecay'])
    for step, (a, b) in enumerate(zip(run['losses'], theirs)):
        if step % 10 == 0 or step + 1 == len(theirs):
            print(f'step {step:4}  weft {a:.6f}  jax {b:.6f}')
    difference = compare(run['losses'], theirs)
    print(
        f'{len(theirs)} steps on {jax.devices()[0].device_kind}: largest relative difference '
        f'{difference:.3e}, limit {arguments.limit}'
    )
    return 0 if difference <= arguments.limit else 1


if __name__ == '__main__':
    sys.exit(main())
