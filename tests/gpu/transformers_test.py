"""Whole models with seeded random weights on a GPU against the `transformers` library: its weights
and config.json, saved as it saves them, are compiled (`weft compile FOLDER --part model`) and run
(`weft run --weights FOLDER`) in f16; the reference is its own model in f32 with the same weights.
Small models and published sizes (transformer_models.py); encoders also over packed sequences.
Skipped (77) without torch, transformers, GPU or NVRTC; without a GPU what is compiled and whether
the weights fit is checked first.

  transformers_test.py FOLDER_OF_COMMANDS [--only NAME ...] [--sizes tiny|real|all] [--most 0.005]
                       [--residual f32] [--keep FOLDER]

Prints of every result the largest difference, over 1 where the reference is below 1, else over the
reference, and beside it that of the library's own model in f16. Fails where the first is more than
--most and more than 1.2 times the second."""
import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import transformer_models as models

SKIPPED = 77
SEED = 20261128
# Of the library's own distance in f16: deep models with states in f16 are further than --most away,
# whoever computes them (docs/experiments/models.md, "beside transformers").
ITS_SHARE = 1.2
NO_DEVICE = 3  # exit code of weft run


class Packages:
    def __init__(self):
        import safetensors.torch
        import torch
        import transformers
        self.torch, self.transformers, self.files = torch, transformers, safetensors.torch
        self.version = int(transformers.__version__.split('.')[0])
        self.device = 'cuda' if torch.cuda.is_available() else 'cpu'
        transformers.logging.set_verbosity_error()


def halved(model):
    """A copy in f16. Buffers stay as they are: rounded frequencies of a rotary embedding would
    turn heads by other angles, which grow with the position."""
    half = copy.deepcopy(model).half()
    for own, other in zip(half.buffers(), model.buffers(), strict=True):
        own.data = other.data.clone()
    return half


def build(packages, one):
    """Its model with random weights that are representable in f16, in f32. As they are drawn, all
    biases are zero and all norms one, which would hide an exchange: they get noise."""
    torch = packages.torch
    torch.manual_seed(SEED)
    kind = {**one.config}
    config = packages.transformers.AutoConfig.for_model(kind.pop('model_type'), **kind)
    automatic = (packages.transformers.AutoModelForCausalLM
                 if one.has_logits else packages.transformers.AutoModel)
    model = automatic.from_config(config, attn_implementation='eager').eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.05 * torch.randn(parameter.shape)
            parameter.data = parameter.half().float()
    return model


def save(packages, one, model, folder):
    """config.json and model.safetensors, or shards and their index, as published ones are: of
    f16."""
    shards = {'max_shard_size': one.shard} if one.shard else {}
    halved(model).save_pretrained(folder, safe_serialization=True, **shards)
    files = len(list(folder.glob('*.safetensors')))
    if (files > 1) != bool(one.shard):
        raise RuntimeError(f'{one.name}: {files} files of weights')
    mask = folder / 'tiles.npy' if one.tile else None
    if mask:
        mask.write_bytes(models.npy(models.tiles_of(one)))
    return mask


def inputs(packages, one, model, plan, packed):
    """Of the plan by name, and of the model by keyword."""
    torch, (batch, length) = packages.torch, one.tokens
    padding = model.config.pad_token_id
    generator = torch.Generator().manual_seed(SEED)

    def draw(end):
        return torch.randint(0, end, one.tokens, generator=generator, dtype=torch.int32)

    tokens = draw(one.config['vocab_size'])
    if padding is not None:  # positions of RoBERTa and its relatives count the other ids
        tokens[tokens == padding] = padding + 1
    ours, theirs = {'tokens': tokens}, {'input_ids': tokens.long()}
    if any(tensor['logical'] == 'types' for tensor in plan['tensors']):
        ours['types'] = draw(2)
        theirs['token_type_ids'] = ours['types'].long()
    seen = torch.ones(one.tokens, dtype=torch.long)
    if packed:
        ours['lengths'] = torch.tensor(models.lengths_of(one), dtype=torch.int32)
        seen = (torch.arange(length) < ours['lengths'][:, None]).long()
    theirs['attention_mask'] = seen
    if one.tile:
        tiles = torch.tensor(models.tiles_of(one), dtype=torch.bool)
        sees = tiles.repeat_interleave(one.tile, 0).repeat_interleave(one.tile, 1)
        if packages.version < 5:
            theirs['attention_mask'] = sees.long().expand(batch, length, length)
        else:
            # What the library adds to scores: a mask of four axes is taken as it is.
            added = torch.zeros(length, length).masked_fill(~sees, torch.finfo(torch.float).min)
            theirs['attention_mask'] = added.expand(batch, 1, length, length)
    if one.global_positions:
        theirs['global_attention_mask'] = torch.zeros(one.tokens, dtype=torch.long)
        theirs['global_attention_mask'][:, :one.global_positions] = 1
    return ours, theirs, seen.bool()


