from .flops import KINDS, FlopCount, count_flops

__all__ = ['KINDS', 'FlopCount', 'count_flops']
