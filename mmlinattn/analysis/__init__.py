from .flops import KINDS, FlopCount, count_flops
from .probing import attention_rows
from .pseudo_inverse import normalize_by_degree, pinv_residual, spectral_norm
from .recording import AttentionCall, BlockCall, attentions_of, blocks_of, watch
from .similarity import attention_similarity, hc_proportion, token_similarity
from .spectrum import attention_spectrum, frequency_gain

__all__ = [
    'KINDS',
    'AttentionCall',
    'BlockCall',
    'FlopCount',
    'attention_rows',
    'attention_similarity',
    'attention_spectrum',
    'attentions_of',
    'blocks_of',
    'count_flops',
    'frequency_gain',
    'hc_proportion',
    'normalize_by_degree',
    'pinv_residual',
    'spectral_norm',
    'token_similarity',
    'watch',
]
