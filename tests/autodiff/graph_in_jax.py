"""Forward graphs in their text form as JAX functions, written from ir/SPEC.md alone: nothing here
knows how weft differentiates.

Statements are those of ir/Syntax.cpp. Everything is computed in fp64."""
import re

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update('jax_enable_x64', True)

STATEMENT = re.compile(
    r'''^\s*(?P<results>%[\w, %]+)\s=\sweft\.(?P<op>\w+)
    (?:\s"(?P<spec>[^"]*)")?(?:\s(?P<kind>causal|window|padding|block|pattern|sum|max))?
    \s(?P<operands>%\w+(?:,\s%\w+)*)(?:\sover\s(?P<over>[\w, ]+?))?
    (?:\salong\s\((?P<along>[^)]*)\))?
    (?:\s\{(?P<attributes>.*?)\})?\s:\s(?P<types>.*)$''', re.VERBOSE)
CONSTANT = re.compile(r'^\s*%(?P<result>\w+) = weft\.constant dense<(?P<value>[^<>\[\]]+)> : '
                      r'(?P<type>.*)$')


class Type:
    """tensor<2x3xf32, #weft.axes<b, j>>"""
    def __init__(self, text):
        body, axes = re.fullmatch(r'tensor<(.*), #weft\.axes<(.*)>>', text).groups()
        *extents, self.dtype = body.split('x')
        self.shape = tuple(int(extent) for extent in extents)
        self.axes = [axis.strip() for axis in axes.split(',') if axis.strip()]

    def dimension(self, name):
        return int(name) if re.fullmatch(r'-?\d+', name) else self.axes.index(name)

    def dimensions(self, names):
        return [self.dimension(name.strip()) for name in names.split(',') if name.strip()]


def philox(counter, key, rounds=7):
    """Philox4x32 of SPEC.md, section Dropout bits: four words and two keys to four words, as
    Python's integers."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        product0, product1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(product1 >> 32) ^ c[1] ^ k[0], product1 % 2**32, (product0 >> 32) ^ c[3] ^ k[1],
             product0 % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def mixed(words):
    """Of four arrays of uint32, whose products wrap."""
    for _ in range(2):
        for i, (a, b) in enumerate(((1, 3), (2, 0), (0, 1), (1, 2))):
            words[i] = words[i] + words[a] * words[b]
        words = [word ^ (word >> np.uint32(16)) for word in words]
    return words


def kept(shape, p, stream, seed, step):
    """The mask of SPEC.md: one draw an element of the tensor seen as [outer][rows][columns]."""
    columns = shape[-1] if shape else 1
    rows = shape[-2] if len(shape) > 1 else 1
    outer = int(np.prod(shape)) // (rows * columns)
    o, r, c = np.meshgrid(np.arange(outer), np.arange(rows), np.arange(columns), indexing='ij')
    lane = (r % 16 % 8) * 4 + (c % 16 % 8) // 2
    draw = c % 2 + 2 * (r % 16 // 8) + 4 * (c % 16 // 8)
    common = philox((0, 0, 0, stream), (seed % 2**32, (seed >> 32) ^ (step * 0x9E3779B9 % 2**32)))
    parts = [lane + 32 * (c // 16), r // 16, o % 2**32, np.zeros_like(o)]
    words = np.stack(
        mixed([
            np.uint32(word) + part.astype(np.uint32) * np.uint32(0x9E3779B9)
            for word, part in zip(common, parts)
        ]))
    word = np.take_along_axis(words, (draw // 2)[None], axis=0)[0]
    bits = (word >> (16 * (draw % 2)).astype(np.uint32)) & np.uint32(0xFFFF)
    return (bits >= round(p * 65536)).reshape(shape)


def block_table(pattern):
    """The tile size and [heads, rows, columns] of a table(block=..) (kernel/BlockMask.h)."""
    values = dict(part.split('=') for part in pattern.strip('"')[len('table('):-1].split(','))
    digits = re.sub(r'(.)\*(\d+);', lambda run: run[1] * int(run[2]), values['bits'])
    heads, rows, columns = (int(values[name]) for name in ('heads', 'rows', 'columns'))
    bits = np.array([int(digit, 16) >> bit & 1 for digit in digits for bit in range(4)])
    return int(values['block']), bits.reshape(heads, rows, -1)[:, :, :columns] != 0


class Graph:
    """One weft.graph of a module's text."""
    def __init__(self, text, name=None, seed=1, step=0):
        self.seed, self.step = seed, step
        self.aliases = dict(re.findall(r'^(!\w+)\s*=\s*(tensor<.*>)$', text, re.MULTILINE))
        header = re.search(rf'weft\.graph @({name or r"[^(]+"})\((.*?)\) ->.*$', text, re.MULTILINE)
        self.name = header.group(1)
        body = text[header.end():text.index('weft.return', header.end())]
        self.arguments = {
            argument: self.type(type_text)
            for argument, type_text in re.findall(r'%(\w+): (!\w+|tensor<[^>]*>>)', header.group(2))
        }
        self.lines = [line for line in body.splitlines() if ' = weft.' in line]
        ending = text[text.index('weft.return', header.end()):].splitlines()[0]
        names, types = ending[len('weft.return '):].split(' : ')
        self.results = [name.strip().lstrip('%') for name in names.split(',')]
        self.result_types = self.types(types)

    def type(self, text):
        return Type(self.aliases.get(text.strip(), text.strip()))

    def types(self, text):
        return [self.type(one) for one in re.findall(r'!\w+|tensor<[^>]*>>', text)]

    def __call__(self, values):
        """Argument name -> array to result arrays, in order."""
        values = dict(values)
        for line in self.lines:
            if constant := CONSTANT.match(line):
                values[constant['result']] = jnp.full(
                    self.type(constant['type']).shape, float(constant['value']))
                continue
            matched = STATEMENT.match(line)
            if not matched:
                raise ValueError(f'not understood: {line}')
            statement = Statement(self, matched)
            operands = [values[name.strip().lstrip('%')] for name in matched['operands'].split(',')]
            produced = getattr(statement, 'op_' + matched['op'])(*operands)
            produced = produced if isinstance(produced, tuple) else (produced, )
            for name, value in zip(matched['results'].split(','), produced):
                values[name.strip().lstrip('%')] = value
        return [values[name] for name in self.results]


