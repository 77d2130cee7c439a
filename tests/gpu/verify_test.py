"""weft verify on a GPU of artifacts that no preset describes: a .mlir model, its variants, a
config.json, other extents.

  verify_test.py FOLDER_OF_COMMANDS      Skipped (77) where there is no GPU or no NVRTC."""
import json
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
SMALL = '--dim b=2 --dim j=64 --dim h=4 --dim p=16 --dim i=64 --dim u=128'
ENCODER = ['paper-encoder', *SMALL.split()]
DECOMPOSED = '--norms decomposed --attention unfused --stacking three --profile none'.split()
# Norms by sums: as the plan has them; with sums in the epilogue before, with the norm applied where
# the next product loads.
NORMS = (('gpt2', '', 'attention_product', 'hidden_product'), ('llama-3-8b', '--dim g=2',
                                                               'attention', 'gate_up'))
CONFIG = {
    'model_type': 'bert', 'hidden_size': 128, 'num_attention_heads': 4, 'intermediate_size': 256,
    'hidden_act': 'gelu', 'num_hidden_layers': 2, 'max_position_embeddings': 128,
    'layer_norm_eps': 1e-12, 'type_vocab_size': 2, 'vocab_size': 1000
}
# Its backward kernel stores the gradients of scores, which those of biases are summed from.
BIASED = pathlib.Path(__file__).resolve().parents[2] / 'examples/biased_attention.mlir'
# Its axes are known to nobody, and their extents cannot be made smaller: small enough as they are.
UNKNOWN = '''!xy = tensor<24x40xf16, #weft.axes<x, y>>
!yz = tensor<40x16xf16, #weft.axes<y, z>>
!xz = tensor<24x16xf16, #weft.axes<x, z>>
module {
  weft.graph @product(%a: !xy, %b: !yz {weft.parameter}) -> !xz {
    %c = weft.contract "xy,yz->xz" %a, %b : !xy, !yz -> !xz
    %d = weft.relu %c : !xz
    weft.return %d : !xz
  }
}
'''

# Operands of 8 bits with the scales of both; a result that is quantized again.
FLOAT8 = '''!bji = tensor<2x40x64xf8E4M3FN, #weft.axes<b, j, i>>
!ui = tensor<48x64xf8E5M2, #weft.axes<u, i>>
!bju = tensor<2x40x48xf32, #weft.axes<b, j, u>>
!narrow = tensor<2x40x48xf8E4M3FN, #weft.axes<b, j, u>>
!u = tensor<48xf16, #weft.axes<u>>
!half = tensor<2x40x48xf16, #weft.axes<b, j, u>>
!s = tensor<f32, #weft.axes<>>
module {
  weft.graph @scaled(%x: !bji, %w: !ui {weft.parameter}, %x_scale: !s,
                      %w_scale: !s {weft.parameter}, %bias: !u {weft.parameter})
      -> (!half, !narrow) {
    %c = weft.contract "bji,ui->bju" %x, %w : !bji, !ui -> !bju
    %d = weft.mul %c, %x_scale along () : !bju, !s
    %e = weft.mul %d, %w_scale along () : !bju, !s
    %f = weft.bias %e, %bias along (u) : !bju, !u
    %g = weft.cast %f : !bju -> !half
    %r = weft.relu %g : !half
    %q = weft.cast %r : !half -> !narrow
    weft.return %g, %q : !half, !narrow
  }
}
'''


class Runner:
    def __init__(self, commands, folder):
        self.commands, self.folder = commands, folder

    def weft(self, *arguments):
        return subprocess.run([self.commands / 'weft', *map(str, arguments)], cwd=self.folder,
                              capture_output=True, text=True, check=False)

    def check(self, name, *compile_flags):
        """A failure's text, or None."""
        made = self.weft('compile', *compile_flags, '-o', name)
        if made.returncode:
            return f'{name}: compile: exit {made.returncode}: {made.stderr}'
        done = self.weft('verify', name, '--json')
        if done.returncode == 3:
            raise SystemExit(self.skip(done.stderr or done.stdout))
        result = json.loads(done.stdout)
        whole = result['whole']
        print(
            f'{name}: {result["agreed"]} kernels agree, {result["failed"]} failed; whole at '
            f'{whole["dims"]}: {whole["results"] or whole["reason"]}'
        )
        if done.returncode or not whole['checked'] or not whole['results']:
            return f'{name}: exit {done.returncode}, whole plan: {whole}'
        return None

    @staticmethod
    def skip(text):
        print(f'skipped: {text.strip()}')
        return SKIPPED


def main():
    with tempfile.TemporaryDirectory() as temporary:
        runner = Runner(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(temporary))
        runner.weft('import', *ENCODER, '-o', 'layer.mlir')
        (runner.folder / 'config.json').write_text(json.dumps(CONFIG))
        (runner.folder / 'unknown.mlir').write_text(UNKNOWN)
        (runner.folder / 'float8.mlir').write_text(FLOAT8)
        failures = list(
            filter(None, [
                runner.check('mlir', 'layer.mlir'),
                runner.check('stacked', 'layer.mlir', '--stacking', 'three', '--no-library'),
                runner.check('config', 'config.json', '--dim', 'b=2', '--dim', 'j=64'),
                runner.check('preset', *ENCODER),
                runner.check('decomposed', *ENCODER, '--attention', 'decomposed'),
                runner.check('recomposed', *ENCODER, '--attention', 'recomposed', '--mask',
                             'causal', '--profile', 'none'),
                runner.check('recomposed-train', *ENCODER, '--train', '--attention', 'recomposed',
                             '--profile', 'none'),
                *(runner.check(f'norms-{model}-{len(fuse)}-{dtype}', model, '--dtype', dtype, *
                               f'{SMALL} {more}'.split(), *DECOMPOSED, *fuse)
                  for model, more, before, behind in NORMS for dtype in ('f16', 'bf16')
                  for fuse in (
                      (), ('--fuse', f'{before},norm2_squares'),
                      ('--fuse', f'{before},norm2_squares', '--fuse', f'norm2_normal,{behind}'))),
                *(runner.check(f'norms-deferred-{dtype}-{len(fuse)}', 'llama-3-8b', '--dtype',
                               dtype, *f'{SMALL} --dim g=2 --norms deferred'.split(), *
                               DECOMPOSED[2:], *fuse) for dtype in ('f16', 'bf16')
                  for fuse in (
                      (), ('--fuse', 'attention,norm2_squares', '--fuse', 'gate_up_raw,gate_up'))),
                runner.check('unknown', 'unknown.mlir'),
                runner.check('float8', 'float8.mlir'),
                runner.check('float8-ours', 'float8.mlir', '--no-library'),
                runner.check('tf32', *ENCODER, '--dtype', 'f32', '--tf32'),
                runner.check('bias-train', BIASED, '--train', '--attention', 'fused', '--profile',
                             'none'),
                runner.check('tf32-train', *ENCODER, '--dtype', 'f32', '--tf32', '--train',
                             '--no-library'),
            ]))
    print('\n'.join(failures) or 'every kernel and every whole plan agrees')
    return 1 if failures else 0


sys.exit(main())
