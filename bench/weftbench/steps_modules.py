"""Whole models and their training step as users of PyTorch write them: fused attention (SDPA),
mixed precision either by autocast or by f16 or bf16 parameters with f32 masters, AdamW(fused=True).

A step leaves gradients, averages and parameters where they are, so that a CUDA graph holds it."""
import copy

import torch
import torch.nn.functional as F

from . import rivals, steps_table, transfer_modules

DTYPES = {'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32}
BETAS, EPSILON, WEIGHT_DECAY, RATE = (0.9, 0.999), 1e-8, 0.01, 1e-3
DEVIATION = 0.02  # of weights at the start


class Decoder(torch.nn.Module):
    """Tokens and positions, pre-norm causal layers, last norm; the table of tokens is the head's
    weight, too. The mean cross entropy of labels, or logits where there are none."""
    def __init__(self, row):
        super().__init__()
        layer = row.layer
        self.token_table = torch.nn.Parameter(torch.empty(row.classes(), layer.hidden))
        self.position_table = torch.nn.Parameter(torch.empty(row.length, layer.hidden))
        self.layers = torch.nn.ModuleList(
            transfer_modules.DecoderLayer(layer.hidden, layer.heads, layer.feed_forward,
                                          epsilon=layer.epsilon) for _ in range(row.layers))
        self.last = torch.nn.LayerNorm(layer.hidden, eps=layer.epsilon)

    def forward(self, tokens, labels=None):
        x = F.embedding(tokens, self.token_table) + self.position_table
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.last(x), self.token_table)
        if labels is None:
            return (logits, )
        return (F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten()), )

    def tables(self):
        """What belongs to no layer, under the graph's names."""
        return {
            'token_table': self.token_table, 'position_table': self.position_table,
            'gamma_last': self.last.weight, 'beta_last': self.last.bias
        }


class Encoder(torch.nn.Module):
    """Tokens, types and positions, norm, post-norm layers; the last hidden states, and the first
    token's by the pooler."""
    def __init__(self, row):
        super().__init__()
        layer = row.layer
        table = lambda extent: torch.nn.Parameter(torch.empty(extent, layer.hidden))
        self.token_table, self.type_table, self.position_table = map(
            table, (row.classes(), 2, row.length))
        self.norm = torch.nn.LayerNorm(layer.hidden, eps=layer.epsilon)
        self.layers = torch.nn.ModuleList(rivals.module_of(layer) for _ in range(row.layers))
        self.pool = torch.nn.Linear(layer.hidden, layer.hidden)

    def forward(self, tokens, types):
        x = F.embedding(tokens, self.token_table) + F.embedding(types, self.type_table)
        x = self.norm(x + self.position_table)
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pool(x[:, 0]))

    def tables(self):
        return {
            'token_table': self.token_table, 'type_table': self.type_table,
            'position_table': self.position_table, 'gamma0': self.norm.weight,
            'beta0': self.norm.bias, 'w_pool': self.pool.weight, 'b_pool': self.pool.bias
        }


def module_of(row):
    """In f32, drawn by torch's seed."""
    module = (Decoder if row.is_decoder() else Encoder)(row)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, DEVIATION)
            elif name.endswith('bias'):
                parameter.zero_()
    return module


def tensors_of(module):
    """All parameters under the graph's names and axes, copied."""
    found = {name: value.detach().clone() for name, value in module.tables().items()}
    for number, layer in enumerate(module.layers, 1):
        for name, value in layer.tensors().items():
            found[f'layer{number}_{name}'] = value.clone()
    return found


