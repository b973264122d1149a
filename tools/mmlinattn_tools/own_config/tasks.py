"""What all configs of a task have in common."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What all configs of a task have in common.

    Attributes:
        ending (str): Of the names of our configs.
        num_classes (int): In these.
        method (str): The default one.
        fast_backbone (str): The one for training without a GPU.
        longest (int): The long side of a photo, in pixels.
        shortest (int): The short side.
        is_square (bool): Photos are cut to squares.
        megapixels_on_cpu (float): In a batch.
        megapixels_per_gb (float): In a batch, for each GB of a GPU.
        largest_batch (int): Photos on a device.
    """

    ending: str
    num_classes: int
    method: str
    fast_backbone: str
    longest: int
    shortest: int
    is_square: bool
    megapixels_on_cpu: float
    megapixels_per_gb: float
    largest_batch: int


TASKS = dict(
    det=Task(
        ending='_coco',
        num_classes=80,
        method='retinanet',
        fast_backbone='softpp-micro-linear',
        longest=1333,
        shortest=800,
        is_square=False,
        megapixels_on_cpu=0.7,
        megapixels_per_gb=0.2,
        largest_batch=16,
    ),
    rot=Task(
        ending='_dota',
        num_classes=15,
        method='rotated-retinanet',
        fast_backbone='softpp-t-linear',
        longest=1333,
        shortest=1024,
        is_square=False,
        megapixels_on_cpu=0.7,
        megapixels_per_gb=0.2,
        largest_batch=16,
    ),
    seg=Task(
        ending='_ade20k-512x512',
        num_classes=150,
        method='upernet',
        fast_backbone='softpp-micro-linear',
        longest=2048,
        shortest=512,
        is_square=False,
        megapixels_on_cpu=0.7,
        megapixels_per_gb=0.2,
        largest_batch=16,
    ),
    cls=Task(
        ending='_in1k',
        num_classes=1000,
        method='classifier',
        fast_backbone='softpp-micro-linear',
        longest=10**5,
        shortest=224,
        is_square=True,
        megapixels_on_cpu=1.6,
        megapixels_per_gb=0.5,
        largest_batch=128,
    ),
)
