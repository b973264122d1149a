"""What a training starts from: a whole model, weights of its backbone, or nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Optional

from mmlinattn.hub import find_folder
from mmlinattn.public_weights import DATA, PublicModel, read_models

from .bases import WITHOUT_MASKS, find_bases
from .devices import Devices
from .remembered import Remembered, remembered_model
from .tasks import TASKS

NONE = 'none'
NAMES = [name for name, _ in DATA.values()]
# data that a model of a task learned before
OWN_DATA = dict(det='coco', seg='ade20k', cls='imagenet')
# registered data sets, whose classes the models have
DATA_SETS = dict(
    coco='mmdet.CocoDataset',
    ade20k='mmseg.ADE20KDataset',
    cityscapes='mmseg.CityscapesDataset',
    imagenet='mmpretrain.ImageNet',
)
PARAMETERS, MANY_PARAMETERS = 5e7, 8e7  # at most, of a default on a GPU
MANY_PHOTOS, MUCH_MEMORY = 2000, 20  # with these and GB of a GPU, it is a larger one
CPU_FLOPS = 5e10  # at most, of a default without a GPU
NEAR = 0.5  # points, about the difference between two seeds


@dataclass(frozen=True)
class Wish:
    """What a person wants to start from; None for a default.

    Attributes:
        start (str): 'none', one of the data sets' names, a model's name, a path or an
            address.
        backbone (str): Its name in our configs.
        method (str): The detector or segmentor, its name in our configs.
        pretrained (str): Weights of the backbone, or 'none'.
    """

    start: Optional[str] = None
    backbone: Optional[str] = None
    method: Optional[str] = None
    pretrained: Optional[str] = None


@dataclass(frozen=True)
class Start:
    """What a training starts from, and the config of ours that it inherits.

    Attributes:
        method (str): The name of the method in our configs.
        backbone (str): The name of the backbone.
        weights (str): A path or an address; None for those of the config of ours, if
            it has any, and 'none' for a training from scratch.
        is_whole (bool): They are those of a whole model, and not of its backbone.
        model (PublicModel): Where the weights are from, if that is known.
        width (int): Channels of a narrow pyramid and heads in the weights.
        adapted (dict): Config of the backbone, if its attentions are others than those
            of its name.
    """

    method: str
    backbone: str
    weights: Optional[str] = None
    is_whole: bool = False
    model: Optional[PublicModel] = None
    width: Optional[int] = None
    adapted: Optional[dict[str, Any]] = None

    @property
    def config(self) -> Optional[str]:
        """The config of a whole model that learned other data than our configs of its
        task; None for any other."""
        is_other = self.model and self.model.data not in OWN_DATA.values()
        return self.model.config if self.model and self.is_whole and is_other else None

    @property
    def data_set(self) -> Optional[str]:
        """The registered data set whose classes a whole model knows."""
        return DATA_SETS[self.model.data] if self.model and self.is_whole else None


def choose_start(
    task: str, wish: Wish, has_masks: bool, num: int, devices: Devices
) -> Start:
    """Return what a training of ``num`` photos starts from.

    Raises:
        FileNotFoundError: If the wish is a path, and there is no such file.
        ValueError: If no weights are as wished.
    """
    starts = Starts(task, wish, has_masks, num, devices)
    if wish.pretrained:
        if wish.start:
            text = f'--start {wish.start} and --pretrained {wish.pretrained}'
            raise ValueError(f'{text} both name weights: give one of them')
        return starts.plain(wish.pretrained)
    if wish.start is None:
        return starts.default()
    if wish.start == NONE:
        return starts.plain(NONE)
    if wish.start in NAMES:
        return starts.of_data(wish.start)
    return starts.named(wish.start)


class Starts:
    """Possible starts of a task, see :func:`choose_start`."""

    def __init__(
        self, task: str, wish: Wish, has_masks: bool, num: int, devices: Devices
    ) -> None:
        self.task, self.wish, self.has_masks = task, wish, has_masks
        self.num, self.devices = num, devices
        self.models = read_models(find_folder())
        self.bases = find_bases(task)

    def default(self) -> Start:
        """Of the chosen backbone or method, a whole model under a license, or what the
        config of ours starts from; without a choice, the model that suits photos and
        devices."""
        whole = self.suitable(self.whole_models(OWN_DATA.get(self.task)))
        is_free = not self.wish.backbone and not self.devices.are_gpus
        if is_free:
            whole = [start for start in whole if flops_of(start) <= CPU_FLOPS]
        if whole:
            return self.best(whole)
        backbones = self.suitable(self.backbones('imagenet')) if is_free else []
        # there is no fast backbone for rotated boxes with weights
        if backbones and self.task != 'rot':
            return self.best(backbones)
        return self.plain()

    def suitable(self, starts: Iterable[Start]) -> list[Start]:
        """Start that fit the choices and have a license."""
        return [start for start in starts if self.fits(start) and is_licensed(start)]

    def plain(self, weights: Optional[str] = None) -> Start:
        """Return a config of ours with what it starts from itself, or other weights of
        the backbone."""
        default = TASKS[self.task]
        method = self.wish.method or self.methods()[0]
        return Start(method, self.wish.backbone or default.backbone, weights)

    def of_data(self, data: str) -> Start:
        """Return the model of some data that suits photos and devices: whole, or, if it
        is one of another task, its backbone."""
        is_own = self.task == dict(DATA.values())[data]
        starts = self.whole_models(data) if is_own else self.backbones(data)
        fitting = self.suitable(starts)
        if not fitting and self.wish.backbone:  # that was named, whatever its license
            fitting = [start for start in starts if self.fits(start)]
        if not fitting:
            chosen = filter(None, (self.wish.method, self.wish.backbone))
            text = ' with '.join(chosen) or f'--task {self.task}'
            raise ValueError(
                f'--start {data}: no public weights of {data} are for {text}: '
                f'mmlinattn weights --data {data} lists them'
            )
        return self.best(fitting)

    def named(self, name: str) -> Start:
        """Return a model by its name, or weights at a path or an address.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the name is misspelled, or the model is not for the task.
        """
        known = {model.name: model for model in self.models}
        if name in known:
            return self.of_model(known[name], known[name].address)
        if '://' not in name and not Path(name).expanduser().is_file():
            near = get_close_matches(name, [*known, *NAMES], 3)
            hint = f': did you mean {" or ".join(near)}?' if near else ''
            raise FileNotFoundError(
                f'--start {name}: there is no such file, and no model of this name has '
                f'public weights{hint or ", see mmlinattn weights"}'
            )
        return self.of_file(name)

    def of_file(self, place: str) -> Start:
        """Return weights at a path or an address: of the chosen model, or else of that
        which the file's name or an own checkpoint tells, or of the default."""
        whole = replace(self.plain(place), is_whole=True)
        own = None if '://' in place else remembered_model(Path(place).expanduser())
        if own and own.adapted:
            return self.of_student(place, own)
        if self.wish.backbone or self.wish.method:
            return whole
        # a file that was downloaded by hand has the name of its model's
        file = place.rpartition('/')[2]
        by_file = {model.file: model for model in self.models}
        if file in by_file:
            return self.of_model(by_file[file], place)
        if own and (own.method, own.backbone) in self.bases:
            return Start(own.method, own.backbone, place, True, width=own.width)
        return whole

    def of_student(self, place: str, own: Remembered) -> Start:
        """Return what adapt has written: the whole model for its own method, its
        backbone for another one.

        Raises:
            ValueError: If no config of the task and the other options has its
                backbone.
        """
        wished = [self.wish.method] if self.wish.method else self.methods()
        methods = sorted(wished, key=lambda method: method != own.method)
        backbone = self.wish.backbone or own.backbone
        for method in methods if backbone == own.backbone else ():
            if (method, backbone) in self.bases:
                is_whole = own.is_whole and method == own.method
                width = own.width if is_whole else None
                return Start(
                    *(method, backbone, place, is_whole),
                    width=width,
                    adapted=own.adapted,
                )
        raise ValueError(
            f'--start {place}: no config for --task {self.task} and the other options '
            f'has its backbone {own.backbone}: train the config that adapt wrote '
            f'beside it, {Path(place).with_suffix(".py")}'
        )

    def of_model(self, model: PublicModel, weights: str) -> Start:
        """Return a known model: whole for its task, its backbone for another one."""
        starts = [*self.whole_models(model.data), *self.backbones(model.data)]
        of_it = [x for x in starts if x.model == model and self.fits(x)]
        if model.task == self.task:
            of_it = [x for x in of_it if x.is_whole]
        if not of_it:
            raise ValueError(
                f'--start {model.name}: no config for --task {self.task} and the other '
                'options has its backbone'
            )
        return replace(of_it[0], weights=weights)

    def whole_models(self, data: Optional[str]) -> list[Start]:
        """Return public models of the task that learned some data; detectors without
        masks if there are no outlines."""
        return [
            Start(method, model.backbone, model.address, True, model)
            for model in self.models
            if (model.task, model.data) == (self.task, data)
            for method in [self.method_of(model)]
        ]

    def method_of(self, model: PublicModel) -> str:
        """Return the method of a model, without masks where there are no outlines."""
        simple = {masks: boxes for boxes, masks in WITHOUT_MASKS.items()}
        is_simple = self.task == 'det' and not self.has_masks
        if is_simple and self.wish.method != model.method:
            return simple.get(model.method, model.method)
        return model.method

    def backbones(self, data: str) -> list[Start]:
        """Return backbones of public models that learned some data, in configs of the
        task, with the first method that has it."""
        starts = []
        for model in self.models:
            if model.data != data:
                continue
            methods = [self.wish.method] if self.wish.method else self.methods()
            for method in methods:
                if method and (method, model.backbone) in self.bases:
                    start = Start(method, model.backbone, model.address, False, model)
                    starts.append(start)
                    break
        return starts

    def methods(self) -> Sequence[str]:
        """Return methods of the task, the default first."""
        if self.task == 'det':
            boxes = (TASKS['det'].method, *WITHOUT_MASKS)
            return tuple(WITHOUT_MASKS.values()) if self.has_masks else boxes
        return (TASKS[self.task].method, *sorted({method for method, _ in self.bases}))

    def fits(self, start: Start) -> bool:
        """Return whether a start has the chosen backbone and method; without a choice,
        a method that learns outlines if there are any."""
        methods = [self.wish.method] if self.wish.method else [start.method]
        if not self.wish.method and self.task == 'det' and self.has_masks:
            methods = list(WITHOUT_MASKS.values())
        return start.method in methods and self.wish.backbone in (None, start.backbone)

    def best(self, starts: Iterable[Start]) -> Start:
        """Without a GPU, the fastest one; with GPUs, the smallest of about the best
        ones of a size for photos and memory."""
        # those of images of another size than the config's come only by their name
        starts = [start for start in starts if not is_resized(start)]
        if not self.devices.are_gpus:
            return min(starts, key=lambda x: (flops_of(x), -score_of(x)))
        has_room = self.devices.memory >= MUCH_MEMORY and self.num >= MANY_PHOTOS
        most = MANY_PARAMETERS if has_room else PARAMETERS
        fitting = [x for x in starts if parameters_of(x) <= most]
        if not fitting:
            return min(starts, key=parameters_of)
        best = max(map(score_of, fitting))
        near = [x for x in fitting if score_of(x) >= best - NEAR]
        # of one model's files, the most accurate
        return min(near, key=lambda x: (parameters_of(x), -score_of(x)))


def is_licensed(start: Start) -> bool:
    """Return whether the weights have a license."""
    return start.model is not None and bool(start.model.license)


def is_resized(start: Start) -> bool:
    """Return whether a classifier learned images of another size than its plain
    config."""
    return start.model is not None and start.model.name.endswith('px')


def flops_of(start: Start) -> float:
    """FLOPs of the model that weights are from, infinite if they were not counted."""
    return (start.model and start.model.flops) or math.inf


def parameters_of(start: Start) -> int:
    """Return parameters of the model that weights are from."""
    return start.model.parameters if start.model else 0


def score_of(start: Start) -> float:
    """Return the published score of the model that weights are from."""
    return start.model.score if start.model else 0.0
