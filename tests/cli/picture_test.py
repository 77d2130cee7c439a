"""The picture of the README is what tools/draw-fusion draws of the plan that weft chooses today;
`picture_test.py --update` draws it anew."""
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

from weft_command import ROOT, WEFT

PICTURE = ROOT / 'docs/fusion.svg'
MODEL = ['paper-encoder', '--dim', 'b=8', '--dim', 'j=512', '--device', 'h200']


def draw(*arguments):
    return subprocess.run([ROOT / 'tools/draw-fusion', *arguments], capture_output=True, text=True,
                          check=False)


def drawn_today():
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / 'plan'
        subprocess.run([WEFT, 'compile', *MODEL, '--stop-after', 'emit', '-o', artifact],
                       capture_output=True, check=True)
        done = draw(artifact)
    assert done.returncode == 0, done.stderr
    return done.stdout


class PictureTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.picture = drawn_today()

    def test_the_committed_picture_is_of_todays_plan(self):
        self.assertEqual(PICTURE.read_text(encoding='utf-8'), self.picture,
                         'tests/cli/picture_test.py --update draws it anew')

    def test_every_op_is_drawn_once_and_boxes_lie_inside(self):
        root = xml.etree.ElementTree.fromstring(self.picture)
        width, height = float(root.get('width')), float(root.get('height'))
        names = [text.text for text in root.iter('{http://www.w3.org/2000/svg}text')]
        for name in ('weighted', 'norm1', 'active_kept', 'norm2'):
            self.assertEqual(names.count(name), 1)
        boxes = list(root.iter('{http://www.w3.org/2000/svg}rect'))
        self.assertGreater(len(boxes), 25)
        for box in boxes:
            right = float(box.get('x', 0)) + float(box.get('width'))
            bottom = float(box.get('y', 0)) + float(box.get('height'))
            self.assertLessEqual(right, width)
            self.assertLessEqual(bottom, height)

    def test_what_is_no_artifact_is_named(self):
        done = draw('/nonexistent')
        self.assertEqual(done.returncode, 2)
        self.assertIn('/nonexistent', done.stderr)


if __name__ == '__main__':
    if '--update' in sys.argv:
        PICTURE.write_text(drawn_today(), encoding='utf-8')
    else:
        unittest.main()
