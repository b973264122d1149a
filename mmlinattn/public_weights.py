"""The models of ours that have public weights, from the metafiles of the configs.

They are read line by line: all of their YAML would take a second, and a library.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# data sets by their names in the metafiles, with the task of the models that learn them
DATA = {
    'COCO': ('coco', 'det'),
    'ADE20K': ('ade20k', 'seg'),
    'Cityscapes': ('cityscapes', 'seg'),
    'ImageNet-1k': ('imagenet', 'cls'),
}
METRICS = {
    'Paper box AP': 'box AP',
    'Paper mask AP': 'mask AP',
    'Paper mIoU': 'mIoU',
    'Paper Top 1 Accuracy': 'top-1',
}
LICENSES = 'configs/licenses.yml'


class PublicModel(NamedTuple):
    """A model of ours with public weights.

    Attributes:
        name (str): Of its config.
        config (str): The config, relative to the folder of the model index.
        task (str): 'det', 'seg' or 'cls'.
        data (str): What it was trained on: 'coco', 'ade20k', 'cityscapes' or
            'imagenet'.
        parameters (int): Their number, of the whole model.
        flops (int): Multiply-accumulates of an image of the data, 0 if not counted.
        license (str): Of the repository that publishes the weights, '' for none.
        scores (dict[str, float]): The authors' results on the data, in percent, by
            metric.
        address (str): Of the weights.
    """

    name: str
    config: str
    task: str
    data: str
    parameters: int
    flops: int
    license: str
    scores: dict[str, float]
    address: str

    @property
    def method(self) -> str:
        """The method in its name, 'classifier' for a classifier."""
        return 'classifier' if self.task == 'cls' else self.name.split('_')[0]

    @property
    def backbone(self) -> str:
        """The backbone in its name."""
        return self.name.split('_')[0 if self.task == 'cls' else 1]

    @property
    def score(self) -> float:
        """The first of its results, 0 for none."""
        return next(iter(self.scores.values()), 0.0)

    @property
    def file(self) -> str:
        """The name of the file of its weights."""
        return self.address.rpartition('/')[2]

    @property
    def results(self) -> str:
        """Its results in words, '' for none."""
        return ', '.join(f'{metric} {value:g}' for metric, value in self.scores.items())

    def describe(self) -> str:
        """Return its name, results and license, in words."""
        license_ = f'license {self.license}' if self.license else 'no license is stated'
        return f'{self.name} ({", ".join(filter(None, [self.results, license_]))})'


def read_models(folder: Path) -> list[PublicModel]:
    """Read the models with public weights.

    Args:
        folder: Of the model index.

    Returns:
        One for each entry of a metafile that has weights.
    """
    licenses = read_licenses(folder)
    return [
        _model(entry, licenses)
        for path in (path for _, path in _pairs(folder / 'model-index.yml'))
        for entry in _entries(folder / path)
        if 'Weights' in entry
    ]


def read_licenses(folder: Path) -> dict[str, str]:
    """Read the licenses of repositories that publish weights, by parts of addresses,
    for :func:`license_of`."""
    return dict(_pairs(folder / LICENSES))


def license_of(address: str, licenses: dict[str, str]) -> str:
    """Return the license of the repository that publishes weights, '' for none or for
    an address that the table lacks."""
    license_ = next((x for part, x in licenses.items() if part in address), '')
    return '' if license_ == 'none' else license_


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield keys and values of the lines of a YAML file without comments; of an item of
    a list, only the value."""
    for line in path.read_text('utf-8').splitlines():
        text = line.partition(' #')[0].strip(' -')
        key, _, value = text.rpartition(': ') if ': ' in text else ('', '', text)
        if value and not value.startswith('#') and not value.endswith(':'):
            yield key, value


def _entries(path: Path) -> Iterator[dict[str, str]]:
    """Yield the entries of a metafile, flat."""
    entry: dict[str, str] = {}
    for key, value in _pairs(path):
        if key == 'Name' and entry:
            yield entry
            entry = {}
        entry[key] = value
    yield entry


def _model(entry: dict[str, str], licenses: dict[str, str]) -> PublicModel:
    data, task = DATA[entry['Training Data']]
    scores = {x: float(entry[key]) for key, x in METRICS.items() if key in entry}
    return PublicModel(
        name=entry['Name'],
        config=entry['Config'],
        task=task,
        data=data,
        parameters=int(entry['Parameters']),
        flops=int(entry.get('FLOPs', 0)),
        license=license_of(entry['Weights'], licenses),
        scores=scores,
        address=entry['Weights'],
    )