class Data:
    """Of every step the same. `gradients`: of the module's results, times the loss scale."""
    def __init__(self, row, device):
        draw = lambda most: torch.randint(most, (row.batch, row.length), device=device)
        self.tokens = draw(row.classes())
        self.second = draw(row.classes() if row.is_decoder() else 2)  # labels or types
        self.inputs = (self.tokens, self.second)
        self.scale = row.loss_scale()
        if row.is_decoder():
            self.gradients = [torch.full((), self.scale, device=device)]
            return
        # Of 1 / tokens in size before they are scaled: representable in f16 with the scale.
        sizes = (row.batch, row.length, row.layer.hidden), (row.batch, row.layer.hidden)
        factor = self.scale / row.tokens()
        self.gradients = [
            (factor * torch.randn(*size, device=device)).to(DTYPES[row.dtype]) for size in sizes
        ]

    def loss(self, results):
        """In fp64: of a decoder its result, else what the given gradients are those of."""
        if len(results) == 1:
            return float(results[0])
        return sum(
            float((result.double() * gradient.double()).sum())
            for result, gradient in zip(results, self.gradients)) / self.scale


def optimizer_of(parameters, device):
    """Fused where there is a GPU; its count of steps lies there, for graphs."""
    on_gpu = torch.device(device).type == 'cuda'
    return torch.optim.AdamW(parameters, lr=RATE, betas=BETAS, eps=EPSILON,
                             weight_decay=WEIGHT_DECAY, fused=on_gpu, capturable=on_gpu)


class Step:
    """One step of f32 parameters: forward and backward of `call` by autocast of `dtype` (f32:
    none), AdamW. Gradients of f16 are checked, and unscaled by the optimizer (GradScaler)."""
    def __init__(self, module, data, device, dtype, call=None):
        self.data, self.device, self.dtype = data, torch.device(device).type, dtype
        self.call = call or module
        self.parameters = list(module.parameters())
        self.trained = self.trained_parameters()
        self.optimizer = optimizer_of(self.trained, device)
        self.scaler = torch.amp.GradScaler(self.device, init_scale=data.scale,
                                           growth_interval=2**30, enabled=dtype == torch.float16)
        self.scaler.scale(torch.zeros((), device=device))  # puts the scale on the device
        # What the optimizer sees is unscaled by the scaler of f16 alone.
        self.divisor = 1 if dtype == torch.float16 else data.scale
        self.start = [parameter.detach().clone() for parameter in self.trained]

    def trained_parameters(self):
        return self.parameters

    def results(self):
        with torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32):
            return self.call(*self.data.inputs)

    def set_gradients(self, gradients):
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient

    def finish(self):
        """After the optimizer's step."""

    def twin(self, call):
        """The same parameters and optimizer with another form of the module."""
        other = copy.copy(self)
        other.call = call
        return other

    def restart(self):
        """Back to the parameters of the beginning. Not once a graph holds the step."""
        with torch.no_grad():
            torch._foreach_copy_(self.trained, self.start)
        self.optimizer.state.clear()
        self.finish()

    def losses(self, count):
        """Of the first steps."""
        self.restart()
        return [self.data.loss(self()) for _ in range(count)]

    def __call__(self):
        results = self.results()
        given = [
            gradient.to(result.dtype)
            for result, gradient in zip(results, self.data.gradients, strict=True)
        ]
        if self.divisor != 1:
            given = [gradient / self.divisor for gradient in given]
        self.set_gradients(torch.autograd.grad(results, self.parameters, given))
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.finish()
        return [result.detach() for result in results]


class MasterStep(Step):
    """Of parameters of f16 or bf16, whose f32 masters the optimizer updates."""
    def trained_parameters(self):
        masters = [parameter.detach().float() for parameter in self.parameters]
        for master in masters:
            master.requires_grad_()
            master.grad = torch.zeros_like(master)
        return masters

    def results(self):
        return self.call(*self.data.inputs)

    def set_gradients(self, gradients):
        torch._foreach_copy_([master.grad for master in self.trained], list(gradients))

    def finish(self):
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.trained)


def step_of(form, module, data, device, dtype):
    """Eager, in one of the forms of mixed precision. `module`: in f32; it becomes the step's."""
    if form == steps_table.AUTOCAST:
        return Step(module, data, device, dtype)
    start = [parameter.detach().clone() for parameter in module.parameters()]
    step = MasterStep(module.to(dtype), data, device, dtype)
    step.start = start  # masters begin with what the parameters are the rounding of
    return step
