"""The rivals of group `decode`, and the layer in fp64: a Llama layer whose new tokens are written
into caches [batch, groups, positions, head] and attend to what these hold."""
import torch
import torch.nn.functional as F


class Caches:
    """Keys and values of every sequence, random; where the new token of each goes."""
    def __init__(self, row, device, dtype=torch.float16):
        size = (row.batch, row.groups, row.longest, row.head)
        self.keys = torch.randn(size, device=device, dtype=dtype)
        self.values = torch.randn(size, device=device, dtype=dtype)
        self.held = torch.tensor(row.held(), device=device)
        self.sequences = torch.arange(row.batch, device=device)
        self.reached = max(row.held()) + 1  # positions that any sequence has

    def append(self, keys, values):
        """`keys`, `values`: [batch, groups, head]."""
        self.keys[self.sequences, :, self.held] = keys
        self.values[self.sequences, :, self.held] = values


def rms_norm(x, gamma, epsilon):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * gamma


def angles(row, positions, dtype):
    """Cosines and sines [batch, 1, head] of the halves (x1, x2) -> (x1 c - x2 s, x2 c + x1 s)."""
    pairs = torch.arange(0, row.head, 2, device=positions.device, dtype=torch.float64) / row.head
    turns = positions.double()[:, None] * row.rotary_base**-pairs
    both = torch.cat([turns, turns], -1)[:, None]
    return both.cos().to(dtype), both.sin().to(dtype)


def turned(x, cosine, sine):
    first, second = x.chunk(2, -1)
    return x * cosine + torch.cat([-second, first], -1) * sine


def stacked(row, tensors):
    """Weights as matrices of F.linear, projections that read one tensor in one; heads lie group by
    group."""
    rows = lambda name: tensors[name].movedim(0, -2).reshape(-1, row.hidden)
    return {
        'gamma1': tensors['gamma1'], 'gamma2': tensors['gamma2'],
        'qkv': torch.cat([rows('wq'), rows('wk'), rows('wv')]), 'out': rows('wo').T.contiguous(),
        'gate_up': torch.cat([tensors['w_gate'], tensors['w_up']]), 'down': tensors['w_down']
    }


def layer(row, x, weights, cosine, sine, attend):
    """x: [batch, hidden]. `attend(q, k, v)`: of new queries [batch, heads, head], keys and values
    [batch, groups, head]."""
    projected = F.linear(rms_norm(x, weights['gamma1'], row.epsilon), weights['qkv'])
    split = [row.heads * row.head, row.groups * row.head, row.groups * row.head]
    q, k, v = (part.view(row.batch, -1, row.head) for part in projected.split(split, -1))
    mixed = attend(turned(q, cosine, sine), turned(k, cosine, sine), v)
    middle = x + F.linear(mixed.reshape(row.batch, -1), weights['out'])
    gate, up = F.linear(rms_norm(middle, weights['gamma2'], row.epsilon),
                        weights['gate_up']).chunk(2, -1)
    return middle + F.linear(F.silu(gate) * up, weights['down'])


def expected_of(row, tensors, x, caches):
    """[batch, hidden] in fp64: each sequence over the keys that it holds, and its own."""
    exact = stacked(row, {name: tensor.double() for name, tensor in tensors.items()})

    def attend(q, k, v):
        mixed = []
        for sequence, held in enumerate(row.held()):
            own = lambda cache, new: torch.cat(
                [cache[sequence, :, :held].double(), new[sequence][:, None]], 1)
            keys, values = own(caches.keys, k), own(caches.values, v)
            queries = q[sequence].view(row.groups, -1, row.head)
            scores = queries @ keys.mT / row.head**0.5
            mixed.append((scores.softmax(-1) @ values).flatten(0, 1))
        return torch.stack(mixed)

    return layer(row, x.double(), exact, *angles(row, caches.held, torch.float64), attend)


def padded_sdpa(row, caches):
    """A mask of keys over the positions that the longest sequence has."""
    reach = torch.arange(caches.reached, device=caches.held.device)
    mask = (reach[None] <= caches.held[:, None])[:, None, None]

    def attend(q, k, v):
        caches.append(k, v)
        return F.scaled_dot_product_attention(q[:, :, None], caches.keys[:, :, :caches.reached],
                                              caches.values[:, :, :caches.reached],
                                              attn_mask=mask, enable_gqa=True)

    return attend


def flex(row, caches):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    held = caches.held
    mask = create_block_mask(lambda b, h, query, key: key <= held[b], row.batch, None, 1,
                             row.longest, device=held.device)
    compiled = torch.compile(flex_attention, dynamic=False)

    def attend(q, k, v):
        caches.append(k, v)
        return compiled(q[:, :, None], caches.keys, caches.values, block_mask=mask,
                        enable_gqa=True)

    return attend


def flash(row, caches):
    """Flash attention's own function of caches [batch, positions, groups, head], which appends."""
    from flash_attn import flash_attn_with_kvcache
    keys, values = (one.transpose(1, 2).contiguous() for one in (caches.keys, caches.values))
    held = caches.held.int()
    return lambda q, k, v: flash_attn_with_kvcache(q[:, None], keys, values, k[:, None],
                                                   v[:, None], cache_seqlens=held)


ATTENDS = {'padded SDPA': padded_sdpa, 'FlexAttention': flex, 'flash with caches': flash}


def forms(settings, row, tensors, caches):
    """By name, what makes a call of x: each attention with the rest of the layer eager, and
    compiled where that is asked for."""
    weights = stacked(row, tensors)
    cosine, sine = angles(row, caches.held, torch.float16)

    def made(attend_of, compiles):
        attend = attend_of(row, caches)
        call = lambda x: layer(row, x, weights, cosine, sine, attend)
        return torch.compile(call) if compiles else call

    found = {}
    for name, attend_of in ATTENDS.items():
        found[name] = lambda attend_of=attend_of: made(attend_of, False)
        if settings.torch_compile and attend_of is not flash:
            found[f'{name}, torch.compile'] = lambda attend_of=attend_of: made(attend_of, True)
    return found
