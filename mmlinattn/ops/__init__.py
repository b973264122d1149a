"""mmcv's operators on torchvision and PyTorch, for an mmcv without its compiled part.

``mmcv.ops`` calls one module, ``mmcv._ext``, which mmcv-lite lacks. The functions here
have the names and arguments of its calls: tensors by position, options by name. Most
fill an output that is an argument, and the ``_backward`` ones add to gradients. They
run on all devices of PyTorch and torchvision, float16 and bfloat16 in float32.

Importing this changes nothing. A program calls :func:`enable` before it imports
``mmcv.ops``; ``python -m mmlinattn.ops --install`` serves programs of others.

Letters: N, images or boxes; R, regions; C, channels; H and W, a map's height and width;
ph and pw, bins of a region. Boxes are x1, y1, x2, y2 in pixels.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any

from .installed import check as check

# operators by the module that has them
MODULES = {
    'boxes': ('nms', 'nms_match', 'softnms'),
    'deformable': (
        'deform_conv_backward_input',
        'deform_conv_backward_parameters',
        'deform_conv_forward',
        'modulated_deform_conv_backward',
        'modulated_deform_conv_forward',
        'ms_deform_attn_backward',
        'ms_deform_attn_forward',
    ),
    'losses': ('sigmoid_focal_loss_backward', 'sigmoid_focal_loss_forward'),
    'maps': (
        'carafe_backward',
        'carafe_forward',
        'masked_col2im_forward',
        'masked_im2col_forward',
        'psamask_backward',
        'psamask_forward',
    ),
    'polygons': ('convex_giou', 'convex_iou', 'min_area_polygons'),
    'regions': (
        'deform_roi_pool_backward',
        'deform_roi_pool_forward',
        'roi_align_backward',
        'roi_align_forward',
    ),
    'rotated': (
        'box_iou_quadri',
        'box_iou_rotated',
        'chamfer_distance_backward',
        'chamfer_distance_forward',
        'diff_iou_rotated_sort_vertices_forward',
        'nms_quadri',
        'nms_rotated',
        'points_in_polygons_forward',
    ),
    'rotated_maps': (
        'active_rotated_filter_backward',
        'active_rotated_filter_forward',
        'riroi_align_rotated_backward',
        'riroi_align_rotated_forward',
        'roi_align_rotated_backward',
        'roi_align_rotated_forward',
        'rotated_feature_align_backward',
        'rotated_feature_align_forward',
    ),
}
_PLACES = {name: module for module, names in MODULES.items() for name in names}
# questions that mmcv asks its compiled part
_FACTS = ('get_compiler_version', 'get_compiling_cuda_version')
NAMES = (*sorted(_PLACES), *_FACTS)


class Finder:
    """Finds ``mmcv._ext`` here where mmcv has none. Python asks it last, and only when
    something imports ``mmcv.ops``."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if name != 'mmcv._ext':
            return None
        return spec_from_file_location(name, Path(__file__).with_name('_ext.py'))


def enable() -> None:
    """Let this process use the operators here, where mmcv has no compiled part.

    Call it before anything imports ``mmcv.ops``, as mmdet and mmseg do. It adds a
    finder to ``sys.meta_path``, once, and imports nothing.
    """
    if f'{__name__}.Finder' not in (_path_of(finder) for finder in sys.meta_path):
        sys.meta_path.append(Finder)  # type: ignore[arg-type]


def _path_of(finder: Any) -> str:
    return f'{finder.__module__}.{getattr(finder, "__name__", "")}'


def find(name: str) -> Callable:
    """Return the operator that ``mmcv._ext`` has by this name.

    Raises:
        NotImplementedError: If it is not here.
    """
    if name in _FACTS:
        return globals()[name]
    if name not in _PLACES:
        raise NotImplementedError(missing(name))
    return getattr(import_module(f'.{_PLACES[name]}', __name__), name)


def missing(name: str) -> str:
    """Return what to tell of an operator that is not here."""
    return (
        f'{name} is not among the operators of mmlinattn, only in a compiled mmcv: '
        "pip uninstall mmcv-lite, then mim install 'mmcv>=2.0.0,<2.2.0'"
    )


def get_compiler_version() -> str:
    """Return a text for reports, where a compiled mmcv names its compiler."""
    return 'none (mmlinattn.ops)'


get_compiling_cuda_version = get_compiler_version
