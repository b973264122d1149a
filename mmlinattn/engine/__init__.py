from .hooks import PretrainedBackboneHook

__all__ = ['PretrainedBackboneHook']
