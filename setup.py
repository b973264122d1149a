import os
import re
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
URL = 'https://github.com/mmlinattn/mmlinattn'
# What mim looks for in the installed package, under `.mim`.
MIM_FILES = ('tools', 'configs', 'model-index.yml', 'dataset-index.yml')


def link_mim_files():
    """Make ``mmlinattn/.mim`` in the source tree, for an editable install.

    Relative links keep it in step with the tree and let the tree be moved;
    where the system refuses links, it gets copies.
    """
    folder = ROOT / 'mmlinattn' / '.mim'
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in filter(os.path.exists, MIM_FILES):
        try:
            os.symlink(os.path.join('..', '..', name), folder / name)
        except OSError:
            copy_mim_file(name, folder)


def copy_mim_file(name, folder):
    if os.path.isdir(name):
        shutil.copytree(
            name, folder / name, ignore=shutil.ignore_patterns('__pycache__')
        )
    else:
        shutil.copy2(name, folder)


class BuildPy(build_py):
    """``build_py`` that adds ``.mim`` to the package."""

    def run(self):
        if getattr(self, 'editable_mode', False):
            link_mim_files()
            super().run()
            return
        # build/ outlives a build: a file deleted since must not come back.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        folder = Path(self.build_lib, 'mmlinattn', '.mim')
        folder.mkdir(parents=True)
        for name in filter(os.path.exists, MIM_FILES):
            copy_mim_file(name, folder)


def read_version():
    scope = {}
    exec((ROOT / 'mmlinattn' / 'version.py').read_text(), scope)  # noqa: S102
    return scope['__version__']


def read_readme():
    """Return the README with absolute links, for pages of package indexes."""
    readme = ROOT / 'README.md'
    text = readme.read_text(encoding='utf-8') if readme.exists() else ''
    text = re.sub(r'(!\[[^]]*\]\()(?!http|#)', rf'\1{URL}/raw/main/', text)
    return re.sub(r'(?<!!)(\[[^]]*\]\()(?!http|#)', rf'\1{URL}/blob/main/', text)


os.chdir(ROOT)
if 'develop' in sys.argv:  # how `pip install -e` works before setuptools 64
    link_mim_files()

MMENGINE = 'mmengine>=0.10.0,<1.0.0'
EXTRAS = {
    'det': [MMENGINE, 'mmdet>=3.3.0,<4.0.0'],
    'seg': [MMENGINE, 'mmsegmentation>=1.2.2,<2.0.0', 'ftfy', 'regex'],
    'pretrain': [MMENGINE, 'mmpretrain>=1.2.0,<2.0.0'],
    'timm': ['timm>=1.0'],
    'data': [
        'contourpy',
        'matplotlib',
        'numpy',
        'opencv-python',
        'pillow',
        'pycocotools',
        'pyyaml',
        'rich',
    ],
    # the maintained distributions: their mmcv is pure Python where pip builds it, and
    # our operators are in place of its compiled part
    'onedl': [
        'onedl-mmengine>=0.10.8,<1.0.0',
        'onedl-mmcv>=2.3.0,<3.0.0',
        'onedl-mmdetection>=3.5.0,<4.0.0',
        'onedl-mmsegmentation>=1.4.0,<2.0.0',
        'onedl-mmpretrain>=1.3.0,<2.0.0',
        'torchvision',
    ],
    'deploy': ['onnx>=1.15', 'onnxruntime>=1.16'],
}


def union(*extras):
    """Return the requirements of several extras."""
    return sorted({requirement for extra in extras for requirement in EXTRAS[extra]})


EXTRAS['mm'] = union('det', 'seg', 'pretrain')
# What every command needs, in an environment of its own. OpenMMLab's distributions
# can't be installed beside a current torch by pip alone, the others not on Python 3.9.
EXTRAS['all'] = [
    *union('timm', 'data', 'deploy'),
    *(f'{name}; python_version >= "3.10"' for name in EXTRAS['onedl']),
    *(f'{name}; python_version < "3.10"' for name in EXTRAS['mm']),
]
EXTRAS['tests'] = [
    *EXTRAS['deploy'],
    'cityscapesscripts',
    'matplotlib',
    'pytest',
    'pytest-xdist',
    'safetensors',
    'tensorboard',
    'timm',
]

setup(
    name='mmlinattn',
    version=read_version(),
    description='Linear-attention backbones for PyTorch, timm, MMDetection, '
    'MMSegmentation and MMPretrain',
    long_description=read_readme(),
    long_description_content_type='text/markdown',
    url=URL,
    project_urls={
        'Documentation': f'{URL}/blob/main/docs/start.md',
        'Source': URL,
        'Issues': f'{URL}/issues',
        'Changelog': f'{URL}/blob/main/CHANGELOG.md',
    },
    license='Apache-2.0',
    author='The mmlinattn contributors',
    keywords='computer vision, linear attention, object detection, '
    'semantic segmentation',
    classifiers=[
        'Development Status :: 4 - Beta',
        'Intended Audience :: Developers',
        'Intended Audience :: Science/Research',
        'Operating System :: POSIX :: Linux',
        'Programming Language :: Python :: 3',
        *(f'Programming Language :: Python :: 3.{minor}' for minor in range(9, 15)),
        'Topic :: Scientific/Engineering :: Artificial Intelligence',
        'Topic :: Scientific/Engineering :: Image Recognition',
        'Typing :: Typed',
    ],
    packages=find_packages(include=['mmlinattn', 'mmlinattn.*']),
    package_data={'mmlinattn': ['py.typed', 'own_config/templates/*.template']},
    entry_points={'console_scripts': ['mmlinattn = mmlinattn.__main__:main']},
    python_requires='>=3.9',
    # Models, functions and weights need torch alone, and a torch that fits is never
    # replaced. Registries, configs and commands need MMEngine, which the extras name.
    # It comes as mmengine or as onedl-mmengine, and pip, which can't say "one or the
    # other", would unpack one over the other: so there are extras for each, 'mm' and
    # 'onedl', and none here. `mmlinattn.registry` checks for both and says what to
    # install. mmcv has several names too.
    install_requires=['torch>=2.1'],
    extras_require=EXTRAS,
    cmdclass={'build_py': BuildPy},
    zip_safe=False,
)
