"""Parts of runs that users write themselves, for test_right_configs.py."""

import glob

from mmdet.datasets import CocoDataset
from mmengine.hooks import Hook
from mmengine.model import BaseModule
from mmengine.optim import OptimWrapper, OptimWrapperDict
from mmengine.registry import (
    DATA_SAMPLERS,
    DATASETS,
    HOOKS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    RUNNERS,
    TRANSFORMS,
)
from mmengine.runner import Runner
from mmpretrain.datasets import ImageNet
from mmpretrain.models import ImageClassifier
from torch import nn
from torch.optim import SGD
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
class TwoOptimizers(ImageClassifier):
    def train_step(self, data, optim_wrapper):
        data = self.data_preprocessor(data, True)
        losses, log = self.parse_losses(self(**data, mode='loss'))
        losses.backward()
        for wrapper in optim_wrapper.values():
            wrapper.step()
            wrapper.zero_grad()
        return log


@MODELS.register_module()
class Mean(BaseModule):
    """The color of an image."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Conv2d(3, 32, 1)

    def forward(self, x):
        return (self.scale(x.mean((2, 3), keepdim=True)),)


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class PartByPart:
    def __init__(self, optim_wrapper_cfg, paramwise_cfg=None):
        self.cfg = optim_wrapper_cfg

    def __call__(self, model):
        return OptimWrapperDict(
            **{
                name: OptimWrapper(SGD(getattr(model, name).parameters(), lr=lr))
                for name, lr in self.cfg['rates'].items()
            }
        )


@RUNNERS.register_module()
class OwnRunner(Runner):
    """Has a loop of its own in place of train_cfg."""

    @classmethod
    def from_cfg(cls, cfg):
        cfg.train_cfg = dict(by_epoch=True, max_epochs=cfg.rounds)
        return super().from_cfg(cfg)
