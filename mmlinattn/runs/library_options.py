"""What the libraries' own scripts set in a config before they run it."""

import copy
from collections.abc import Iterator
from typing import Any

from mmengine.config import Config, ConfigDict

from mmlinattn.utils.config import library_of

# merge predictions of a photo and of its mirror image, where a config says nothing
TTA_MODELS = {
    'mmdet': dict(
        type='DetTTAModel',
        tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100),
    ),
    'mmpretrain': dict(type='mmpretrain.AverageClsScoreTTA'),
}
FLIPS = dict(mmdet='mmdet.RandomFlip', mmpretrain='RandomFlip')
# of the flip, which boxes are turned back by
DET_KEYS = (
    *('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor'),
    *('flip', 'flip_direction'),
)


def set_loader_defaults(cfg: Config) -> None:
    """Set the options of data loaders that MMPretrain's scripts set for its configs:
    without them, workers begin anew in each epoch, and images are normalized one by
    one."""
    if library_of(cfg) != 'mmpretrain':
        return
    for name in ('train_dataloader', 'val_dataloader', 'test_dataloader'):
        loader = cfg.get(name)
        if isinstance(loader, dict):
            loader.setdefault('pin_memory', True)
            loader.setdefault('collate_fn', dict(type='default_collate'))
            # PyTorch refuses it without workers
            if loader.get('num_workers'):
                loader.setdefault('persistent_workers', True)


def use_test_time_augmentation(cfg: Config) -> None:
    """Wrap the model of a config by its ``tta_model``, on data of its ``tta_pipeline``;
    without them, by flips, as the libraries' scripts do.

    Raises:
        KeyError: If the library has no default, as mmseg, and the config lacks either.
    """
    scope = library_of(cfg)
    datasets = list(with_pipelines(cfg.test_dataloader.dataset))
    model, pipeline = cfg.get('tta_model'), cfg.get('tta_pipeline')
    if model is None and scope in TTA_MODELS:
        model = TTA_MODELS[scope]
    pipelines = [pipeline] * len(datasets)
    if pipeline is None and scope in TTA_MODELS:
        pipelines = [flipped(dataset['pipeline'], scope) for dataset in datasets]
    if model is None or None in pipelines or not datasets:
        raise KeyError(
            '--tta needs tta_model and tta_pipeline in the config, which '
            f'{scope} has no defaults for'
        )
    cfg.model = ConfigDict(**model, module=cfg.model)
    for dataset, new in zip(datasets, pipelines):
        dataset['pipeline'] = copy.deepcopy(new)


def with_pipelines(dataset: Any) -> Iterator[Any]:
    """Yield the configs of data sets that read photos, inside of wrappers."""
    if 'pipeline' in dataset:
        yield dataset
        return
    inner = [dataset['dataset']] if 'dataset' in dataset else dataset.get('datasets')
    for each in inner or ():
        yield from with_pipelines(each)


def flipped(pipeline: Any, scope: str) -> list:
    """Return a test pipeline that ends with both of a photo and its mirror image."""
    steps = copy.deepcopy(list(pipeline))
    pack = steps.pop()
    if scope == 'mmdet':
        pack = dict(type='mmdet.PackDetInputs', meta_keys=DET_KEYS)
    flips = [dict(type=FLIPS[scope], prob=prob) for prob in (1.0, 0.0)]
    return [*steps, dict(type='TestTimeAug', transforms=[flips, [pack]])]
