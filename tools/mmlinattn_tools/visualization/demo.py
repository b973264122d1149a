"""What the demo page does, without the page.

Whoever starts it names the configs, checkpoints and pictures that it may open. The page
asks for them by those names, and hands in pictures of its own; nothing else is opened.
"""

import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Callable, NamedTuple, Optional, TypeVar

import numpy as np
from PIL import Image

from mmlinattn.analysis import attentions_of
from mmlinattn.engine.part_errors import LIBRARY_ERRORS, quiet
from mmlinattn.weights import load_safely

from .command import Subject, check_device, error_text, load_subject
from .figures import save, save_numbers
from .frequencies import draw_frequencies, measure_frequencies
from .heatmaps import HeatmapRow, Point, draw_heatmaps, heatmap_numbers, heatmap_rows
from .models import feature_extractor
from .predictions import Prediction, dataset_meta, draw_predictions, look_at
from .uploads import Limits, read_upload

RANDOM = 'none: random weights'
WEIGHTS = ('.pth', '.pt', '.safetensors')
_Answer = TypeVar('_Answer')
# Models that stay in memory.
KEPT = 4
# No config among these is one of a whole model that is to be chosen.
_NOT_CONFIGS = ('_base_', 'vis_data', '__pycache__', '__init__.py')


class Choice(NamedTuple):
    """A model of the page, by the names that the page knows.

    Attributes:
        config (str): Name of its config.
        checkpoint (str): Name of its weights, or ``RANDOM``.
    """

    config: str
    checkpoint: str = RANDOM


def find_files(
    option: str, places: Iterable[str], endings: Sequence[str]
) -> dict[str, Path]:
    """Files that are named, and those in folders that are named, at any depth.

    Args:
        option (str): What names them, for the error.
        places (Iterable[str]): Paths of files and folders.
        endings (Sequence[str]): Of files in folders.

    Returns:
        dict[str, Path]: By path, as it is named.

    Raises:
        FileNotFoundError: If there is no such place.
        ValueError: If a folder has none.
    """
    found: dict[str, Path] = {}
    for place in places:
        path = Path(place).expanduser()
        if not path.exists():
            raise FileNotFoundError(
                f'{option} {place}: there is no such file or folder'
            )
        files = [path]
        if path.is_dir():
            files = sorted(
                x
                for x in path.rglob('*')
                if x.suffix.lower() in endings
                and x.is_file()
                and not any(part in _NOT_CONFIGS for part in x.parts)
            )
        if not files:
            raise ValueError(
                f'{option} {place}: the folder has no file that ends in '
                f'{", ".join(endings)}'
            )
        found.update((str(file), file) for file in files)
    return found


