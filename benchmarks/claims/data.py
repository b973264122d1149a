"""Images of the experiments: shapes, or a user's folder of images by class."""

import hashlib
import json
from functools import cache

import numpy as np
import torch
from common import make_shapes
from PIL import Image, ImageOps
from torchvision.datasets import ImageFolder
from torchvision.transforms.functional import resize

SIDE = 160  # pixels of the images as they are kept
# Contrast inside regions and distractors, so that small models differ.
SHAPES = dict(scale=[0.3, 0.6], texture=1.0, clutter=1.0)
SPLITS = ('train', 'val')


class Data:
    """Where the images are.

    Args:
        work_dir (Path): Where shapes are written to.
        folder (Path, optional): A user's folder with train/CLASS/ and val/CLASS/.
        counts (Sequence[int]): Images for training and held-back ones; of a user's
            folder, the most that are read.
        shapes (dict, optional): What differs from :data:`SHAPES`.

    Raises:
        FileNotFoundError: If the folder has no classes with images.
        ValueError: If its classes are not the same in both.
    """

    def __init__(self, work_dir, folder, counts, shapes=None):
        self.work_dir, self.folder = work_dir, folder
        self.counts = dict(zip(SPLITS, counts))
        self.shapes = dict(SHAPES, **shapes or {})
        if folder is not None:
            try:
                self.splits = {split: ImageFolder(folder / split) for split in SPLITS}
            except FileNotFoundError as error:
                raise FileNotFoundError(
                    f'--data must have images in train/CLASS/ and val/CLASS/: {error}'
                ) from error
            train, val = (split.classes for split in self.splits.values())
            if train != val:
                raise ValueError(
                    '--data must have the same classes in train/ and val/, got '
                    f'{train} and {val}'
                )

    def describe(self):
        """What goes into the record of an experiment, a dict."""
        if self.folder is not None:
            files = [file for split in SPLITS for file, _ in self.samples(split)]
            return dict(folder=self.folder.name, files=key_of(files), **self.counts)
        return dict(layout='imagenet', side=SIDE, **self.shapes, **self.counts)

    @cache  # noqa: B019 (one instance a process)
    def shapes_folder(self):
        """Writes the shapes, if they are not there."""
        root = self.work_dir / 'data' / key_of(self.describe())
        options = ['--overwrite', '--scale', *self.shapes['scale']]
        for name in ('texture', 'clutter'):
            options += [f'--{name}', self.shapes[name]]
        make_shapes('imagenet', root, SIDE, *self.counts.values(), *options)
        return root

    def samples(self, split):
        """Files and labels of a split, evenly spread over those of a user's folder."""
        if self.folder is not None:
            found = self.splits[split].samples
            num = min(self.counts[split], len(found))
            return [found[i] for i in np.linspace(0, len(found) - 1, num).astype(int)]
        root = self.shapes_folder()
        lines = (root / 'meta' / f'{split}.txt').read_text().splitlines()
        rows = [line.split() for line in lines]
        classes = sorted({int(label) for _, label in rows})
        return [(root / split / x, classes.index(int(label))) for x, label in rows]

    @cache  # noqa: B019
    def labeled(self, split):
        """(N, 3, SIDE, SIDE) uint8, the middle of each image, and classes (N,)."""
        files, labels = zip(*self.samples(split))
        images = []
        for file in files:
            with Image.open(file) as image:
                fitted = ImageOps.fit(image.convert('RGB'), (SIDE, SIDE))
            images.append(torch.from_numpy(np.array(fitted)).permute(2, 0, 1))
        return torch.stack(images), torch.tensor(labels)

    @cache  # noqa: B019
    def resized(self, split, side):
        """The same as (N, 3, side, side), with antialiasing."""
        images, labels = self.labeled(split)
        parts = [resize(x, [side, side], antialias=True) for x in images.split(64)]
        return torch.cat(parts), labels

    def num_classes(self):
        return int(self.labeled('train')[1].max()) + 1


def key_of(content):
    """A name for anything that JSON can hold."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
