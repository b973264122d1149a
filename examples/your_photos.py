"""From a folder of photos to a trained classifier.

    python examples/your_photos.py                  # shapes that it draws
    python examples/your_photos.py my/photos work   # a folder with one for each class

For boxes and label maps, the task is 'det' or 'seg': docs/use/own_data.md.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageDraw

from mmlinattn.own_config import write_config
from mmlinattn.own_data import OwnData
from mmlinattn.runs import train


def draw_shapes(folder, count=24):
    """Write photos of two classes, discs and squares."""
    for name, draw in (('disc', 'ellipse'), ('square', 'rectangle')):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            image = Image.new('RGB', (64, 64), (i, 90, 90))
            box = 8 + i % 9, 10 + i % 7, 50 + i % 5, 52 + i % 3
            getattr(ImageDraw.Draw(image), draw)(box, fill=(230, 200 - i, 10))
            image.save(folder / name / f'{i}.png')


def main(photos='', work=''):
    work = Path(work or tempfile.mkdtemp())
    if not photos:
        photos = work / 'photos'
        draw_shapes(photos)
    data = OwnData.from_folder(photos, 'cls')
    print(*data.notes, sep='\n')
    # for a first look: from scratch, and short
    write_config(data, work / 'mine.py', pretrained='none', epochs=2)
    trained = train(work / 'mine.py', work / 'run')
    # commands that test it, predict photos and export it
    print(*trained.summary, sep='\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
