"""Parts of the papers' claims on trained networks: which models are compared. The page
says what the papers say, and why these."""

from itertools import chain
from pathlib import Path

from mmengine import load

from .claim import Part

LISTED = load(Path(__file__).with_name('parts.yml'))


def listed(parts, margin=0.0, paired=False, gated=False):
    """Parts of a group by their texts, such as 'bccd: A less B' or 'A equals B'."""
    for text in parts:
        head, _, pair = text.rpartition(': ')
        data, equal = head or 'imagenette', ' equals ' in pair
        models = tuple(pair.split(' equals ' if equal else ' less '))
        least = LISTED['ties'][data] if equal else margin
        gate = LISTED['gates']['flat' if pair.startswith('flat') else data]
        yield Part(text, models, least, equal, paired, gate if gated else 0.0, data)


CLAIMS = {
    name: list(chain.from_iterable(listed(**group) for group in groups))
    for name, groups in LISTED['claims'].items()
}
# Texts of the page's parts, and of the rank-one control of each.
SHOWN = LISTED['shown']
