"""The commands of ``mmlinattn``, for its help and for what it prints."""

from typing import NamedTuple


class Verb(NamedTuple):
    """A command.

    Attributes:
        module: Its module in :mod:`mmlinattn.commands`.
        script: The file in tools/ that does the same.
        line: What it does.
        example: Arguments of an example.
        is_alone: It needs no library to start.
    """

    module: str
    script: str
    line: str
    example: str
    is_alone: bool = False


VERBS = {
    'new-config': Verb(
        'new_config',
        'misc/new_config.py',
        'write a config that trains a model on a folder of photos',
        '--data my/photos --task det --out mine.py',
    ),
    'train': Verb('train', 'train.py', 'train a model from a config', 'mine.py'),
    'test': Verb('test', 'test.py', 'print the metrics of a model', 'mine.py best.pth'),
    'predict': Verb(
        'predict',
        'analysis_tools/compare_predictions.py',
        'predict photos with weights, or with an exported file',
        'mine.onnx photos',
        is_alone=True,
    ),
    'compare': Verb(
        'compare_predictions',
        'analysis_tools/compare_predictions.py',
        'draw predictions of models side by side',
        'a.py b.py --checkpoint a.pth b.pth --image photos',
    ),
    'export': Verb(
        'export',
        'deployment/export.py',
        'write a model to ONNX or torch.export',
        'mine.py best.pth --whole',
    ),
    'flops': Verb(
        'get_flops',
        'analysis_tools/get_flops.py',
        'count FLOPs and parameters',
        'mine.py --shape 800 1333',
    ),
    'time': Verb(
        'time_config',
        'analysis_tools/time_config.py',
        'time predictions and training steps of a config here',
        'mine.py --checkpoint best.pth',
    ),
    'convert': Verb(
        'convert_official',
        'model_converters/convert_official.py',
        'convert a checkpoint of official code',
        'auto SOFT_Tiny.pth soft-t.pth',
    ),
    'weights': Verb(
        'weights',
        'misc/weights.py',
        'list models with public weights, or download one',
        '--task det --license any',
    ),
    'adapt': Verb(
        'adapt',
        'misc/adapt.py',
        'give a trained backbone linear attention, aligned on photos',
        '--teacher mine.py --weights best.pth --attention ELFATT --data photos '
        '--out student.pth',
    ),
    'shapes': Verb(
        'make_shapes',
        'dataset_converters/make_shapes.py',
        'write a small dataset of geometric shapes',
        '--layout shapes --out shapes',
    ),
    'quickstart': Verb(
        'quickstart',
        'misc/quickstart.py',
        'train, test and draw a small Mask R-CNN on shapes',
        '--epochs 2',
    ),
    'env': Verb(
        'make_env',
        'misc/make_env.py',
        'make the environment of a clone',
        '--stack modern',
        is_alone=True,
    ),
}
# of mim, which runs in a process that knows mmlinattn::
MIM_VERBS = ('run', 'gridsearch', 'search', 'download', 'list', 'install', 'uninstall')
