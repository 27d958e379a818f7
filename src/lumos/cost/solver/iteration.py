"""Large cycles by stabilised biconjugate gradients, started anew until they are exact."""

from typing import Final

import numpy as np

from lumos.cost.solver.graph import Floats, Integers

# Starts go on while they come nearer; being off by more than this is no solution.
PRECISION: Final = 1e-12
_ENOUGH: Final = 1e-14
_STEPS: Final = 60
_STEP_GOAL: Final = 1e-8
# What is as far off as this after some starts will hardly arrive.
_TRIALS: Final = 2
_HOPELESS: Final = 1e-3


class Iteration:
    """T = inflow + W'T for one cycle, whose edges lead from `at` to `to`."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        self._size, self._at, self._to, self._share = size, at, to, share
        self._pairs = _Pairs(size, at, to, share)

    def solution(self, inflow: Floats, starts: int) -> tuple[Floats, float]:
        """The loaded costs after at most so many starts, and how far off they may be."""
        found = best = inflow
        nearest = np.inf
        for start in range(starts):
            missing = inflow - self._staying(found)
            scale = max(np.abs(found).max(), np.abs(inflow).max(), 1.0)
            residual = float(np.abs(missing).max() / scale)
            if residual < nearest:
                best, nearest = found, residual
            elif nearest <= PRECISION:
                break
            if nearest <= _ENOUGH or (start > _TRIALS and nearest > _HOPELESS):
                break
            found = best + self._improvement(inflow - self._staying(best))
        return best, nearest

    def _staying(self, amounts: Floats) -> Floats:
        carried = np.bincount(self._to, self._share * amounts[self._at], minlength=self._size)
        return amounts - carried

    def _improvement(self, missing: Floats) -> Floats:
        shadow = residual = direction = missing
        found = np.zeros(self._size)
        product = float(shadow @ residual)
        goal = float(np.abs(missing).max()) * _STEP_GOAL
        for _ in range(_STEPS):
            ahead = self._pairs.solved(direction)
            moved = self._staying(ahead)
            along = float(shadow @ moved)
            if along == 0.0:
                break
            step = product / along
            half = residual - step * moved
            aside = self._pairs.solved(half)
            turned = self._staying(aside)
            norm = float(turned @ turned)
            weight = float(turned @ half) / norm if norm else 0.0
            found = found + step * ahead + weight * aside
            residual = half - weight * turned
            after = float(shadow @ residual)
            if float(np.abs(residual).max()) <= goal or weight == 0.0 or product == 0.0:
                break
            turn = (after / product) * (step / weight)
            direction = residual + turn * (direction - weight * moved)
            product = after
        return found


class _Pairs:
    """Nodes that pass cost to each other, solved two by two: what is tight mostly is so there."""

    def __init__(self, size: int, at: Integers, to: Integers, share: Floats) -> None:
        there, back = at * size + to, to * size + at
        order = np.argsort(there)
        found = np.minimum(np.searchsorted(there[order], back), len(there) - 1)
        opposite = order[found]
        mutual = np.flatnonzero((there[opposite] == back) & (at < to))
        mutual = mutual[np.argsort(-share[mutual] * share[opposite[mutual]])]
        # A pair counts where it is the tightest one for both.
        rank = np.arange(len(mutual))
        tightest = np.full(size, len(mutual))
        np.minimum.at(tightest, at[mutual], rank)
        np.minimum.at(tightest, to[mutual], rank)
        chosen = mutual[(tightest[at[mutual]] == rank) & (tightest[to[mutual]] == rank)]
        self._one, self._other = at[chosen], to[chosen]
        self._there, self._back = share[chosen], share[opposite[chosen]]
        self._stays = 1.0 - self._there * self._back

    def solved(self, inflow: Floats) -> Floats:
        """Loaded costs if nothing but these pairs passed anything on."""
        loaded = inflow.copy()
        one, other = inflow[self._one], inflow[self._other]
        loaded[self._one] = (one + self._back * other) / self._stays
        loaded[self._other] = (other + self._there * one) / self._stays
        return loaded
