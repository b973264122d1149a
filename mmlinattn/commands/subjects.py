"""Models that predict photos, with what their predictions are made of."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from mmlinattn.runs import preparation as runs  # first: it checks mmcv

# isort: split
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.registry import VISUALIZERS, DefaultScope

from mmlinattn import ops
from mmlinattn.cli.pictures import Color, draw_label_map
from mmlinattn.engine.preflight import build_model, error_in
from mmlinattn.parts import type_name
from mmlinattn.utils import library_of, load_config
from mmlinattn.weights import load_safely

# steps of a pipeline that read the truth or change it
OF_TRUTH = ('Annotation', 'ConvertBoxType', 'ConvertMask2BoxType')
SCRATCH = 'none'  # in place of a checkpoint: the weights before a training


@dataclass(frozen=True)
class Source:
    """What a model's predictions are made with, for the JSON files.

    Attributes:
        config (str): The path of the config, or its name in a package.
        weights (str): The path of the checkpoint, or 'none'.
        time (float, optional): When that file was written.
        settings (str): The MD5 sum of what the config says of model and transforms.
    """

    config: str
    weights: str
    time: Optional[float]
    settings: str

    @classmethod
    def of(cls, config: str, checkpoint: str, cfg: Config, steps: Any) -> 'Source':
        """Return the source of a model that reads photos by transforms."""
        weights = Path(checkpoint)
        settings = repr((steps, cfg.model.to_dict(), cfg.get('data_preprocessor')))
        return cls(
            config=str(Path(config).resolve()) if Path(config).is_file() else config,
            weights=str(weights.resolve()) if weights.is_file() else checkpoint,
            time=weights.stat().st_mtime if weights.is_file() else None,
            settings=hashlib.md5(settings.encode()).hexdigest(),
        )


class Subject:
    """A model in eval mode that predicts photos by the transforms of its test data.

    Without a checkpoint, 'none', it has the initial weights of a training.

    Attributes:
        meta (dict): Names and colors of the classes.
        source (Source): What it is made of.

    Raises:
        ValueError: If the config can't be built, or the checkpoint is not from it.
    """

    def __init__(
        self, config: str, checkpoint: str = SCRATCH, device: str = 'cpu'
    ) -> None:
        load_safely()
        cfg = load_config(config)
        self.scope = library_of(cfg)
        ops.check(self.scope)
        torch.manual_seed(0)
        with error_in(cfg, config):
            self.model = build_model(cfg).to(device)
            self.model.eval()
            other = runs.what_else(self.model, self.scope)
            if other:
                raise ValueError(f'{type(self.model).__name__} predicts {other}')
            learned_meta: dict[str, Any] = {}
            if checkpoint == SCRATCH:
                self.model.init_weights()
            else:
                learned_meta = runs.load_whole(self.model, checkpoint)
            dataset = runs.test_dataset(cfg)
            self.meta = runs.dataset_meta(dataset, self.scope, learned_meta)
            steps = [
                step
                for step in dataset.pipeline
                if not any(word in type_name(step) for word in OF_TRUTH)
            ]
            self.pipeline = Compose(steps)
        self.source = Source.of(config, checkpoint, cfg, steps)

    @property
    def classes(self) -> Any:
        """Names of the classes, by label."""
        return self.meta.get('classes') or ()

    @torch.no_grad()
    def predict(self, path: Path) -> Any:
        """Return the data sample of a photo."""
        photo = dict(img_path=str(path), img_id=0, reduce_zero_label=False)
        with DefaultScope.overwrite_default_scope(self.scope):
            packed = self.pipeline(photo)
            batch = dict(
                inputs=[packed['inputs']], data_samples=[packed['data_samples']]
            )
            return self.model.test_step(batch)[0].cpu()

    def draw_boxes(self, pixels: np.ndarray, sample: Any, score: float) -> np.ndarray:
        """Return a photo (H, W, 3), uint8, RGB, with a detector's predictions as
        MMDetection draws them, or MMRotate rotated ones."""
        drawn: list[np.ndarray] = []
        with DefaultScope.overwrite_default_scope(self.scope):
            is_rotated = sample.pred_instances.bboxes.shape[-1] == 5
            kind = 'RotLocalVisualizer' if is_rotated else 'DetLocalVisualizer'
            visualizer = VISUALIZERS.build(dict(type=kind, name=kind))
            visualizer.add_image = lambda name, image, step=0: drawn.append(image)
            visualizer.dataset_meta = self.meta
            visualizer.add_datasample(
                '', pixels, sample, draw_gt=False, pred_score_thr=score
            )
        return drawn[0]

    def draw_labels(
        self, pixels: np.ndarray, label_map: np.ndarray
    ) -> tuple[np.ndarray, list[tuple[str, Color]]]:
        """Return a photo with the colors of a label map, and their legend."""
        return draw_label_map(pixels, label_map, self.classes, self.meta.get('palette'))
