"""Which runs there are, the most telling first."""

import json
from collections import Counter
from typing import Any, NamedTuple, Optional

from .looks import looks_file
from .models import BACKBONES, SAMPLERS, SIDE, SOLVERS, VITS
from .training import Run

# That of the papers' ImageNet trainings (AdamW, cosine, warm-up, weight decay 0.05)
# without what needs hundreds of epochs: mixup, cutmix, erasing.
RECIPE = dict(
    side=SIDE,
    kept=144,
    batch=32,
    epochs=4,
    lr=1e-3,
    weight_decay=0.05,
    warmup=0.1,
    crop=[0.35, 1.0],
    smoothing=0.1,
)
# 192 landmarks; boxes and pixels start from the classifier of the same model and seed.
DENSE = dict(RECIPE, side=[256, 192], kept=[256, 192], batch=4, epochs=8)
RECIPES = dict(
    imagenette=RECIPE,
    cifar10=dict(RECIPE, side=32, kept=32, batch=64, epochs=3, crop=[0.6, 1.0]),
    bccd=DENSE,
    camvid=dict(DENSE, epochs=4),
)
RATES = (5e-4, 1e-3, 2e-3)
DENSE_RATES = (2.5e-4, 5e-4, 1e-3)
TUNING = 1 / 4  # epochs of a run that tunes a rate, over those of a full one
# Fine-tuning from the same weights, with data in other orders: exactly paired.
TECHNIQUES: dict[str, dict[str, Any]] = {
    'plain': {},
    'AttnScale': dict(attn_scale=True),
    'FeatScale': dict(feat_scale=True),
    # (1 + 2 s) and (1 + 2 t), as the official code has it: for AdamW, twice the rate
    'FeatScale twice': dict(feat_scale=True),
}


class Model(NamedTuple):
    """What is trained.

    Attributes:
        backbone (dict): Config for classification.
        like (str): The model whose rate it has: its own name, where it is tuned.
    """

    backbone: dict[str, Any]
    like: str


MODELS = {
    **{name: Model(x, name) for name, x in {**BACKBONES, **VITS}.items()},
    **{name: Model(x, 'SOFT++ bare') for name, x in {**SOLVERS, **SAMPLERS}.items()},
}
FIRST = ('SOFT++ bare', 'SOFT++ bare no attention', *SOLVERS)
LATER = tuple(name for name in MODELS if name not in (*FIRST, *VITS))
# Groups of models by data, in the order in which each seed is trained.
ORDER = (
    ('imagenette', FIRST),
    ('bccd', FIRST),
    ('camvid', FIRST),
    ('imagenette', LATER),
    ('cifar10', tuple(VITS)),
    ('bccd', tuple(BACKBONES)[1:]),
    ('camvid', tuple(BACKBONES)[1:]),
)


class Plan:
    """The runs, and the rate of each model.

    Args:
        work_dir (Path): Where runs are kept.
        recipes (dict): By data.
    """

    def __init__(self, work_dir, recipes=RECIPES):
        self.work_dir, self.recipes = work_dir, recipes

    @classmethod
    def smoke(cls, work_dir):
        """A plan of a step each."""
        few = dict(batch=2, epochs=0.01)
        return cls(work_dir, {name: dict(x, **few) for name, x in RECIPES.items()})

    def run(self, data, name, seed, lr, **options):
        """A run of a model at a rate, from its classifier's backbone if need be."""
        backbone, start = MODELS[name].backbone, None
        if data in ('bccd', 'camvid'):
            start = self.full('imagenette', name, seed)
            backbone = dict(backbone, out_indices=[0, 1, 2])
        recipe = dict(self.recipes[data], lr=lr)
        return Run(name, data, backbone, recipe, seed, start=start)._replace(**options)

    def tunes(self, data, name):
        """Short runs on nine tenths of the training photos, a rate each."""
        rates = DENSE_RATES if data in ('bccd', 'camvid') else RATES
        runs = [self.run(data, name, 0, lr, split='tune') for lr in rates]
        epochs = self.recipes[data]['epochs'] * TUNING
        return [x._replace(recipe=dict(x.recipe, epochs=epochs)) for x in runs]

    def rate(self, data, name) -> Optional[float]:
        """That of the best short run, None before they are finished."""
        scores = {}
        for run in self.tunes(data, MODELS[name].like):
            result = run.result(self.work_dir)
            if result is None:
                return None
            scores[run.recipe['lr']] = result['score']
        return max(scores, key=scores.__getitem__)

    def full(self, data, name, seed):
        """A model's run of a seed, at its rate."""
        return self.run(data, name, seed, self.rate(data, name))

    def tuned_on(self, name, technique, seed):
        """Fine-tuning of a ViT's first seed with a technique, in an order of data."""
        start = self.full('cifar10', name, 0)
        lr = start.recipe['lr']
        recipe = dict(start.recipe, lr=lr and lr / 10)
        recipe.update(epochs=start.recipe['epochs'] / 12)
        if technique == 'FeatScale twice':
            recipe['scaling_lr'] = 2
        backbone = dict(start.backbone, **TECHNIQUES[technique])
        label = f'{name}, {technique}'
        return Run(label, start.data, backbone, recipe, seed + 1, start=start)

    def runs(self, seeds, data=tuple(RECIPES)):
        """Yields all runs of some data. Those that need a rate come after the runs that
        tune it, and must be taken one after the other."""
        for seed in range(seeds):
            for of, names in ORDER:
                for name in names if of in data else ():
                    if seed == 0 and MODELS[name].like == name:
                        yield from self.tunes(of, name)
                    if name not in VITS or seed == 0:
                        yield self.full(of, name, seed)
                    for technique in TECHNIQUES if name in VITS else ():
                        yield self.tuned_on(name, technique, seed)

    def record(self, seeds):
        """What is finished, for the page.

        Returns:
            dict: 'models', by data and name their rate and seeds, and 'missing', a line
            of Markdown for each kind of data.
        """
        models: dict[str, Any] = {name: {} for name in RECIPES}
        left: Counter = Counter()
        every: Counter = Counter()
        for run in self.runs(seeds):
            every[run.data] += 1
            # a run without a rate, and what starts from it, has not begun
            result = run.recipe['lr'] and run.result(self.work_dir)
            left[run.data] += not result
            if result and run.split == 'train':
                head = dict(lr=run.recipe['lr'], seeds={})
                keys = ('score', 'ap', 'photos', 'right', 'seconds')
                kept = {key: result[key] for key in keys if key in result}
                of_model = models[run.data].setdefault(run.name, head)
                of_model['seeds'][str(run.seed)] = kept
                file = looks_file(run, self.work_dir)
                if file.is_file():
                    looks = json.loads(file.read_text('utf-8'))
                    of_model.setdefault('looks', {})[str(run.seed)] = looks
        command = 'python benchmarks/claims/run.py train --data'
        missing = [
            f'- {left[name]} of {every[name]} runs: `{command} {name}=DIR`'
            for name in RECIPES
            if left[name]
        ]
        return dict(models=models, missing=missing)
