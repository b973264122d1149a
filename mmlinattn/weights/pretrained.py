"""Loads weights into one of our backbones, and accounts for every key."""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Callable, NamedTuple, Optional

from mmengine.logging import MMLogger, print_log
from torch import nn

from .addresses import read_checkpoint
from .conversion import (
    AVERAGES,
    PREFIX,
    STATE_DICTS,
    apply,
    convert,
    find_state_dict,
    known_models,
    plan_conversion,
    recognize,
    shortlist,
)
from .families import FAMILIES
from .options import compare_options
from .rows import StateDict, inside
from .start import (
    TABLES,
    is_early_norm,
    is_scaling_vector,
    plan_start,
    replaced_attentions,
)

COMMAND = 'mim run mmlinattn convert_official'


class Found(NamedTuple):
    """The backbone in a checkpoint.

    Attributes:
        weights: By our names.
        family: The family it was converted from, or None.
        origin: Names in the checkpoint, by ours.
        rest: Names in the checkpoint that are no part of the backbone.
    """

    weights: StateDict
    family: Optional[str]
    origin: dict[str, str]
    rest: list[str]


def find_backbone(checkpoint: dict, prefix: Optional[str] = None) -> Found:
    """Find a backbone's weights in any checkpoint, and give them our names.

    Args:
        checkpoint: What a file holds.
        prefix: Prefix of the backbone's keys. Default: 'backbone.' if there are such
            keys, none otherwise. Official weights need none.

    Raises:
        ValueError: If there is no state dict, or one of a family that is not whole.
    """
    state_dict, _ = find_state_dict(checkpoint)
    family = recognize(state_dict)
    outside = []
    if prefix:
        prefix = f'{prefix.rstrip(".")}.'
        under = inside(state_dict, prefix)
        if under or family not in FAMILIES:
            outside = [key for key in state_dict if not key.startswith(prefix)]
            state_dict = {f'{PREFIX}{key}': value for key, value in under.items()}
            family = recognize(state_dict)
    names = {key: key for key in state_dict}
    if family in FAMILIES:
        plan = plan_conversion(state_dict, family)
        names = {ours: ' + '.join(keys) for ours, keys in plan.sources().items()}
        state_dict = apply(plan, state_dict)
    else:
        family = converted_from(checkpoint.get('meta'))
    prefix = PREFIX if inside(state_dict, PREFIX) else ''
    return Found(
        inside(state_dict, prefix),
        family,
        {
            key[len(prefix) :]: name
            for key, name in names.items()
            if key.startswith(prefix)
        },
        [name for key, name in names.items() if not key.startswith(prefix)] + outside,
    )


def converted_from(meta) -> Optional[str]:
    """The family of a checkpoint that was converted to the family's own model."""
    if not isinstance(meta, dict) or meta.get('attention', 'local') != 'local':
        return None
    return next((name for name in FAMILIES if name == meta.get('family')), None)


