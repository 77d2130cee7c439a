"""8-bit floats from a graph to cubins: scales fused into the product, boxes of 128 elements, casts
by loop kernels."""
import json
import re
import unittest

from weft_command import CommandTest

GRAPH = '''!bji = tensor<4x512x1024xf8E4M3FN, #weft.axes<b, j, i>>
!ui = tensor<512x1024xTYPE, #weft.axes<u, i>>
!bju = tensor<4x512x512xf32, #weft.axes<b, j, u>>
!half = tensor<4x512x512xf16, #weft.axes<b, j, u>>
!wide = tensor<4x512x1024xf16, #weft.axes<b, j, i>>
!s = tensor<f32, #weft.axes<>>
module {
  weft.graph @scaled(%x: !wide, %w: !ui {weft.parameter}, %x_scale: !s,
                      %w_scale: !s {weft.parameter}) -> !half {
    %q = weft.cast %x : !wide -> !bji
    %c = weft.contract "bji,ui->bju" %q, %w : !bji, !ui -> !bju
    %d = weft.mul %c, %x_scale along () : !bju, !s
    %e = weft.mul %d, %w_scale along () : !bju, !s
    %f = weft.cast %e : !bju -> !half
    weft.return %f : !half
  }
}
'''


class Float8(CommandTest):
    def compile(self, second, *flags, device='h200'):
        self.write('float8.mlir', GRAPH.replace('TYPE', second))
        self.weft('compile', 'float8.mlir', '--device', device, '--profile', 'none', *flags, '-o',
                  'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        return plan, {kernel['family']: kernel for kernel in plan['kernels']}

    def test_a_scaled_gemm_is_one_kernel_behind_a_cast(self):
        for second in ('f8E4M3FN', 'f8E5M2'):
            plan, kernels = self.compile(second)
            self.assertEqual(set(kernels), {'loop', 'gemm-sm90'})
            types = {tensor['logical']: tensor['dtype'] for tensor in plan['tensors']}
            self.assertEqual(types['q'], 'f8e4m3')
            self.assertEqual(types['w'], 'f8e4m3' if second == 'f8E4M3FN' else 'f8e5m2')
            text = (self.folder / 'out' / kernels['gemm-sm90']['source']).read_text()
            self.assertRegex(
                text,
                r'weft::sm90::Elements<weft::float8e(4m3|5m2), weft::float8e(4m3|5m2), '
                r'weft::half>'
            )
            self.assertEqual(len(re.findall(r'const float \w+ = weft::loadOne', text)), 2)
            maps = [
                parameter['map'] for parameter in kernels['gemm-sm90']['parameters']
                if parameter['map']
            ]
            self.assertEqual(sorted(map['box'][0] for map in maps), [64, 128, 128])
            self.assertTrue(kernels['gemm-sm90']['cubin'],
                            'built, unless there is no NVRTC')

    def test_a_target_without_gemms_of_8_bits_takes_plain_kernels(self):
        plan, kernels = self.compile('f8E5M2', '--no-library', device='a100')
        self.assertIn('gemm-fma', kernels)
        self.assertTrue(all(kernel['cubin'] for kernel in plan['kernels']))

    def test_a_type_that_is_none_is_rejected(self):
        self.write('bad.mlir', GRAPH.replace('TYPE', 'f8E4M3'))
        self.fails(2, 'compile', 'bad.mlir', '-o', 'out', says=['type_c6', 'f8E4M3FN, f8E5M2'])


if __name__ == '__main__':
    unittest.main()
