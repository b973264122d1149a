"""The configs of an OpenMMLab library, and what of their models is left for a test."""

import itertools
import json
from collections import defaultdict

from mmengine.config import Config

WEIGHTS = ('init_cfg', 'pretrained', 'checkpoint', 'teacher_ckpt')
# regions at most, of any score
FEW = dict(nms_pre=200, nms_post=100, max_per_img=100, max_num=100, num=32, score_thr=0)


def mapped(value, change):
    """Return a config whose dicts are what a function makes of them."""
    if isinstance(value, dict):
        return {key: mapped(part, change) for key, part in change(value).items()}
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(part, change) for part in value)
    return value


def without_weights(node):
    """Return a dict without what it would download, its ResNet of 50 layers at most."""
    rest = {key: value for key, value in node.items() if key not in WEIGHTS}
    if 'num_cp' in rest:  # layers that another library computes again
        rest['num_cp'] = 0
    if 'Res' in str(rest.get('type')) and rest.get('depth', 0) in (101, 152):
        rest['depth'] = 50  # of the same blocks
    return rest


def with_few_regions(node):
    """Return a dict of a train_cfg or test_cfg that lets few boxes through, of any
    score."""
    return {
        key: min(value, FEW[key])
        if key in FEW and isinstance(value, (int, float))
        else value
        for key, value in node.items()
    }


def find(value, name):
    """Return all values of a name in a config."""
    values = [value[name]] if isinstance(value, dict) and name in value else []
    parts = value.values() if isinstance(value, dict) else value
    for part in parts if isinstance(value, (dict, list, tuple)) else ():
        values += find(part, name)
    return values


def read_configs(folder):
    """Return models, and the names of the configs that have them, by the first name.

    Returns:
        tuple[dict]: Models and names; errors of configs that can't be read.
    """
    models, names, errors = {}, defaultdict(list), {}
    for path in sorted(folder.rglob('*.py')):
        name = str(path.relative_to(folder))
        if '_base_' in path.parts:
            continue
        try:
            config = Config.fromfile(path, format_python_code=False)
            model = config.get('model')
            if model is not None and 'data_preprocessor' in config:
                model.setdefault('data_preprocessor', config.data_preprocessor)
        except Exception as error:
            errors[name] = f'{type(error).__name__}: {error}'
            continue
        if model is not None:
            plain = mapped(model.to_dict(), without_weights)
            text = json.dumps(plain, sort_keys=True, default=str)
            names[text].append(name)
            models[names[text][0]] = model
    return models, {group[0]: group for group in names.values()}, errors


def by_turns(models):
    """Return models, the first of every folder first, then the second ones."""
    places = defaultdict(itertools.count)
    order = [(next(places[name.rpartition('/')[0]]), name) for name in models]
    return [(name, models[name]) for _, name in sorted(order)]
