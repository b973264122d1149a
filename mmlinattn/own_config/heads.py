"""What in the model of a config depends on the classes and on the width of its heads,
as source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NARROW = 128  # channels of pyramid and heads, without a GPU
CHANNELS = ('out_channels', 'in_channels', 'feat_channels', 'conv_out_channels')
DETECTOR = dict.fromkeys(CHANNELS, 256)
# keys of channels and their numbers in base configs, by method
DETECTORS = (
    *('retinanet', 'mask-rcnn'),
    *('rotated-retinanet', 'rotated-fcos', 'oriented-rcnn'),
)
WIDE = {**dict.fromkeys(DETECTORS, DETECTOR), 'upernet': dict(channels=512)}


@dataclass(frozen=True)
class HeadSource:
    """Writes the entries of a model's config that new values replace.

    Attributes:
        base_classes (int): Classes of the base config, which ``num_classes`` replaces.
        wide (dict[str, int]): Channels of it, which ``width`` replaces, by key.
    """

    base_classes: int
    wide: Mapping[str, int] = field(default_factory=dict)

    def of_dict(self, node: Mapping[str, Any], place: str = '_base_.model') -> str:
        """Return source of a dict with the entries that change; '' for none."""
        entries = {
            key: self.of_entry(key, value, f'{place}.{key}')
            for key, value in node.items()
        }
        text = ', '.join(f'{key}={source}' for key, source in entries.items() if source)
        return f'dict({text})' if text else ''

    def of_entry(self, key: str, value: Any, place: str) -> str:
        """Return source of a value that changes, or ''."""
        if key in ('num_classes', 'num_things_classes') and value == self.base_classes:
            return 'num_classes'
        if key in self.wide and value == self.wide[key]:
            return 'width'
        if isinstance(value, dict):
            return self.of_dict(value, place)
        if isinstance(value, list):
            return self.of_list(key, value, place)
        return ''

    def of_list(self, key: str, values: list[Any], place: str) -> str:
        """Return source of a list that changes, or ''."""
        if key == 'class_weight' and len(values) == self.base_classes + 1:
            return f'[*[1.0] * num_classes, {values[-1]}]'  # the last is no object
        if "'num_classes'" in str(values):  # heads of a cascade
            return f'[dict(x, num_classes=num_classes) for x in {place}]'
        return ''
