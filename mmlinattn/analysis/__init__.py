from .flops import KINDS, FlopCount, count_flops
from .probing import attention_rows
from .pseudo_inverse import (
    newton_bound,
    newton_cutoff,
    newton_residuals,
    normalize_by_degree,
    pinv_residual,
    spectral_norm,
)
from .recording import AttentionCall, BlockCall, attentions_of, blocks_of, watch
from .similarity import attention_similarity, hc_proportion, token_similarity
from .smoothing import (
    attention_bound,
    ffn_bound,
    high_frequencies,
    mean_leakage,
    smoothing_rate,
    softmax_bound,
)
from .spectrum import attention_spectrum, frequency_gain

__all__ = [
    'KINDS',
    'AttentionCall',
    'BlockCall',
    'FlopCount',
    'attention_bound',
    'attention_rows',
    'attention_similarity',
    'attention_spectrum',
    'attentions_of',
    'blocks_of',
    'count_flops',
    'ffn_bound',
    'frequency_gain',
    'hc_proportion',
    'high_frequencies',
    'mean_leakage',
    'newton_bound',
    'newton_cutoff',
    'newton_residuals',
    'normalize_by_degree',
    'pinv_residual',
    'smoothing_rate',
    'softmax_bound',
    'spectral_norm',
    'token_similarity',
    'watch',
]
