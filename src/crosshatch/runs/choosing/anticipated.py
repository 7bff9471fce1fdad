"""ABCD's theorem for a federation and a task: the step size up to which it holds, and where it does not apply."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from crosshatch.data.federated import FederatedData
from crosshatch.local.layers import Layer
from crosshatch.local.read_chain import as_chain
from crosshatch.runs.config_names import AnyAlgorithm
from crosshatch.task.losses import Squared
from crosshatch.task.task import Task
from crosshatch.theory.anticipation import Anticipation, block_curvature
from crosshatch.theory.constants import Constants


@dataclass(frozen=True)
class Anticipated:
    """Silos that anticipate each other, as the theorem sees them; `all_samples`: every round uses all samples."""

    algorithm: AnyAlgorithm
    data: FederatedData
    task: Task
    all_samples: bool

    def unlike_theorem(self) -> Iterator[str]:
        """What the setting has that the theorem has not, in words."""
        if self.data.groups is not None:
            yield "there are groups"
        elif any(silo.clients > 1 for silo in self.data.silos):
            yield "silos have several clients"
        if not self.all_samples:
            yield "a round uses some of the samples, the theorem has all"
        if self.algorithm.window > 1:
            yield f"algorithm.window is {self.algorithm.window}, the theorem has 1"
        if self.task.head is not None:
            yield "scores come from a head, the theorem has a sum"
        if self._layers is None:
            yield "blocks are not linear"
        if not self._far_enough:
            least = f"more than {self._silos / 2:g}" if self._quadratic else f"at least {self._silos}"
            yield f"algorithm.anticipation is {self._factor:g} for {self._silos} silos, the theorem has {least}"

    def anticipation(self, constants: Constants | None = None) -> Anticipation:
        """From the data where linear blocks add up, else from `constants`, whose L_k hold the regulariser already.

        An s that the theorem does not speak of becomes the nearest it does.
        """
        factor = self._factor if self._far_enough else float(self._silos)
        if self._layers is None or self.task.head is not None:
            assert constants is not None
            return Anticipation(self._silos, factor, constants.block_lipschitz, 0.0, self._quadratic)
        return Anticipation(self._silos, factor, self._curvatures, self.task.regulariser.l2, self._quadratic)

    @property
    def _silos(self) -> int:
        return len(self.data.silos)

    @property
    def _factor(self) -> float:
        return self.algorithm.anticipated(self._silos) or 1.0

    @property
    def _quadratic(self) -> bool:
        """Whether the objective is a quadratic."""
        return isinstance(self.task.loss, Squared) and self.task.regulariser.l1 == 0

    @property
    def _far_enough(self) -> bool:
        return Anticipation(self._silos, self._factor, (1.0,), 0.0, self._quadratic).covered

    @cached_property
    def _layers(self) -> list[Layer] | None:
        """The one layer of every block; None where a block is anything else."""
        found = []
        for block in self.task.blocks:
            chain = as_chain(block)
            if chain is None or len(chain) > 1 or chain[0].activation != "none":
                return None
            found.append(chain[0])
        return found

    @cached_property
    def _curvatures(self) -> tuple[float, ...]:
        assert self._layers is not None
        silos = zip(self.data.silos, self._layers, strict=True)
        return tuple(block_curvature(silo.train, self.task.loss, bias=layer.bias) for silo, layer in silos)
