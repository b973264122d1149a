"""From a folder of photos to a trained classifier and its predictions: three commands.

    python examples/your_photos.py                  # shapes that it draws
    python examples/your_photos.py my/photos work   # a folder with one for each class

For boxes and label maps, --task of new_config.py is det or seg: docs/use/own_data.md.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[1]


def draw_shapes(folder, count=24):
    """Writes photos of two classes, discs and squares."""
    for name, draw in (('disc', 'ellipse'), ('square', 'rectangle')):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            image = Image.new('RGB', (64, 64), (i, 90, 90))
            box = 8 + i % 9, 10 + i % 7, 50 + i % 5, 52 + i % 3
            getattr(ImageDraw.Draw(image), draw)(box, fill=(230, 200 - i, 10))
            image.save(folder / name / f'{i}.png')


def run(*args):
    """A program of this Python; its output is on the screen."""
    command = [sys.executable, *map(str, args)]
    print('+', *command, flush=True)
    subprocess.run(command, check=True)


def main(photos='', work=''):
    work = Path(work or tempfile.mkdtemp())
    if not photos:
        photos = work / 'photos'
        draw_shapes(photos)
    config, runs = work / 'mine.py', work / 'run'
    # for a first look: from scratch, and short
    fast = '--pretrained', 'none', '--epochs', 2
    tools = ROOT / 'tools'
    new_config = tools / 'misc' / 'new_config.py'
    run(new_config, '--data', photos, '--task', 'cls', '--out', config, *fast)
    run(tools / 'train.py', config, '--work-dir', runs)
    (best,) = runs.glob('best_*.pth')
    show = tools / 'analysis_tools' / 'compare_predictions.py'
    first, *_ = sorted(Path(photos).iterdir())  # photos of one class
    found = '--image', first, '--out', work / 'found'
    run(show, config, '--checkpoint', best, *found)
    print(f'Open {work / "found"}.')


if __name__ == '__main__':
    main(*sys.argv[1:])
