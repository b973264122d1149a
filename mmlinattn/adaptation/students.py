"""The config of a student: that of its teacher, with other attentions."""

import inspect
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Optional, Union

import mmlinattn.models  # noqa: F401  registers the classes
from mmlinattn.models.attentions.base import BaseAttention
from mmlinattn.models.attentions.talking_heads import ClassAttention
from mmlinattn.models.backbones.base import BaseBackbone
from mmlinattn.models.backbones.options import square_image_side
from mmlinattn.models.backbones.presets import Preset, PresetTransformer, Stage
from mmlinattn.models.backbones.pyramid import per_stage
from mmlinattn.parts import CLASSES, SCOPE, find, type_name

from .pairs import SKELETONS, takers

# options of a preset, of which other attentions have none
OF_PRESETS = ('block_sizes', 'split_ratio', 'lepe', 'dense_agents')
# what a training of the student sets, and no student needs
OF_TRAINING = ('init_cfg',)


def student_config(
    teacher: Mapping[str, Any],
    attention: Union[str, Sequence[str]],
    options: Optional[Mapping[str, Any]] = None,
) -> dict[str, Any]:
    """Return the config of a teacher's backbone with other attentions.

    Args:
        teacher: Config of one of our backbones.
        attention: The name of an attention, or, in a pyramid, a list with one for each
            stage. Or the name of a paper's model with this backbone, such as 'elfatt'
            of Swin, whose attentions it takes, but not its embeddings. Or that of a
            backbone that differs in its attentions, LinearSOFTPlusPlus of SOFT++.
        options: Of the attentions.

    Returns:
        dict: The student's config, without initial weights.

    Raises:
        ValueError: If there is no such attention, or the backbone takes no other one.
    """
    kind = backbone_class(teacher)
    cfg = {key: value for key, value in teacher.items() if key not in OF_TRAINING}
    names = [attention] if isinstance(attention, str) else list(attention)
    whole = CLASSES.get(names[0])
    if len(names) == 1 and whole is not None and issubclass(whole, BaseBackbone):
        if options:
            raise ValueError(f'{names[0]} is a backbone: its attention has no options')
        return {**cfg, 'type': f'{SCOPE}.{names[0]}'}
    if not issubclass(kind, SKELETONS):
        raise ValueError(
            f'{kind.__name__} takes no other attention: {", ".join(takers())} do'
        )
    entries = [entry_of(kind, name, options) for name in names]
    chosen = entries[0] if len(entries) == 1 else entries
    if issubclass(kind, PresetTransformer):
        cfg = keep_embeddings(kind, cfg, chosen)
        if not isinstance(chosen, str):
            chosen = of_size(kind, chosen, cfg)
            cfg.pop('img_size', None)  # an option of the models by name alone
    return {**cfg, 'attention': chosen}


def backbone_class(cfg: Mapping[str, Any]) -> type[BaseBackbone]:
    """Return the class of a config of one of our backbones; a ValueError for any
    other."""
    kind = find(str(cfg.get('type', '')))
    if not (isinstance(kind, type) and issubclass(kind, BaseBackbone)):
        raise ValueError(
            f'{type_name(cfg) or dict(cfg)} is no backbone of {SCOPE}: '
            f'{", ".join(takers())} are'
        )
    return kind


def entry_of(
    kind: type, name: str, options: Optional[Mapping[str, Any]]
) -> Union[str, dict[str, Any]]:
    """Return a backbone's option ``attention`` for a name."""
    presets = getattr(kind, 'presets', {})
    if name in presets:
        if options:
            raise ValueError(
                f'{name!r} is a model of {kind.__name__}, whose attentions have their '
                "options: give the name of an attention's class"
            )
        return name
    attention = find(name)
    known = [
        key
        for key, part in CLASSES.items()
        # that of a class token alone replaces none
        if issubclass(part, BaseAttention)
        and part not in (BaseAttention, ClassAttention)
    ]
    is_ours = str(getattr(attention, '__module__', '')).startswith(f'{SCOPE}.')
    if attention is None or (is_ours and name not in known):
        names = sorted({*presets, *known})
        by_case = {key.lower(): key for key in reversed(names)}
        near = get_close_matches(name.lower(), by_case, 3, 0.5)
        hint = ' or '.join(by_case[key] for key in near)
        remedy = f'did you mean {hint}?' if hint else f'there are {", ".join(names)}'
        raise ValueError(f'there is no attention {name!r}: {remedy}')
    check_options(attention, options or {})
    return dict(type=name, **(options or {}))


def check_options(kind: type, options: Mapping[str, Any]) -> None:
    """Raise a ValueError for options that an attention does not have."""
    known = inspect.signature(kind).parameters.keys() - {'embed_dims', 'num_heads'}
    for option in options:
        if option not in known:
            raise ValueError(
                f'{kind.__name__} has no option {option!r}: it has '
                f'{", ".join(sorted(known))}'
            )


def keep_embeddings(
    kind: type[PresetTransformer], teacher: Mapping[str, Any], chosen: Any
) -> dict[str, Any]:
    """Return a teacher's config without the options of its attentions, and with its
    embeddings written out where those of the ``chosen`` attention are others."""

    def preset_of(attention: Any) -> Preset:
        return kind.presets[attention if isinstance(attention, str) else 'local']

    cfg = {key: value for key, value in teacher.items() if key not in OF_PRESETS}
    theirs, ours = preset_of(teacher.get('attention')), preset_of(chosen)
    for key in ('patch_embed', 'merging'):
        if not cfg.get(key) and getattr(theirs, key) != getattr(ours, key):
            cfg[key] = getattr(theirs, key)
    return cfg


def of_size(
    kind: type[PresetTransformer], chosen: Any, teacher: Mapping[str, Any]
) -> Any:
    """Return one attention, or a list with one for each stage, whose names of models
    are replaced by what these have at the teacher's size of images."""
    if not isinstance(chosen, list):
        return chosen
    arch = teacher.get('arch', 'tiny')
    number = len(kind.resolve_arch(arch)['depths'])
    side = square_image_side(teacher.get('img_size', 224))
    name = arch if isinstance(arch, str) else None
    pads = teacher.get('pad_small_map', True)
    stages = [Stage(i, number, name, side, pads) for i in range(number)]
    return [
        kind.presets[entry].attention(stage) if isinstance(entry, str) else entry
        for entry, stage in zip(per_stage(chosen, number, 'attention'), stages)
    ]
