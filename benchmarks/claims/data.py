"""Photos as arrays: read from a user's folder, resized once, and kept."""

import hashlib
import json
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps
from torch.nn.functional import affine_grid, grid_sample

from mmlinattn.utils.files import whole_file
from mmlinattn_tools.own_data import OwnData, progress

HELD_BACK = 10  # of the training photos, every tenth tunes the rates


class Photos:
    """Photos in folders that are named after their classes.

    Args:
        folder (Path): As :class:`OwnData` takes for the task 'cls'.
        work_dir (Path): Where arrays are kept.

    Raises:
        FileNotFoundError: If there is no such folder.
    """

    def __init__(self, folder, work_dir):
        if not folder.is_dir():
            raise FileNotFoundError(f'--data {folder}: there is no such folder')
        self.folder, self.work_dir = folder, work_dir

    @cached_property
    def key(self):
        """A name for the files' names and sizes."""
        files = sorted(path for path in self.folder.rglob('*') if path.is_file())
        names = (path.relative_to(self.folder).as_posix() for path in files)
        return key_of([[name, path.stat().st_size] for name, path in zip(names, files)])

    @cached_property
    def source(self):
        return OwnData(self.folder, 'cls')

    def labeled(self, split, side):
        """The middle square of each photo of a split, in an order that does not depend
        on classes.

        Args:
            split (str): 'train' or 'val', or the parts of 'train' that tune the rates,
                'tune' to learn from, and 'check'.
            side (int): Pixels.

        Returns:
            tuple[np.ndarray, Tensor]: (N, side, side, 3) uint8, on the disk, and
            classes (N,).
        """
        if split in ('tune', 'check'):
            pixels, labels = self.labeled('train', side)
            is_check = np.arange(len(labels)) % HELD_BACK == 0
            index = np.flatnonzero(is_check == (split == 'check'))
            return pixels[index], labels[index]
        path = self.work_dir / 'arrays' / f'{self.key}_{split}_{side}.npy'
        kept = path.with_suffix('.json')
        if not kept.is_file():
            photos = list(self.source.photos[split])
            np.random.default_rng(0).shuffle(photos)
            pixels = np.empty((len(photos), side, side, 3), np.uint8)
            for i, photo in enumerate(progress(photos, f'{split}, {side} pixels')):
                with Image.open(photo['path']) as image:
                    pixels[i] = ImageOps.fit(image.convert('RGB'), (side, side))
            labels = [self.source.classes.index(x['names'][0]) for x in photos]
            with whole_file(path) as draft, draft.open('wb') as file:
                np.save(file, pixels)
            with whole_file(kept) as draft:
                draft.write_text(json.dumps(labels), 'utf-8')
        labels = torch.tensor(json.loads(kept.read_text('utf-8')))
        return np.load(path, mmap_mode='r'), labels


def random_crops(pixels, side, area, generator):
    """Random resized crops, flipped half of the time.

    Args:
        pixels (np.ndarray): (B, S, S, 3) uint8.
        side (int): Pixels of what is returned.
        area (Sequence[float]): Least and largest share of the image that is in a crop;
            its sides differ by at most a third.
        generator (torch.Generator): Of all that is random.

    Returns:
        Tensor: (B, 3, side, side), 0 to 255.
    """
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
