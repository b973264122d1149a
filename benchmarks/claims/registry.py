"""All claims, in the order in which they are run: cheap ones first."""

from .experiments import (
    backbones,
    cost,
    detection,
    elfatt,
    inverse,
    landmarks,
    oversmoothing,
    sizes,
)

CLAIMS = {
    module.CLAIM.name: module.CLAIM
    for module in (
        cost,
        inverse,
        oversmoothing,
        landmarks,
        sizes,
        elfatt,
        detection,
        backbones,
    )
}