def load_pretrained(
    model: nn.Module,
    checkpoint: str,
    prefix: Optional[str] = None,
    map_location: str = 'cpu',
    initialize: Optional[Callable[[], None]] = None,
) -> None:
    """Load pretrained weights into a backbone, and log it.

    Official weights are recognized and converted. Weights of a plain
    model start a model with other attentions: what fits is taken, the rest keeps its
    initial values, and a warning names both.

    Args:
        model: One of our backbones.
        checkpoint: A path, `file://PATH`, `http(s)://...` or `timm://MODEL`.
        prefix: See :func:`find_backbone`.
        map_location: Device to load to.
        initialize: Gives the model its initial values; called only where some stay.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file cannot be read, or holds an official model that is not
            whole.
        KeyError: If parameters are missing, as in another family's checkpoint, or
            have other shapes.
        ConnectionError: If it cannot be downloaded.
        ImportError: If timm or safetensors is needed and missing.
    """
    loaded = read_checkpoint(checkpoint, map_location=map_location)
    try:
        found = find_backbone(loaded, prefix)
    except ValueError as error:
        raise ValueError(f'checkpoint={checkpoint!r}: {error}') from error
    shapes = {key: value.shape for key, value in model.state_dict().items()}
    replaced = []
    if found.family:
        attentions = FAMILIES[found.family].attentions
        replaced = replaced_attentions(model, found.weights, attentions)
    fits = all(
        key in found.weights
        and (key.endswith(TABLES) or found.weights[key].shape == shape)
        for key, shape in shapes.items()
        if not is_optional(key, model)
    )
    if fits or not replaced:
        load_whole(model, found, shapes, checkpoint, prefix)
    else:
        start_model(model, found, shapes, checkpoint, initialize)
    if replaced:
        kinds = sorted({type(model.get_submodule(name)).__name__ for name in replaced})
        say(
            f'{type(model).__name__}: weights of {FAMILIES[found.family].title} were '
            f'not trained with {" and ".join(kinds)}, which {len(replaced)} blocks '
            f'have here, such as {replaced[0]}'
        )
    else:
        for line in compare_options(model, loaded.get('meta')):
            say(
                f'{type(model).__name__}: an option differs from the one that '
                f'{checkpoint} was trained with: {line}'
            )
    averages = [place for place in AVERAGES if place in loaded]
    if averages and not loaded.keys().isdisjoint(STATE_DICTS):
        say(
            f'{checkpoint} holds a moving average of the weights too, under '
            f'{averages[0]}; to take that: {COMMAND} FAMILY SRC DST --ema',
            logging.INFO,
        )


def load_head(head: nn.Module, checkpoint: str) -> None:
    """Load the last layer of a classifier, `fc`, from a classifier's checkpoint.

    Args:
        head: The head, as mmpretrain's LinearClsHead has its layer.
        checkpoint: See :func:`load_pretrained`.

    Raises:
        KeyError: If the checkpoint has no such layer, or of another shape.
        Exception: See :func:`load_pretrained`.
    """
    state_dict, _ = find_state_dict(read_checkpoint(checkpoint, 'pretrained'))
    family = recognize(state_dict)
    if family in FAMILIES:
        state_dict = convert(state_dict, family)
    try:
        head.load_state_dict(inside(state_dict, 'head.'))
    except RuntimeError as error:
        raise KeyError(
            f'pretrained={checkpoint!r} has no head for this {type(head).__name__}: '
            f'{str(error).splitlines()[-1].strip()}; default_hooks.pretrained.head='
            'False starts the backbone alone'
        ) from None
    say(f'{type(head).__name__}: loaded from {checkpoint}', logging.INFO)


def is_optional(key: str, model: nn.Module) -> bool:
    """Whether a checkpoint may lack a parameter, which then starts as the identity."""
    return (
        is_scaling_vector(key)
        or is_early_norm(key, model.num_stages)
        or key.endswith('num_batches_tracked')
    )


def load_whole(model, found, shapes, checkpoint, prefix) -> None:
    """Load weights that have every parameter, except those that may be missing.

    Raises:
        KeyError: If others are missing or have other shapes.
    """
    kind = type(model).__name__
    missing = [key for key in shapes if key not in found.weights]
    lacking = [key for key in missing if not is_optional(key, model)]
    if lacking:
        whose = (
            f'weights of {FAMILIES[found.family].title}'
            if found.family
            else f'not recognized: mmlinattn takes checkpoints of {known_models()}; '
            f'see {COMMAND} --help'
        )
        if not found.family and recognize(found.weights):
            whose = 'weights of another model of mmlinattn'
        raise KeyError(
            f'checkpoint={checkpoint!r} with prefix={prefix!r} lacks {len(lacking)} '
            f'parameters of this {kind}, such as {lacking[:3]}; it has '
            f'{shortlist([*found.origin.values(), *found.rest])}, {whose}'
        )
    try:
        model.load_state_dict(found.weights, strict=False)
    except RuntimeError as error:
        lines = str(error).split('\n')[1:] or [str(error)]
        raise KeyError(
            f'checkpoint={checkpoint!r} does not fit this {kind}: '
            f'{len(lines)} shapes differ, such as {lines[0].strip()}'
        ) from None
    unused = [name for key, name in found.origin.items() if key not in shapes]
    zero = [key for key in missing if is_scaling_vector(key)]
    norms = [key for key in missing if is_early_norm(key, model.num_stages)]
    taken = [key for key in shapes if key in found.weights]
    source = f'{FAMILIES[found.family].title} in ' if found.family else ''
    say(
        f'{kind}: loaded {len(taken)} entries from {source}{checkpoint}; not used: '
        f'{shortlist(unused + summarize(found.rest))}; start at zero: '
        f'{shortlist(zero)}; start as fresh norms: {shortlist(norms)}',
        logging.INFO,
    )
    log_to_file(
        [f'{key} <- {found.origin[key]}' for key in taken]
        + [f'{key} starts at zero' for key in zero]
        + [f'{key} starts as a fresh norm' for key in norms]
        + [f'{name} is not used' for name in unused + found.rest]
    )


