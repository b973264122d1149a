from .averaging import averaged_attention, varying_share, varying_shares
from .flops import KINDS, FlopCount, count_flops
from .landmarks import landmark_weights, nystroem_diagonal
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
    'averaged_attention',
    'blocks_of',
    'count_flops',
    'hc_proportion',
    'landmark_weights',
    'nystroem_diagonal',
    'token_similarity',
    'varying_share',
    'varying_shares',
    'watch',
]
