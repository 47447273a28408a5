"""How each torch function that takes parameters is differentiated record by record; one module per kind."""

from typing import Any

from discreet.gradients.rules import convolution, elementwise, embedding, linear, normalization, recurrent
from discreet.gradients.tape import Rule

RULES: dict[Any, Rule] = {
    **linear.RULES,
    **convolution.RULES,
    **normalization.RULES,
    **embedding.RULES,
    **elementwise.RULES,
    **recurrent.RULES,
}

__all__ = ["RULES"]
