"""The same as Swin and VMamba train detectors."""

from mmengine.config import read_base

with read_base():
    from .coco_1x import *

optim_wrapper.optimizer.weight_decay = 0.05
param_scheduler[0].end = 1000
