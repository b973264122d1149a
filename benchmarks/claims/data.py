"""Photos as arrays: read from a user's folder, resized once, and kept."""

import hashlib
import json
from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
from mmengine import load
from PIL import Image, ImageOps
from torch import nn
from torch.nn.functional import affine_grid, grid_sample

from mmlinattn.utils.files import whole_file
from mmlinattn_tools.own_data import OwnData

HELD_BACK = 10  # of the training photos, every tenth tunes the rates


class Photos:
    """A folder as :class:`OwnData` takes it for the task ``kind`` of a subclass, arrays
    of it in ``work_dir``, and ids in label maps of what has no label. ``model`` makes a
    model of a backbone's config and a number of classes."""

    kind: str
    model: Callable[..., nn.Module]

    def __init__(self, folder, work_dir, ignore=()):
        if not folder.is_dir():
            raise FileNotFoundError(f'--data {folder}: there is no such folder')
        self.folder, self.work_dir = folder, work_dir
        self.ignore = ignore if self.kind == 'seg' else ()
        self.held = {}

    @cached_property
    def key(self):
        """A name for the files' names and sizes."""
        names = {
            path.relative_to(self.folder).as_posix(): path.stat().st_size
            for path in self.folder.rglob('*')
            if path.is_file()
        }
        return key_of([names, self.kind, list(self.ignore)])

    @cached_property
    def source(self):
        return OwnData(self.folder, self.kind, ignore=self.ignore)

    @property
    def classes(self):
        return self.kept('classes.json', lambda: list(self.source.classes))

    def build(self, run):
        return self.model(run.backbone, len(self.classes))

    def arrays(self, split, side):
        """Photos (N, H, W, 3), uint8, in an order that does not depend on classes; and
        (N,) classes, (N, H, W) label maps, or of each photo a list of boxes
        (x1, y1, x2, y2, class).

        Splits are 'train' and 'val', and the parts of 'train' that tune the rates:
        'tune' to learn from, and 'check'. ``side`` is (W, H) in pixels, or that of a
        square, the middle of the photo.
        """
        if split in ('tune', 'check'):
            found = self.arrays('train', side)
            is_check = np.arange(len(found[0])) % HELD_BACK == 0
            index = np.flatnonzero(is_check == (split == 'check'))
            return tuple(
                [x[i] for i in index] if isinstance(x, list) else x[index]
                for x in found
            )
        size = (side, side) if isinstance(side, int) else tuple(side)
        name = f'{split}_{size[0]}x{size[1]}'
        file = f'{name}_labels.npy' if self.kind == 'seg' else f'{name}.json'

        def each(function):
            photos = list(self.source.photos[split])
            np.random.default_rng(0).shuffle(photos)
            return [function(photo, size) for photo in photos]

        pixels = self.kept(f'{name}.npy', lambda: each(fitted))
        labels = self.kept(file, lambda: each(self.label))
        return pixels, np.array(labels) if self.kind == 'cls' else labels

    def label(self, photo, size):
        """That of a photo at a size (W, H)."""
        if self.kind == 'cls':
            return self.classes.index(photo['names'][0])
        if self.kind == 'seg':
            labels = Image.fromarray(self.source.table[self.source.read_ids(photo)])
            return np.array(labels.resize(size, Image.NEAREST))
        zoom = np.tile(np.divide(size, photo['size']), 2)
        found = []
        for x in photo['objects']:
            left, top, width, height = x['bbox']
            corners = np.multiply([left, top, left + width, top + height], zoom)
            found.append([*corners.tolist(), self.classes.index(x['name'])])
        return found

    def kept(self, name, make):
        """What a file holds that is made if it is not there: arrays, which stay on the
        disk, or JSON."""
        path = self.work_dir / 'arrays' / self.key / name
        is_array = path.suffix == '.npy'
        if not path.is_file():
            content = make() if is_array else json.dumps(make()).encode()
            with whole_file(path) as draft, draft.open('wb') as file:
                np.save(file, content) if is_array else file.write(content)
        if name not in self.held:
            self.held[name] = np.load(path, mmap_mode='r') if is_array else load(path)
        return self.held[name]


def fitted(photo, size):
    """A photo at (W, H), (H, W, 3) uint8: the middle where the form differs from that
    of its photo and there are no labels of places."""
    with Image.open(photo['path']) as image:
        image = image.convert('RGB')
        if 'objects' in photo or 'map' in photo:
            return np.array(image.resize(size))
        return np.array(ImageOps.fit(image, size))


def random_crops(pixels, side, area, generator):
    """Random resized crops (B, 3, side, side) of images (B, S, S, 3), half of them
    flipped, of shares of the image from ``area``; sides differ by at most a third."""
    images = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2).float()
    num = len(images)

    def uniform(low, high):
        return low + (high - low) * torch.rand(num, generator=generator)

    stretch = uniform(np.log(3 / 4), np.log(4 / 3)).exp().sqrt()
    share = uniform(*area).sqrt()
    theta = torch.zeros(num, 2, 3)
    for axis, extent in enumerate((share * stretch, share / stretch)):
        extent = extent.clamp(max=1)
        theta[:, axis, axis] = extent
        theta[:, axis, 2] = uniform(-1, 1) * (1 - extent)
    theta[:, 0, 0] *= uniform(-1, 1).sign()
    grid = affine_grid(theta, (num, 3, side, side), align_corners=False)
    return grid_sample(images, grid, padding_mode='border', align_corners=False)


def key_of(content):
    """A name for anything that JSON can hold."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
