"""What all configs of a task have in common."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What all configs of a task have in common.

    Attributes:
        ending (str): Of the names of our configs.
        num_classes (int): In these.
        method (str): The default one.
        longest (int): The long side of a photo, in pixels.
        shortest (int): The short side.
        backbone (str): The default one, if no model with public weights suits.
        fast_backbone (str): The one for training without a GPU and without weights.
        is_square (bool): Photos are cut to squares.
        megapixels_on_cpu (float): In a batch.
        megapixels_per_gb (float): In a batch, for each GB of a GPU.
        largest_batch (int): Photos on a device.
    """

    ending: str
    num_classes: int
    method: str
    longest: int
    shortest: int
    backbone: str = 'swin-t-elfatt'
    fast_backbone: str = 'softpp-micro-linear'
    is_square: bool = False
    megapixels_on_cpu: float = 0.7
    megapixels_per_gb: float = 0.2
    largest_batch: int = 16


TASKS = dict(
    det=Task(
        ending='_coco', num_classes=80, method='retinanet', longest=1333, shortest=800
    ),
    rot=Task(
        ending='_dota',
        num_classes=15,
        method='rotated-retinanet',
        longest=1333,
        shortest=1024,
        fast_backbone='softpp-t-linear',
    ),
    seg=Task(
        ending='_ade20k-512x512',
        num_classes=150,
        method='upernet',
        longest=2048,
        shortest=512,
    ),
    cls=Task(
        ending='_in1k',
        num_classes=1000,
        method='classifier',
        longest=10**5,
        shortest=224,
        is_square=True,
        megapixels_on_cpu=1.6,
        megapixels_per_gb=0.5,
        largest_batch=128,
    ),
)
