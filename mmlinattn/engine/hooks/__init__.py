from .pretrained_backbone_hook import PretrainedBackboneHook, check_pretrained

__all__ = ['PretrainedBackboneHook', 'check_pretrained']