class Demo:
    """Models and pictures that a page may choose from, and what it shows of them.

    One request is answered at a time.

    Args:
        configs (dict[str, Path]): Configs by name.
        checkpoints (dict[str, Path]): Weights by name.
        images (dict[str, Path]): Pictures by name.
        uploads (Path, optional): Folder that the page keeps uploads in. Default: none;
            there are no uploads.
        limits (Limits): The largest picture that is taken.
        shape (tuple[int], optional): (H, W) to which pictures are resized. Default:
            as the test pipeline of each config does.
        score (float): The lowest score of a detection that is drawn.
        device (str): Where models run.

    Raises:
        ValueError: If the device can't be used.
    """

    def __init__(
        self,
        configs: dict[str, Path],
        checkpoints: dict[str, Path],
        images: dict[str, Path],
        uploads: Optional[Path] = None,
        limits: Limits = Limits(),  # noqa: B008
        shape: Optional[tuple[int, int]] = None,
        score: float = 0.3,
        device: str = 'cpu',
    ) -> None:
        load_safely()
        check_device(device)
        self.configs = configs
        self.checkpoints = checkpoints
        self.images = images
        self.uploads = uploads
        self.limits = limits
        self.shape = shape
        self.score = score
        self.device = device
        self._kept: OrderedDict[Choice, tuple[Subject, dict[str, Any]]] = OrderedDict()
        self._lock = Lock()

    def open_upload(self, path: str) -> np.ndarray:
        """A picture that the page hands in, (H, W, 3), uint8, RGB.

        Raises:
            ValueError: If it is none, is beyond the limits, or is not in the folder of
                uploads.
        """
        file = Path(path).resolve()
        if self.uploads is None or self.uploads.resolve() not in file.parents:
            raise ValueError(f'image={file.name!r} is no upload: upload one')
        return np.asarray(read_upload(file, self.limits))

    def open_image(self, name: str) -> np.ndarray:
        """A picture that was named at the start, (H, W, 3), uint8, RGB.

        Raises:
            ValueError: If it was not, is no picture, or is beyond the limits.
        """
        path = _named('image', name, self.images)
        return np.asarray(read_upload(path, self.limits))

    def predict(self, image: np.ndarray, choices: Sequence[Choice]) -> list[Prediction]:
        """What models say of an image.

        Args:
            image (np.ndarray): (H, W, 3), uint8, RGB.
            choices (Sequence[Choice]): The models.

        Raises:
            ValueError: If a model can't be built, doesn't fit its weights, or makes no
                predictions.
        """

        def work(path: Path) -> list[Prediction]:
            return [
                look_at(*self._load(choice), path, self.score) for choice in choices
            ]

        return self._answer(image, choices, work)

    def attention(
        self,
        image: np.ndarray,
        choices: Sequence[Choice],
        point: Point,
        every_layer: bool = False,
    ) -> list[HeatmapRow]:
        """Attention maps of the query at a place, mean of the heads.

        Args:
            image (np.ndarray): (H, W, 3), uint8, RGB.
            choices (Sequence[Choice]): The models.
            point (tuple[float]): (x, y) as parts of the sides, 0 to 1.
            every_layer (bool): Shows each layer, not the last one of each stage.

        Raises:
            ValueError: If a model can't be built, doesn't fit its weights, or has no
                attention of mmlinattn, or the point is not in the image.
        """

        if not all(0 <= part <= 1 for part in point):
            raise ValueError(f'point must be (x, y) with both in 0...1, got {point}')

        def work(path: Path) -> list[HeatmapRow]:
            rows = []
            for choice in choices:
                subject, _ = self._load(choice)
                layers = None
                if every_layer:
                    backbone = feature_extractor(subject.model)
                    layers = [str(i) for i in range(len(attentions_of(backbone)))]
                rows += heatmap_rows(subject, path, [point], layers)
            return rows

        return self._answer(image, choices, work)

    def frequencies(
        self, image: np.ndarray, choices: Sequence[Choice]
    ) -> list[dict[str, Any]]:
        """Measures over the blocks, as :func:`.frequencies.draw_frequencies` takes
        them; arguments and errors as those of :meth:`attention`."""

        def work(path: Path) -> list[dict[str, Any]]:
            models = []
            for choice in choices:
                subject, _ = self._load(choice)
                inputs = subject.read(path).inputs
                blocks = measure_frequencies(feature_extractor(subject.model), inputs)
                models.append(dict(subject.describe(), blocks=blocks))
            return models

        return self._answer(image, choices, work)

    def write(
        self, image: np.ndarray, choice: Choice, point: Point, out: Path, stem: str
    ) -> list[Path]:
        """Writes what the page shows of one model: figures, and their numbers.

        Args:
            image (np.ndarray): (H, W, 3), uint8, RGB.
            choice (Choice): The model.
            point (tuple[float]): See :meth:`attention`.
            out (Path): Folder, made if it is not there.
            stem (str): What names of files begin with.

        Returns:
            list[Path]: The files. Where there is an error, none is written.

        Raises:
            ValueError: As the other methods.
        """
        predictions = self.predict(image, [choice])
        rows = self.attention(image, [choice], point)
        models = self.frequencies(image, [choice])
        subject, _ = self._load(choice)
        numbers = dict(
            predictions=predictions[0].numbers,
            attention=heatmap_numbers([subject], rows),
            frequencies=models,
        )
        figures = dict(
            predictions=draw_predictions(image, predictions),
            attention=draw_heatmaps(rows),
            frequencies=draw_frequencies(models),
        )
        written = []
        for name, figure in figures.items():
            written += save(figure, out / f'{stem}_{name}.png')
        return [*written, save_numbers(numbers, out / f'{stem}_demo.json')]

    def _answer(
        self,
        image: np.ndarray,
        choices: Sequence[Choice],
        work: Callable[[Path], _Answer],
    ) -> _Answer:
        """Does work on a file of the image; errors become one line."""
        if not choices:
            raise ValueError('no model is chosen: choose one')
        with self._lock, quiet(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder, 'image.png')
            Image.fromarray(image).save(path, compress_level=1)
            try:
                return work(path)
            except LIBRARY_ERRORS as error:
                raise ValueError(error_text(error) or type(error).__name__) from error

    def _load(self, choice: Choice) -> tuple[Subject, dict[str, Any]]:
        """A model, and names of its classes; the last ones stay in memory."""
        if choice in self._kept:
            self._kept.move_to_end(choice)
            return self._kept[choice]
        config = _named('config', choice.config, self.configs)
        checkpoint, weights = None, 'random weights'
        if choice.checkpoint != RANDOM:
            file = _named('checkpoint', choice.checkpoint, self.checkpoints)
            checkpoint, weights = str(file), file.name
        subject = load_subject(
            str(config),
            checkpoint,
            f'{config.stem}\n({weights})',
            self.shape,
            self.device,
            whole=True,
        )
        while len(self._kept) >= KEPT:
            self._kept.popitem(last=False)
        self._kept[choice] = subject, dataset_meta(subject)
        return self._kept[choice]


def _named(what: str, name: str, files: dict[str, Path]) -> Path:
    """The file of a name that was given at the start."""
    if name not in files:
        raise ValueError(f'{what}={name!r} is not offered: choose one of the list')
    return files[name]
