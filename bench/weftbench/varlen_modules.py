"""The rivals of group `varlen`: encoder layers over padded sequences with a mask of keys, over
packed tokens with flash attention of variable lengths, and over nested tensors.

Each takes padded tokens [batch, length, hidden] and gives padded ones, as weft does. What depends
on the lengths alone (masks, offsets, places of the tokens) is made once, outside of what is
timed."""
import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from . import rivals, varlen_table


EXACT = 'none'  # GELU's approximation, as PyTorch names it


@dataclass
class Batch:
    """Sequences of different lengths, and what the rivals know of them."""
    lengths: list
    length: int
    device: str

    def __post_init__(self):
        device = self.device
        sizes = torch.tensor(self.lengths, device=device)
        self.valid = torch.arange(self.length, device=device)[None, :] < sizes[:, None]
        self.places = self.valid.flatten().nonzero().flatten()
        self.offsets = F.pad(sizes.cumsum(0), (1, 0))
        self.longest, self.shortest = max(self.lengths), min(self.lengths)

    def mask(self):
        """Keys that queries see; None where all are valid, which leaves SDPA its faster kernels."""
        return None if self.shortest == self.length else self.valid[:, None, None, :]

    def packed(self, x):
        return x.flatten(0, 1).index_select(0, self.places)

    def padded(self, tokens):
        whole = tokens.new_zeros(len(self.lengths) * self.length, tokens.shape[-1])
        return whole.index_copy_(0, self.places, tokens).view(len(self.lengths), self.length, -1)


def weights_of(module):
    """A rivals.EncoderLayer's weights, in the order in which encoder_layer takes them."""
    linear = lambda one: (one.weight, one.bias)
    return (*linear(module.qkv), *linear(module.out), *linear(module.norm1), *linear(module.up),
            *linear(module.down), *linear(module.norm2))


def encoder_layer(x, weights, epsilon, attend, approximate):
    """A post-norm layer over tokens of any arrangement; `attend` makes of projected tokens
    [.., 3 hidden] what attention gives, [.., hidden]; `approximate` is GELU's."""
    (qkv, qkv_bias, out, out_bias, gamma1, beta1, up, up_bias, down, down_bias, gamma2,
     beta2) = weights
    hidden = x.shape[-1:]
    mixed = F.linear(attend(F.linear(x, qkv, qkv_bias)), out, out_bias)
    middle = F.layer_norm(x + mixed, hidden, gamma1, beta1, epsilon)
    inner = F.linear(F.gelu(F.linear(middle, up, up_bias), approximate=approximate), down,
                     down_bias)
    return F.layer_norm(middle + inner, hidden, gamma2, beta2, epsilon)


def padded_layer(x, weights, mask, heads, epsilon, approximate=EXACT):
    def attend(projected):
        batch, length, _ = projected.shape
        q, k, v = projected.view(batch, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(batch, length, -1)

    return encoder_layer(x, weights, epsilon, attend, approximate)


def packed_layer(x, weights, offsets, longest, heads, epsilon, attention, approximate=EXACT):
    def attend(projected):
        q, k, v = projected.view(projected.shape[0], 3, heads, -1).unbind(1)
        return attention(q, k, v, offsets, longest).reshape(projected.shape[0], -1)

    return encoder_layer(x, weights, epsilon, attend, approximate)


def nested_layer(x, weights, heads, epsilon, approximate=EXACT):
    def attend(projected):
        split = lambda one: one.unflatten(-1, [heads, -1]).transpose(1, 2)
        q, k, v = map(split, projected.chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)

    return encoder_layer(x, weights, epsilon, attend, approximate)


def flash_varlen():
    """Flash attention of packed tokens by PyTorch's public function, else by the operator behind
    SDPA. Raises where there is neither."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        operator = torch.ops.aten._flash_attention_forward
        return lambda q, k, v, offsets, longest: operator(q, k, v, offsets, offsets, longest,
                                                          longest, 0.0, False, False)[0]
    return lambda q, k, v, offsets, longest: varlen_attn(q, k, v, offsets, offsets, longest,
                                                         longest)


def compiled(function):
    """As rivals.compiled, without forgetting what other rivals of the row compiled. One layer is
    compiled, and all layers run it: their weights are arguments."""
    return torch.compile(function, dynamic=False)


def stacked(layer, x, modules):
    for module in modules:
        x = layer(x, weights_of(module))
    return x


def padded_form(batch, modules, heads, epsilon, layer=padded_layer, approximate=EXACT):
    step = functools.partial(layer, mask=batch.mask(), heads=heads, epsilon=epsilon,
                             approximate=approximate)
    return lambda x: stacked(step, x, modules)


def packed_form(batch, modules, heads, epsilon, attention, layer=packed_layer, approximate=EXACT):
    step = functools.partial(layer, offsets=batch.offsets.int(), longest=batch.longest, heads=heads,
                             epsilon=epsilon, approximate=approximate, attention=attention)
    return lambda x: batch.padded(stacked(step, batch.packed(x), modules))


def nested_form(batch, modules, heads, epsilon, layer=nested_layer, approximate=EXACT):
    step = functools.partial(layer, heads=heads, epsilon=epsilon, approximate=approximate)

    def run(x):
        tokens = torch.nested.nested_tensor_from_jagged(batch.packed(x), batch.offsets,
                                                        min_seqlen=batch.shortest,
                                                        max_seqlen=batch.longest)
        return batch.padded(stacked(step, tokens, modules).values())

    return run


def forms(settings, batch, modules, heads, epsilon, approximate=EXACT):
    """By contender's name: what makes its call, which may raise where PyTorch lacks it."""
    if not settings.rivals:
        return {}
    sizes, own = (batch, modules, heads, epsilon), dict(approximate=approximate)
    found = {varlen_table.EAGER: lambda: padded_form(*sizes, **own)}
    if settings.torch_compile:
        found[varlen_table.COMPILED] = lambda: padded_form(*sizes, compiled(padded_layer), **own)
        found[varlen_table.FLASH] = lambda: packed_form(*sizes, flash_varlen(),
                                                        compiled(packed_layer), **own)
    found[varlen_table.NESTED] = lambda: nested_form(*sizes, **own)
    return found


def modules_of(row):
    if row.layer.shares:
        return [rivals.module_of(row.layer)] * row.layers
    return [rivals.module_of(row.layer) for _ in range(row.layers)]
