from .flops import KINDS, FlopCount, count_flops
from .landmarks import nystroem_diagonal
from .recording import (
    AttentionCall,
    BlockCall,
    attention_rows,
    attentions_of,
    blocks_of,
    watch,
)
from .similarity import hc_proportion, token_similarity

__all__ = [
    'KINDS',
    'AttentionCall',
    'BlockCall',
    'FlopCount',
    'attention_rows',
    'attentions_of',
    'blocks_of',
    'count_flops',
    'hc_proportion',
    'nystroem_diagonal',
    'token_similarity',
    'watch',
]
