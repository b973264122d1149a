"""Which runs there are, the most telling first."""

from collections import Counter
from typing import Any, NamedTuple, Optional

from .models import BACKBONES, SAMPLERS, SIDE, SOLVERS, VITS
from .training import Run

DATA = ('imagenette', 'cifar10')
# That of the papers' ImageNet trainings (AdamW, cosine, warm-up, weight decay 0.05)
# without what needs hundreds of epochs: mixup, cutmix, erasing.
RECIPE = dict(
    side=SIDE,
    kept=144,
    batch=32,
    epochs=6,
    lr=1e-3,
    weight_decay=0.05,
    warmup=0.1,
    crop=[0.35, 1.0],
    smoothing=0.1,
)
SMALL = dict(RECIPE, side=32, kept=32, batch=64, epochs=3, crop=[0.6, 1.0])
RATES = (1e-3, 2e-3, 4e-3)
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
        data (str): On what.
        backbone (dict): Config.
        like (str, optional): The model whose rate it has; its own is tuned if None.
    """

    data: str
    backbone: dict[str, Any]
    like: Optional[str] = None


MODELS = {
    **{name: Model('imagenette', x) for name, x in BACKBONES.items()},
    **{
        name: Model('imagenette', x, 'SOFT++')
        for name, x in {**SOLVERS, **SAMPLERS}.items()
    },
    **{name: Model('cifar10', x) for name, x in VITS.items()},
}


class Plan:
    """The runs, and the rate of each model.

    Args:
        work_dir (Path): Where runs are kept.
        recipes (dict): By data.
        share (float): Epochs of a run that tunes a rate, over those of a full one.
    """

    def __init__(self, work_dir, recipes=None, share=1 / 6):
        self.work_dir, self.share = work_dir, share
        self.recipes = recipes or dict(imagenette=RECIPE, cifar10=SMALL)

    @classmethod
    def smoke(cls, work_dir):
        """A plan of a few steps."""
        few = dict(batch=4, epochs=0.01)
        recipes = dict(imagenette=dict(RECIPE, **few), cifar10=dict(SMALL, **few))
        return cls(work_dir, recipes)

    def tunes(self, name):
        """Short runs on nine tenths of the training photos, a rate each."""
        model = MODELS[name]
        recipe = self.recipes[model.data]
        recipe = dict(recipe, epochs=recipe['epochs'] * self.share)
        return [
            Run(name, model.data, model.backbone, dict(recipe, lr=lr), split='tune')
            for lr in RATES
        ]

    def rate(self, name):
        """That of the best short run, None before they are finished."""
        scores = {}
        for run in self.tunes(MODELS[name].like or name):
            result = run.result(self.work_dir)
            if result is None:
                return None
            scores[run.recipe['lr']] = result['accuracy']
        return max(scores, key=scores.get)

    def full(self, name, seed):
        """A model's run of a seed, at its rate."""
        model = MODELS[name]
        recipe = dict(self.recipes[model.data], lr=self.rate(name))
        return Run(name, model.data, model.backbone, recipe, seed)

    def tuned_on(self, name, technique, seed):
        """Fine-tuning of a ViT's first seed with a technique, in an order of data."""
        start = self.full(name, 0)
        lr = start.recipe['lr']
        recipe = dict(start.recipe, lr=lr and lr / 10)
        recipe.update(epochs=start.recipe['epochs'] / 12)
        if technique == 'FeatScale twice':
            recipe['scaling_lr'] = 2
        backbone = dict(start.backbone, **TECHNIQUES[technique])
        label = f'{name}, {technique}'
        return Run(label, start.data, backbone, recipe, seed + 1, start=start)

    def runs(self, seeds, data=DATA):
        """Yields all runs of some data. Those that need a rate come after the runs that
        tune it, and must be taken one after the other."""
        first = ['SOFT++', *SOLVERS]
        last = [x for x in MODELS if x not in first]
        for seed in range(seeds):
            for name in [*first, *last]:
                model = MODELS[name]
                if model.data not in data:
                    continue
                if seed == 0 and model.like is None:
                    yield from self.tunes(name)
                if name not in VITS or seed == 0:
                    yield self.full(name, seed)
                for technique in TECHNIQUES if name in VITS else ():
                    yield self.tuned_on(name, technique, seed)

    def missing(self, seeds):
        """What is not finished: a line of Markdown for each kind of data."""
        left: Counter = Counter()
        every: Counter = Counter()
        for run in self.runs(seeds):
            every[run.data] += 1
            # a run without a rate, and what starts from it, has not begun
            done = run.recipe['lr'] is not None and run.result(self.work_dir)
            left[run.data] += not done
        command = 'python benchmarks/claims/run.py train --data'
        return [
            f'- {left[name]} of {every[name]} runs: `{command} {name}=DIR`'
            for name in DATA
            if left[name]
        ]
