"""A listwise loss of weights, and the weights that make it least; pure.

Each piece of evidence stands against all that is none, in the pool of its own question: minus the logarithm
of its share of their softmax (listwise, as Cao et al. 2007). What else is evidence is left out of the
denominator, so that the second piece counts as much as the first. The loss is convex; weights are 0 or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RIDGE = 0.001
"""What a weight costs, by its square: little, so that a term that no question needs is 0."""

CLOSE, SMALL, STEPS = 1e-9, 1e-3, 200
"""When the projected gradient is nothing, which weights may be held at 0, and how many steps are taken."""


class Sample(NamedTuple):
    """One question: the terms of its candidates, shape (n, t), and how much of its evidence each is, (n,)."""

    terms: Floats
    evidence: Floats


@dataclass(frozen=True)
class Lists:
    """Questions one below the other: rows of terms, the part of the loss that each is, where each begins."""

    terms: Floats
    part: Floats
    starts: Ints

    @classmethod
    def of(cls, groups: Sequence[Sequence[Sample]]) -> Lists:
        """Put groups of questions together: groups count the same, and so do the questions of a group.

        Questions without evidence among their candidates say nothing and are passed over.
        """
        telling = [[sample for sample in group if sample.evidence.any()] for group in groups]
        telling = [group for group in telling if group]
        samples = [sample for group in telling for sample in group]
        parts = [
            sample.evidence / sample.evidence.sum() / len(group) / len(telling)
            for group in telling
            for sample in group
        ]
        lengths = [len(sample.evidence) for sample in samples]
        starts = np.cumsum([0, *lengths[:-1]], dtype=np.int64)
        return cls(np.concatenate([sample.terms for sample in samples]), np.concatenate(parts), starts)

    @cached_property
    def question(self) -> Ints:
        """The number of each row's question."""
        lengths = np.diff(np.append(self.starts, len(self.part)))
        return np.repeat(np.arange(len(self.starts)), lengths)

    @cached_property
    def wanted(self) -> Ints:
        """The rows that are evidence."""
        return np.flatnonzero(self.part)


def loss(weights: Floats, lists: Lists, ridge: float = RIDGE) -> tuple[float, Floats, Floats]:
    """Return the loss of weights, shape (t,), its gradient, and its Hessian, (t, t).

    sum over evidence i of part_i (log(e_i + sum of e_j over what is no evidence) - z_i) + ridge |w|^2, where
    z = terms w and e = exp(z).
    """
    terms, of, wanted = lists.terms, lists.question, lists.wanted
    asked, part = of[wanted], lists.part[wanted]
    z = terms @ weights
    z -= np.maximum.reduceat(z, lists.starts)[of]
    e = np.exp(z)
    others = e.copy()
    others[wanted] = 0.0
    total = e[wanted] + np.add.reduceat(others, lists.starts)[asked]
    value = float(part @ (np.log(total) - z[wanted]) + ridge * (weights @ weights))
    mass = others * np.bincount(asked, part / total, minlength=len(lists.starts))[of]
    mass[wanted] = part * e[wanted] / total
    gradient = terms.T @ mass - terms[wanted].T @ part + 2.0 * ridge * weights
    beside = np.add.reduceat(others[:, None] * terms, lists.starts)[asked]
    mean = (beside + e[wanted, None] * terms[wanted]) / total[:, None]
    spread = (mass[:, None] * terms).T @ terms - (part[:, None] * mean).T @ mean
    return value, gradient, spread + 2.0 * ridge * np.eye(len(weights))


def least(lists: Lists, ridge: float = RIDGE) -> Floats:
    """Return the weights of the least loss, none below 0: Newton's method, projected (Bertsekas 1982)."""
    weights = np.zeros(lists.terms.shape[1])
    at = loss(weights, lists, ridge)
    for _ in range(STEPS):
        _, gradient, hessian = at
        away = float(np.abs(weights - np.maximum(weights - gradient, 0.0)).max())
        if away < CLOSE:
            break
        free = (weights > min(SMALL, away)) | (gradient <= 0.0)
        step = gradient.copy()
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        moved = _descended(weights, at, step, free, lists, ridge)
        if moved is None:
            break
        weights, at = moved
    return weights


def rounded(weights: Floats, per: int) -> list[int]:
    """Return weights as the nearest multiples of `1 / per`."""
    return [int(weight) for weight in np.rint(weights * per)]


def _descended(
    weights: Floats,
    at: tuple[float, Floats, Floats],
    step: Floats,
    free: npt.NDArray[np.bool_],
    lists: Lists,
    ridge: float,
) -> tuple[Floats, tuple[float, Floats, Floats]] | None:
    """Go along a step as far as the loss falls enough (Armijo); None where it falls nowhere."""
    value, gradient, _ = at
    size = 1.0
    while size > 1e-12:
        moved = np.maximum(weights - size * step, 0.0)
        promised = size * (gradient[free] @ step[free]) + gradient[~free] @ (weights - moved)[~free]
        found = loss(moved, lists, ridge)
        if value - found[0] >= 1e-4 * promised:
            return moved, found
        size /= 2.0
    return None
