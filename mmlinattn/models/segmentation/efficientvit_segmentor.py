"""The segmentor that loads EfficientViT's public files."""

from typing import Any

try:
    from mmseg.models.segmentors import EncoderDecoder
except ImportError as error:
    raise ImportError(
        'EfficientViTSegmentor is a segmentor of MMSegmentation, which cannot be '
        f"imported ({error}): pip install 'mmlinattn[seg]'"
    ) from error

from mmlinattn.parts import register
from mmlinattn.weights.naming import name_segmentor


@register
class EfficientViTSegmentor(EncoderDecoder):
    """MMSegmentation's ``EncoderDecoder``, which also loads the official segmentors of
    EfficientViT, whose heads have other names.

    Its arguments are those of ``EncoderDecoder``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._register_load_state_dict_pre_hook(name_segmentor)
