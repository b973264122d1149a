"""The ``pretrained`` variable of our configs."""

from mmengine.hooks import Hook
from mmengine.model import is_model_wrapper
from mmengine.optim import OptimWrapper
from mmengine.runner import find_latest_checkpoint

from mmlinattn.registry import HOOKS
from mmlinattn.utils import check_file


@HOOKS.register_module()
class PretrainedBackboneHook(Hook):
    """Starts the backbone from the weights that ``pretrained`` names.

    ``pretrained`` is a variable of the config: a path or an address of a
    checkpoint, or None. MMEngine resolves variables when it reads a file, so
    one that an inheriting config or the command line sets would not reach
    ``model.backbone.init_cfg``. This hook takes it there before MMEngine
    initializes the model. None trains from scratch and says so, unless
    weights come from ``load_from`` or ``init_cfg``. A run that goes on from
    its own checkpoint, and a test, need neither: nothing happens.
    """

    def before_run(self, runner):
        """Sets ``init_cfg`` of the backbone.

        Args:
            runner (Runner): The runner, its weights not initialized yet.

        Raises:
            FileNotFoundError: If ``pretrained`` is a path without a file.
        """
        # only training builds the optimizer
        if not isinstance(runner.optim_wrapper, OptimWrapper):
            return
        cfg = runner.cfg
        load_from = cfg.get('load_from')
        if cfg.get('resume') and (load_from or find_latest_checkpoint(runner.work_dir)):
            return
        model = runner.model
        backbone = (model.module if is_model_wrapper(model) else model).backbone
        pretrained = cfg.get('pretrained')
        if pretrained:
            check_file('pretrained', pretrained)
            backbone.init_cfg = dict(type='Pretrained', checkpoint=pretrained)
            return
        init_cfg = backbone.init_cfg
        has_weights = (
            isinstance(init_cfg, dict) and init_cfg.get('type') == 'Pretrained'
        )
        if not (load_from or has_weights):
            runner.logger.warning(
                'The backbone trains FROM SCRATCH: pretrained=None. To start '
                'from ImageNet weights, set pretrained in the config or on the '
                'command line: --cfg-options pretrained=CHECKPOINT'
            )
