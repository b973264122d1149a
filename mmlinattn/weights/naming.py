"""Official weights get our names while a whole model is loaded: hooks of our backbones.

They change nothing of other models: only one of our backbones has them.
"""

from typing import Any

from mmlinattn.utils.names import inside

from .conversion import COMMAND, HEADS, PREFIX, convert, find_state_dict, recognize
from .families import FAMILIES
from .rows import StateDict


def name_classifier(state_dict: dict, prefix: str, *args: Any) -> None:
    """Give an official classifier the names of mmpretrain's classifier with one of our
    backbones: a hook of the classifier, before its state dict is loaded.

    ``state_dict`` is a whole checkpoint, if MMEngine finds no `state_dict` in it.

    Raises:
        ValueError: If it is not whole.
    """
    entries = inside(state_dict, prefix)
    try:
        official, _ = find_state_dict(entries)
    except ValueError:
        return
    family, heads = recognize(official), [f'{head}.weight' for head in HEADS]
    if family not in FAMILIES or official.keys().isdisjoint(heads):
        return
    converted = convert(official, family)
    for key in entries:
        del state_dict[prefix + key]
    state_dict.update((prefix + key, value) for key, value in converted.items())


def name_segmentor(state_dict: dict, prefix: str, *args: Any) -> None:
    """Give an official segmentor whose head has other names than MMSegmentation's ours:
    a hook of the whole model, before its state dict is loaded.

    Raises:
        ValueError: If it is not whole.
    """
    official = inside(state_dict, prefix)
    family = recognize(official)
    if family not in FAMILIES or not FAMILIES[family].parts(official):
        return
    converted = convert(official, family)
    for key in official:
        del state_dict[prefix + key]
    state_dict.update((prefix + key, value) for key, value in converted.items())


def name_backbone(
    state_dict: StateDict,
    prefix: str,
    metadata: dict,
    strict: bool,
    missing: list,
    unexpected: list,
    errors: list,
) -> None:
    """Give an official backbone in a detector or a segmentor our names: a hook of the
    backbone, before its state dict is loaded.

    Raises:
        ValueError: If official names have no prefix, as in a raw official file, or the
            official backbone is incomplete.
    """
    official = inside(state_dict, prefix)
    family = recognize(official or unexpected)
    if family not in FAMILIES:
        return
    if not official:
        title, code = FAMILIES[family].title, FAMILIES[family].code
        raise ValueError(
            f'this checkpoint holds {title} weights with keys of {code}; load_from, '
            'tests and inference need a whole OpenMMLab model. Use '
            f'pretrained=CHECKPOINT, or convert it: {COMMAND} {family} SRC DST'
        )
    for key in official:
        del state_dict[prefix + key]
    converted = convert(official, family)
    state_dict.update(
        (prefix + key, value) for key, value in inside(converted, PREFIX).items()
    )