class Statement:
    """One op: its attributes, and what it means."""
    def __init__(self, graph, matched):
        self.graph, self.spec, self.kind = graph, matched['spec'], matched['kind']
        operand_text, _, result_text = matched['types'].partition(' -> ')
        self.operands, self.result_types = graph.types(operand_text), graph.types(result_text)
        self.first = self.operands[0]
        self.over = self.first.dimensions(matched['over']) if matched['over'] else None
        self.along = self.first.dimensions(
            matched['along']) if matched['along'] is not None else None
        self.attributes = dict(
            re.findall(r'(\w+) = (\[[^\]]*\]|"[^"]*"|[^,\]]+)', matched['attributes'] or ''))

    def number(self, name, otherwise=None):
        return float(self.attributes[name]) if name in self.attributes else otherwise

    def integer(self, name):
        return int(self.attributes[name])

    def dimension(self, name):
        return self.first.dimension(self.attributes[name])

    def listed(self, name):
        return [
            part.strip() for part in self.attributes[name].strip('[]').split(',') if part.strip()
        ]

    def spread(self, a, b):
        """b against a: dimension n of b runs along dimension along[n]."""
        if self.along is None:
            return b
        order = sorted(range(len(self.along)), key=lambda n: self.along[n])
        shape = [a.shape[d] if d in self.along else 1 for d in range(a.ndim)]
        return jnp.transpose(b, order).reshape(shape)

    # Maps.
    def op_relu(self, x):
        return jnp.where(x > 0, x, 0.0)

    def op_gelu(self, x):
        return jax.nn.gelu(x, approximate=False)

    def op_gelu_tanh(self, x):
        return jax.nn.gelu(x, approximate=True)

    def op_silu(self, x):
        return x * jax.nn.sigmoid(x)

    def op_tanh(self, x):
        return jnp.tanh(x)

    def op_sigmoid(self, x):
        return jax.nn.sigmoid(x)

    def op_exp(self, x):
        return jnp.exp(x)

    def op_sqrt(self, x):
        return jnp.sqrt(x)

    def op_rsqrt(self, x):
        return jax.lax.rsqrt(x)

    def op_scale(self, x):
        return x * self.number('factor')

    def op_cast(self, x):
        return x

    def op_identity(self, x):
        return x

    def op_add(self, a, b):
        return a + self.spread(a, b)

    def op_sub(self, a, b):
        return a - self.spread(a, b)

    def op_mul(self, a, b):
        return a * self.spread(a, b)

    def op_div(self, a, b):
        return a / self.spread(a, b)

    op_bias = op_residual = op_add

    def op_select(self, condition, a, b):
        return jnp.where(condition != 0, a, b)

    def op_dropout(self, x):
        p = self.number('p')
        mask = kept(x.shape, p, self.integer('stream'), self.graph.seed, self.graph.step)
        return jnp.where(mask, x * np.float64(np.float32(1.0 / (1.0 - p))), 0.0)

    def op_rotary(self, x):
        axis, position = self.dimension('dim'), self.dimension('position')
        extent, base = x.shape[axis], self.number('base', 10000.0)
        x = jnp.moveaxis(x, (position, axis), (-2, -1))
        angle = np.arange(x.shape[-2])[:, None] * base**(-2.0 * np.arange(extent // 2) / extent)
        halved = self.attributes.get('style', 'halved') == 'halved'
        a, b = (x[..., :extent // 2], x[..., extent // 2:]) if halved else (x[..., 0::2], x[...,
                                                                                            1::2])
        turned = a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)
        y = jnp.concatenate(turned, -1) if halved else jnp.stack(turned, -1).reshape(x.shape)
        return jnp.moveaxis(y, (-2, -1), (position, axis))

    def op_alibi(self, x):
        query, key = self.dimension('query'), self.dimension('key')
        at = lambda d: np.arange(x.shape[d]).reshape([-1 if n == d else 1 for n in range(x.ndim)])
        head, count = 0, 1
        for name in self.listed('heads'):
            dimension = self.first.dimension(name)
            head, count = head * x.shape[dimension] + at(dimension), count * x.shape[dimension]
        whole, steepness = 2**(count.bit_length() - 1), self.number('steepness', 8.0)
        slope = np.where(head < whole, 2.0**(-steepness * (head + 1) / whole),
                         2.0**(-steepness * (2 * (head - whole) + 1) / (2 * whole)))
        return x + slope * (at(key) - (at(query) + x.shape[key] - x.shape[query]))

    def op_mask(self, x, aux=None):
        key = self.dimension('key')
        at = lambda d: np.arange(x.shape[d]).reshape([-1 if n == d else 1 for n in range(x.ndim)])
        if self.kind == 'padding':
            visible = at(key) < np.asarray(aux).reshape(
                [-1 if n == self.along[0] else 1 for n in range(x.ndim)])
        elif self.kind == 'block':
            query, size = self.dimension('query'), self.integer('size')
            visible = np.asarray(aux)[at(query) // size, at(key) // size] != 0
        elif self.kind == 'pattern':
            query, (size, table) = self.dimension('query'), block_table(self.attributes['pattern'])
            head = 0
            for dimension in self.along or []:
                head = head * x.shape[dimension] + at(dimension)
            visible = table[head, at(query) // size, at(key) // size]
        else:
            query = self.dimension('query')
            distance = at(key) - (at(query) + x.shape[key] - x.shape[query])
            left, right = (self.integer('left'),
                           self.integer('right')) if self.kind == 'window' else (np.inf, 0)
            visible = (-left <= distance) & (distance <= right)
            sees_all = int(self.attributes.get('global', '0').split()[0])
            position = at(query) + x.shape[key] - x.shape[query]
            visible = visible | (at(key) < sees_all) | (position < sees_all)
        return jnp.where(visible, x, -jnp.inf)

    # Contraction and normalization.
    def op_contract(self, a, b):
        return jnp.einsum(self.spec, a, b) * self.number('scale', 1.0)

    def op_softmax(self, x):
        largest = jax.lax.stop_gradient(jnp.max(x, self.over[0], keepdims=True))
        is_empty = largest == -jnp.inf
        e = jnp.where(is_empty, 0.0,
                      jnp.exp(jnp.where(is_empty, 0.0, x - jnp.where(is_empty, 0.0, largest))))
        total = jnp.sum(e, self.over[0], keepdims=True)
        return e / jnp.where(total == 0, 1.0, total)

    def norm(self, x, centered, gamma):
        axis = self.over[0]
        rstd = 1 / jnp.sqrt(
            jnp.mean(centered**2, axis, keepdims=True) + self.number('epsilon', 1e-5))
        shape = [-1 if d == axis else 1 for d in range(x.ndim)]
        return centered * rstd * gamma.reshape(shape), jnp.squeeze(rstd, axis), shape

    def op_layer_norm(self, x, gamma, beta=None):
        mean = jnp.mean(x, self.over[0], keepdims=True)
        y, rstd, shape = self.norm(x, x - mean, gamma)
        shifted = y if beta is None else y + beta.reshape(shape)
        return shifted, jnp.squeeze(mean, self.over[0]), rstd

    def op_rms_norm(self, x, gamma):
        y, rstd, _ = self.norm(x, x, gamma)
        return y, rstd

    def op_cross_entropy(self, x, labels):
        axis = self.over[0]
        labels = jnp.expand_dims(jnp.asarray(labels, int), axis)
        log_sums = jax.nn.logsumexp(x, axis, keepdims=True)
        is_label = (labels >= 0) & (labels < x.shape[axis])
        chosen = jnp.take_along_axis(x, jnp.where(is_label, labels, 0), axis)
        losses = jnp.where(is_label, log_sums - chosen, 0.0)
        return jnp.squeeze(losses, axis), jax.lax.stop_gradient(jnp.squeeze(log_sums, axis))

    def op_reduce(self, x):
        return (jnp.sum if self.kind == 'sum' else jnp.max)(x, tuple(self.over))

    # Movement.
    def op_transpose(self, x):
        return jnp.transpose(x, [self.first.dimension(name) for name in self.listed('permutation')])

    def op_concat(self, *parts):
        return jnp.concatenate(parts, self.dimension('axis'))

    def op_split_axis(self, x):
        return x.reshape(self.result_types[0].shape)

    op_merge_axes = op_split_axis

    def op_gather(self, table, indices):
        return table[jnp.asarray(indices, int)]

    def op_slice(self, x):
        start = self.integer('start')
        return jax.lax.slice_in_dim(x, start, start + self.integer('size'),
                                    axis=self.dimension('axis'))

    def op_pad(self, x):
        axis, start = self.dimension('axis'), self.integer('start')
        widths = [(0, 0)] * x.ndim
        widths[axis] = (start, self.integer('size') - start - x.shape[axis])
        return jnp.pad(x, widths)

    def op_broadcast(self, x):
        return jax.lax.broadcast_in_dim(x, self.result_types[0].shape,
                                        [int(d) for d in self.listed('into')])
