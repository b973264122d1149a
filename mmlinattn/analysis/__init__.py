from .flops import KINDS, FlopCount, count_flops

__all__ = ['FlopCount', 'KINDS', 'count_flops']
