"""The lines of a config on what a training starts from, and its learning rate."""

from dataclasses import dataclass
from typing import Optional

from mmlinattn.hub import find_folder
from mmlinattn.own_data import OBJECT_TASKS, Note
from mmlinattn.public_weights import PublicModel, read_models
from mmlinattn.utils import load_config

from .bases import WITHOUT_MASKS, Base, find_bases
from .devices import Devices
from .starts import NONE, Start
from .tasks import TASKS

# a convolutional detector learned more at this multiple of the rate of transformers:
# docs/claims/trained_weights.md
CONVOLUTIONAL = 'EfficientViT', 10
FACTORS = """# the layer of the classes keeps the base config's rate
anew = {'head.': dict(lr_mult=10.0)}
paramwise = dict(_base_.optim_wrapper.get('paramwise_cfg') or {})
paramwise.update(custom_keys={**paramwise.get('custom_keys', {}), **anew})
optim_wrapper.update(paramwise_cfg=paramwise)
"""


@dataclass(frozen=True)
class Beginning:
    """What a training starts from, as lines of its config.

    Attributes:
        task (str): Its task.
        start (Start): What was chosen.
        base (Base): The config that it inherits.
    """

    task: str
    start: Start
    base: Base

    @property
    def pretrained(self) -> Optional[str]:
        """Weights of the backbone: the chosen ones, those of the base config, or those
        of another task's with the same backbone; None for none."""
        if self.start.is_whole:
            return None
        pretrained = self.start.weights or self.base.cfg.get('pretrained')
        if not pretrained and self.task == 'cls':
            pretrained = pretrained_of_others(self.base.backbone)
        return None if pretrained == NONE else pretrained

    @property
    def has_weights(self) -> bool:
        """Whether the backbone starts from weights."""
        return self.start.is_whole or bool(self.pretrained)

    @property
    def model(self) -> Optional[PublicModel]:
        """The public model that the weights are from, if it is known."""
        if self.start.model:
            return self.start.model
        models = read_models(find_folder())
        of_it = [x for x in models if x.address == self.pretrained]
        return of_it[0] if of_it else None

    def source(self) -> str:
        """Return lines that name the weights."""
        said = f': {self.model.describe()}' if self.model else ''
        if self.start.is_whole:
            return (
                f'# the whole model to start from{said}\n'
                f'load_from = {self.start.weights!r}\n'
                'pretrained = None  # weights of the backbone alone'
            )
        said = said or '; None: it trains from scratch'
        return f'# weights of the backbone{said}\npretrained = {self.pretrained!r}'

    def rate(self) -> str:
        """Return source of the learning rate."""
        first = f'{self.base.cfg.optim_wrapper.optimizer.lr:g}'
        base_batch = self.base.cfg.auto_scale_lr.base_batch_size
        rate = f'{first} * (batch / {base_batch}) ** 0.5'
        if self.is_cautious:
            return f'{rate} / 10  # by convention, to fine-tune a classifier'
        kind, factor = CONVOLUTIONAL
        backbone = self.base.cfg.model.backbone.type
        if self.task in OBJECT_TASKS and backbone.rpartition('.')[2] == kind:
            rate = f'{rate} * {factor}'
        return rate if self.has_weights else f'{rate} * 4  # to train from scratch'

    @property
    def is_cautious(self) -> bool:
        """Whether a whole model learns at a lower rate than its base config's."""
        return self.start.is_whole and self.task == 'cls'

    def warmup(self) -> str:
        """Return source of the iterations of the warm-up: from scratch, a short one
        lets the loss jump behind it."""
        usual = 'min(500, iterations // 10 + 1)'
        if self.has_weights:
            return usual
        return f'max({usual}, min(100, iterations // 4))  # to train from scratch'

    def factors(self) -> str:
        """Return lines that give the layer of the classes the base config's rate, where
        the rest of the model has a lower one."""
        return FACTORS if self.is_cautious else ''

    def describe(self) -> str:
        """Return what a training starts from, in words."""
        model = self.model
        name = model.describe() if model else self.start.weights or self.pretrained
        if self.start.is_whole:
            less = ''
            if model and WITHOUT_MASKS.get(self.base.method) == model.method:
                less = ', without its mask head'
            return f'the training starts from the whole model {name}{less}'
        if not self.has_weights:
            return 'the backbone trains from scratch, which needs many photos'
        return f'the backbone starts from {name}'


def pretrained_of_others(backbone: str) -> Optional[str]:
    """Return weights of the backbone in the config of a detector, or else of a
    segmentor."""
    for task in ('det', 'seg'):
        for (_, name), path in find_bases(task).items():
            if name == backbone:
                return load_config(str(path)).get('pretrained')
    return None


def starting_notes(
    task: str, beginning: Beginning, epochs: Optional[int], devices: Devices
) -> list[Note]:
    """Return notes on what a training starts from, and on what makes it long."""
    notes = [Note(beginning.describe())]
    if not devices.are_gpus:
        remedy = how_to_shorten(task, beginning, epochs)
        notes.append(Note(f'no GPU: the training runs on the CPU{remedy}'))
    return notes


def how_to_shorten(task: str, beginning: Beginning, epochs: Optional[int]) -> str:
    """Return options that shorten a training and were not chosen, in words, or ''."""
    options = [] if epochs else ['--epochs']
    fast = TASKS[task].fast_backbone
    if beginning.base.backbone != fast:
        options.append(f'--backbone {fast}')
    if not options:
        return ''
    verb = 'shortens' if len(options) == 1 else 'shorten'
    return f'; {" and ".join(options)} {verb} it'
