"""Parts of runs that users write themselves, for test_right_configs.py."""

import glob

from mmdet.datasets import CocoDataset
from mmengine.hooks import Hook
from mmengine.model import BaseModule
from mmengine.registry import DATA_SAMPLERS, DATASETS, HOOKS, MODELS, TRANSFORMS
from mmpretrain.datasets import ImageNet
from torch import nn
from torch.utils.data import IterableDataset


@DATASETS.register_module()
class ManyFiles(CocoDataset):
    """Takes a pattern of annotation files."""

    def _join_prefix(self):
        paths, self.ann_file = self.ann_file, ''
        super()._join_prefix()
        self.ann_file = paths

    def load_data_list(self):
        found = []
        for path in glob.glob(self.ann_file):
            self.ann_file = path
            found += super().load_data_list()
        return found


@DATA_SAMPLERS.register_module()
class Pairs:
    """Batches of two."""

    def __init__(self, sampler, batch_size):
        self.sampler = sampler

    def __iter__(self):
        yield [0, 1]

    def __len__(self):
        return 1


@DATASETS.register_module()
class Staged(ImageNet):
    """Has no samples before a hook sets the epoch."""

    epoch = None

    def __getitem__(self, index):
        assert self.epoch is not None, 'the epoch is not set'
        return super().__getitem__(index)


@HOOKS.register_module()
class SetEpoch(Hook):
    def before_train_epoch(self, runner):
        runner.train_dataloader.dataset.epoch = runner.epoch


@DATASETS.register_module()
class Stream(IterableDataset):
    def __init__(self, **kwargs):
        self.images = ImageNet(**kwargs)
        self.metainfo = self.images.metainfo

    def __len__(self):
        return len(self.images)

    def __iter__(self):
        yield from (self.images[i] for i in range(len(self.images)))


@TRANSFORMS.register_module()
class TwoKinds:
    """Maps labels to True if they are even."""

    def __call__(self, results):
        results['gt_seg_map'] = results['gt_seg_map'] % 2
        return results


@TRANSFORMS.register_module()
class OneKind:
    """Assigns all objects to one class."""

    def __call__(self, results):
        results['gt_bboxes_labels'][:] = 0
        return results


@MODELS.register_module()
class Mean(BaseModule):
    """The color of an image."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Conv2d(3, 32, 1)

    def forward(self, x):
        return (self.scale(x.mean((2, 3), keepdim=True)),)
