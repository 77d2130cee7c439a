"""weft time without a GPU: what it rejects, and why."""
import ctypes
import unittest

from weft_command import CORE, CommandTest


def has_driver():
    try:
        ctypes.CDLL('libcuda.so.1')
        return True
    except OSError:
        return False


class TimeTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('compile', *CORE, '--attention', 'unfused', '-o', 'plan',
                  env={'WEFT_NVRTC': 'none'})

    def test_usage(self):
        self.fails(2, 'time', says=['DIR'])
        self.fails(2, 'time', 'plan', '--cold', '--warm',
                   says=['--cold and --warm exclude each other'])
        self.fails(2, 'time', 'plan', '--rounds', '0', says=['--rounds 0: at least one round'])

    def test_no_artifact(self):
        self.fails(2, 'time', 'nowhere', says=['nowhere is no artifact'])
        self.fails(2, 'time', 'plan', '--against', 'nowhere', says=['nowhere is no artifact'])

    @unittest.skipIf(has_driver(), 'a CUDA driver is here')
    def test_no_driver(self):
        self.fails(3, 'time', 'plan', says=['no CUDA driver'])
        result = self.weft('time', 'plan', '--json', code=3)
        self.assertIn('no CUDA driver', result.json()['error']['message'])


class KeepTest(CommandTest):
    def test_unknown_kind(self):
        self.fails(2, 'compile', *CORE, '-o', 'plan', '--keep', 'ptx,sas',
                   says=["--keep sas: unknown value", 'sass'])
        self.assertNothingLeft({})

    def test_listings_lie_beside_the_kernels(self):
        disassembler = self.folder / 'bin' / 'nvdisasm'
        disassembler.parent.mkdir()
        disassembler.write_text('#!/bin/sh\necho "code of $2"\n')
        disassembler.chmod(0o755)
        self.weft('compile', *CORE, '--attention', 'unfused', '-o', 'plan', '--keep', 'ptx,sass',
                  env={'CUDA_HOME': str(self.folder)})
        plan = self.assertWholeArtifact('plan')
        built = [kernel['name'] for kernel in plan['kernels'] if kernel['cubin']]
        if not built:
            self.skipTest('no NVRTC')
        for name in built:
            self.assertIn('.entry', (self.folder / f'plan/ptx/{name}.ptx').read_text())
            self.assertIn('kernel.cubin', (self.folder / f'plan/sass/{name}.sass').read_text())


if __name__ == '__main__':
    unittest.main()