def start_model(model, found, shapes, checkpoint, initialize) -> None:
    """Load what fits of a plain model into one with other attentions, and warn.

    Raises:
        KeyError: If norms or FFNs have other shapes.
    """
    kind, title = type(model).__name__, FAMILIES[found.family].title
    try:
        start = plan_start(shapes, found.weights)
    except ValueError as error:
        raise KeyError(
            f'checkpoint={checkpoint!r}, weights of {title}, cannot start this '
            f'{kind}: {error}'
        ) from error
    if initialize is not None:
        initialize()
    model.load_state_dict(start.apply(found.weights), strict=False)
    recut = [key for key, names in start.taken.items() if names != [key]]
    unused = [found.origin[name] for name in start.unused]
    say(
        f'{kind}: STARTS from {title} in {checkpoint}: {len(start.taken)} of '
        f'{len(shapes)} entries taken, {len(recut)} of them cut otherwise; keep their '
        f'initial values: {start.initial or "none"}; not used: '
        f'{unused + summarize(found.rest) or "none"}'
    )
    origin = {
        key: ' + '.join(found.origin[name] for name in names)
        for key, names in start.taken.items()
    }
    log_to_file(
        [f'{key} <- {names}' for key, names in origin.items()]
        + [f'{key} keeps its initial value' for key in start.initial]
        + [f'{name} is not used' for name in unused + found.rest]
    )


def say(text: str, level: int = logging.WARNING) -> None:
    """Log what a user should know."""
    print_log(text, 'current', level)


def summarize(names: Iterable[str]) -> list[str]:
    """Parts of a model by name, each with the number of its entries."""
    counts = Counter(name.partition('.')[0] for name in names)
    return [f'{part} ({number} entries)' for part, number in counts.items()]


def log_to_file(lines: Iterable[str]) -> None:
    """Write lines to log files only: they are too many for a terminal."""
    logger = MMLogger.get_current_instance()
    record = logger.makeRecord(
        logger.name, logging.INFO, __file__, 0, '\n'.join(lines), (), None
    )
    for handler in logger.handlers:
        if isinstance(handler, logging.FileHandler):
            handler.handle(record)


def explain_unexpected(names: Iterable[str]) -> Optional[str]:
    """Advice on a raw official checkpoint that was loaded into a whole model.

    Args:
        names: Keys that the model has no place for.

    Returns:
        What to do, or None if these are no official model's.
    """
    family = recognize(list(names))
    if family not in FAMILIES:
        return None
    return (
        f'this checkpoint holds weights of {FAMILIES[family].title} under the names of '
        f'{FAMILIES[family].code}; load_from, tests and inference take a whole model '
        f'of OpenMMLab. To start a backbone from it: pretrained=CHECKPOINT. To turn '
        f'it into one: {COMMAND} {family} SRC DST'
    )


def rename_inside(state_dict: StateDict, prefix: str) -> None:
    """Give official names under a prefix ours, in place.

    Args:
        state_dict: Of a whole model.
        prefix: What precedes the names of its backbone.

    Raises:
        ValueError: If an official backbone is not whole.
    """
    official = inside(state_dict, prefix)
    family = recognize(official)
    if family not in FAMILIES:
        return
    converted = apply(plan_conversion(official, family), official)
    for key in official:
        del state_dict[prefix + key]
    for key, value in inside(converted, PREFIX).items():
        state_dict[prefix + key] = value
