from .pretrained_backbone_hook import PretrainedBackboneHook

__all__ = ['PretrainedBackboneHook']