def results_of(packages, model, keywords):
    model.to(packages.device)
    keywords = {name: value.to(packages.device, model.dtype if value.is_floating_point() else None)
                for name, value in keywords.items()}
    with packages.torch.no_grad():
        found = model(**keywords, return_dict=True)
    return {name: value.float().cpu() for name, value in found.items()
            if name in ('logits', 'last_hidden_state', 'pooler_output')}


def distance(found, expected, seen):
    """Packed sequences have no results behind their ends."""
    if expected.dim() == 3:
        found, expected = found[seen], expected[seen]
    return float(((found.float() - expected).abs() / expected.abs().clamp(min=1)).max())


class Comparison:
    def __init__(self, packages, commands, work, most, residual):
        self.packages, self.commands, self.work, self.most = packages, commands, work, most
        self.choices = ['--residual', residual] if residual else []
        self.skipped, self.fitting = '', 0

    def call(self, command, *arguments):
        done = subprocess.run([self.commands / command, *map(str, arguments)], capture_output=True,
                              text=True, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()

    def check(self, one, packed):
        """Failures of one model."""
        name = one.name + (' packed' if packed else '')
        model, folder = build(self.packages, one), self.work / f'{one.name}-weights'
        mask = save(self.packages, one, model, folder)
        plan_folder = self.work / name.replace(' ', '-')
        code, text = self.call('weft', 'compile',
                               *models.compile_arguments(one, folder, mask, packed), *self.choices,
                               '--overwrite', '-o', plan_folder)
        if code:
            return [f'{name}: weft compile: exit {code}: {text}']
        plan = json.loads((plan_folder / 'plan.json').read_text())
        ours, theirs, seen = inputs(self.packages, one, model, plan, packed)
        given, left = plan_folder.with_suffix('.in'), plan_folder.with_suffix('.out')
        self.packages.files.save_file(ours, given)
        code, text = self.call('weft', 'run', plan_folder, '--weights', folder, '--inputs', given,
                               '--outputs', left)
        if code == NO_DEVICE:
            self.skipped, self.fitting = text, self.fitting + 1
            return []
        if code:
            return [f'{name}: weft run: exit {code}: {text}']
        expected, failures = results_of(self.packages, model, theirs), []
        rounded = results_of(self.packages, halved(model), theirs)
        for result, found in self.packages.files.load_file(left).items():
            theirs_of = models.output_of(result)
            far = distance(found, expected[theirs_of], seen)
            library = distance(rounded[theirs_of], expected[theirs_of], seen)
            print(f'{name}: {result}: {far:.2e} from {theirs_of}; the library in f16: '
                  f'{library:.2e}' + (f'; more than {self.most:g}' if far > self.most else ''),
                  flush=True)
            if not (far <= self.most or far <= ITS_SHARE * library):
                failures.append(f'{name}: {result} is {far:.2e} away, more than {self.most:g} and '
                                f'than {ITS_SHARE} times the library in f16, {library:.2e}')
        return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('commands', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--only', nargs='+', metavar='NAME')
    parser.add_argument('--sizes', choices=('tiny', 'real', 'all'), default='all')
    parser.add_argument('--most', type=float, default=5e-3)
    parser.add_argument('--residual', metavar='TYPE', help='of the residual stream: f32')
    parser.add_argument('--keep', type=pathlib.Path)
    flags = parser.parse_args()
    try:
        packages = Packages()
    except ImportError as error:
        print(f'skipped: {error}')
        return SKIPPED
    chosen = [*(models.TINY if flags.sizes != 'real' else []),
              *(models.REAL if flags.sizes != 'tiny' else [])]
    if flags.only:
        chosen = [one for one in chosen if one.name in flags.only]
        if unknown := set(flags.only) - {one.name for one in chosen}:
            parser.error(f'no model {", ".join(sorted(unknown))}')
    with tempfile.TemporaryDirectory() as temporary:
        work = flags.keep or pathlib.Path(temporary)
        work.mkdir(exist_ok=True)
        comparison, failures = Comparison(packages, flags.commands, work, flags.most,
                                          flags.residual), []
        for one in chosen:
            if comparison.skipped and one in models.REAL:
                continue  # without a GPU the published sizes say nothing more
            for packed in (False, True) if one.ragged else (False,):
                failures += comparison.check(one, packed)
    if failures:
        print('\n'.join(failures))
        return 1
    if comparison.skipped:
        print(f'skipped: {comparison.skipped}\n'
              f'{comparison.fitting} plans compiled, and the weights of each fit')
        return SKIPPED
    print(f'{len(chosen)} models agree with transformers {packages.transformers.__version__}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
