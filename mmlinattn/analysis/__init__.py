from .flops import KINDS, FlopCount, count_flops
from .recording import (
    AttentionCall,
    BlockCall,
    attention_rows,
    attentions_of,
    blocks_of,
    watch,
)
from .similarity import hc_proportion, token_similarity
from .spectrum import attention_spectrum, frequency_gain

__all__ = [
    'KINDS',
    'AttentionCall',
    'BlockCall',
    'FlopCount',
    'attention_rows',
    'attention_spectrum',
    'attentions_of',
    'blocks_of',
    'count_flops',
    'frequency_gain',
    'hc_proportion',
    'token_similarity',
    'watch',
]
